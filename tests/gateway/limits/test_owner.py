"""Owners: MQ applications are no MQTT users and no networks of MQTT clients."""

from gateway.limits.owner import Owner
from mq_adapters.embedded.socket.pace import ApplicationAccount

NETWORK = bytes((192, 0, 2, 7))


def test_an_application_is_a_user_that_no_mqtt_user_can_be() -> None:
    assert Owner.of_application(ApplicationAccount("orders")) == Owner("\0orders")


def test_an_application_that_anybody_may_be_has_the_network_and_is_no_mqtt_client_from_there() -> None:
    owner = Owner.of_application(ApplicationAccount("orders", NETWORK))
    assert (owner.user, owner.network, owner.application) == (None, NETWORK, "orders")
    assert owner != Owner(None, NETWORK)
