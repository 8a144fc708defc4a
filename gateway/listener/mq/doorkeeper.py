"""Who comes in at one listener: its channels' tables, logins of programs, and what is said of those it refuses."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from gateway.config.mq_listeners import MqListenerSettings
from gateway.listener.client_certificates import ShownCertificate
from gateway.listener.mq.channel_rules import ChannelRules
from gateway.listener.mq.identity import Credentials, Done, Door, Identified
from gateway.listener.mq.server_connections import asks_for_certificate
from mq_adapters.attributes import Definition
from mq_adapters.reasons import QueueManagerError, ReasonCode

if TYPE_CHECKING:
    from gateway.listener.mq.listener import MqHouse

_REFUSED: Final = "program refused listener=%s channel=%s peer=%s reason=%s"


class Visitor(Protocol):
    """A connection, as its doorkeeper sees it."""

    @property
    def address(self) -> str: ...
    @property
    def peer(self) -> str: ...
    @property
    def certificate(self) -> ShownCertificate | None: ...


class Doorkeeper:
    """One for each listener."""

    def __init__(self, settings: MqListenerSettings, house: "MqHouse") -> None:
        self._settings = settings
        self._house = house
        self._rules = ChannelRules(settings.channel)

    def admits(self, channel: str, address: str) -> bool:
        """Whether programs of an address may use a channel here, whoever they are."""
        rule = self._rules.of(channel)
        return rule is not None and rule.admits_address(address)

    def identify(
        self,
        visitor: Visitor,
        channel: Definition,
        shown: Credentials | None,
        is_wanted: Callable[[], bool],
        done: Done,
    ) -> None:
        """Calls `done` once with who a program is, or with 2035, unless `is_wanted` is false by then."""

        def identified(result: Identified | QueueManagerError) -> None:
            if isinstance(result, QueueManagerError):
                self._refused(visitor, channel, result)
            done(result)

        door = Door(
            channel=channel,
            rule=self._rules.of(channel.name),
            address=visitor.address,
            peer=visitor.peer,
            plain_passwords=self._settings.plain_passwords,
            certificate_counts=asks_for_certificate(channel) and visitor.certificate is not None,
        )
        self._house.login.identify(shown, door, is_wanted, identified)

    def _refused(self, visitor: Visitor, channel: Definition, error: QueueManagerError) -> None:
        self._house.refusals[ReasonCode(error.reason_code)] += 1
        told = self._settings.name, channel.name, visitor.peer, str(error)
        self._house.connection_log.refused(visitor.address, _REFUSED, *told)
