"""MQSD of MQ clients, read and filled."""

from gateway.listener.mq.subscription_descriptors import described, subscription_request
from mq_adapters.client_channel.charv import Charv
from mq_adapters.client_channel.structures import Mqsd
from mq_adapters.embedded.mqi.options import SubOption
from mq_adapters.embedded.mqi.subscribing import Subscription
from mq_adapters.embedded.queue import Queue


def test_a_request_has_what_the_descriptor_says() -> None:
    asked = subscription_request(
        Mqsd(
            options=SubOption.CREATE,
            object_name="PLANT",
            object_string=Charv(value=b"plant/#"),
            sub_name=Charv(value="größe".encode()),
            sub_user_data=Charv(value=b"orders"),
            sub_correl_id=b"c" * 24,
            sub_expiry=600,
            pub_priority=5,
        ),
        destination=7,
        is_shared=True,
    )
    assert (asked.object_name, asked.topic, asked.name, asked.user_data) == ("PLANT", "plant/#", "größe", "orders")
    assert (asked.correl_id, asked.expiry, asked.priority, asked.destination) == (b"c" * 24, 600, 5, 7)
    assert asked.is_shared
    assert subscription_request(Mqsd(), destination=-1).destination == 0


def test_strings_are_returned_as_far_as_there_is_room() -> None:
    given = Subscription(topic="plant/#", queue=Queue(1, "Q"), correl_id=b"i" * 24, user_data="orders", expiry=300)
    roomy = Mqsd(
        object_string=Charv(buffer_size=99), sub_user_data=Charv(buffer_size=3), res_object_string=Charv(buffer_size=99)
    )
    told = described(roomy, given)
    assert (told.object_string.text, told.sub_user_data.text, told.res_object_string.text) == (
        "plant/#",
        "ord",
        "plant/#",
    )
    assert (told.sub_correl_id, told.sub_expiry) == (b"i" * 24, 300)
    asked = Mqsd(object_string=Charv(value=b"7/#", buffer_size=99), sub_user_data=Charv(value=b"x"))
    told = described(asked, given)
    assert (told.object_string.text, told.sub_user_data.text, told.res_object_string.text) == ("7/#", "x", "")
