"""Topic aliases: numbers for topic names, valid for one connection and one direction (MQTT 5.0 section 3.3.2.3.4)."""

from typing import Final

from gateway.mqtt.errors import LimitExceeded, ProtocolViolation
from gateway.mqtt.reason_codes import ReasonCode

LONGEST_NAMES_BYTES: Final = 65_536  # our choice: one name of the greatest length, or hundreds of usual ones
MAXIMUM_OUTGOING: Final = 64  # our choice: a client gets few topics, or too many for aliases to be worth it
_WORTH_AN_ALIAS: Final = 4  # characters: the property itself takes three bytes


class IncomingAliases:
    """The topic names of the peer's aliases; `maximum`: the one that we announced."""

    __slots__ = ("_maximum", "_names", "_names_bytes")

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._names: dict[int, str] = {}
        self._names_bytes = 0

    def name_of(self, alias: int) -> str:
        """The topic name of a PUBLISH that has only the alias. Raises ProtocolViolation if the alias has no name."""
        self._check(alias)
        topic = self._names.get(alias)
        if topic is None:
            raise ProtocolViolation(f"the topic alias {alias} has no topic name yet (section 3.3.4)")
        return topic

    def assign(self, alias: int, topic: str, topic_bytes: int) -> None:
        """Sets the name of an alias. Raises LimitExceeded if all names together become too long."""
        self._check(alias)
        before = self._names.get(alias)
        self._names_bytes += topic_bytes - (len(before.encode()) if before is not None else 0)
        if self._names_bytes > LONGEST_NAMES_BYTES:
            raise LimitExceeded("the topic names of all aliases together are too long", ReasonCode.QUOTA_EXCEEDED)
        self._names[alias] = topic

    def _check(self, alias: int) -> None:
        if not 1 <= alias <= self._maximum:
            raise LimitExceeded(
                f"the topic alias is {alias}, it must be 1..{self._maximum} (MQTT-3.3.2-8, MQTT-3.3.2-9)",
                ReasonCode.TOPIC_ALIAS_INVALID,
            )


class OutgoingAliases:
    """The aliases that we gave. The first topics of a connection have one, later topics have none.

    No alias ever changes its topic, so only the order in which packets are made matters.
    """

    __slots__ = ("_aliases", "_left_bytes", "_maximum")

    def __init__(self, maximum: int) -> None:
        self._maximum = min(maximum, MAXIMUM_OUTGOING)
        self._aliases: dict[str, int] = {}
        self._left_bytes = LONGEST_NAMES_BYTES

    def known(self, topic: str) -> int:
        """The alias that the client knows for this topic; 0 if there is none."""
        return self._aliases.get(topic, 0)

    def next_for(self, topic: str) -> int:
        """The alias that this topic could get now; 0: none. Call `keep` when the packet with both is sent."""
        if len(self._aliases) >= self._maximum or not _WORTH_AN_ALIAS <= len(topic) <= self._left_bytes // 4:
            return 0
        return len(self._aliases) + 1

    def keep(self, topic: str, alias: int) -> None:
        """The packet with topic and alias is sent: the client knows the alias from now on."""
        self._aliases[topic] = alias
        self._left_bytes -= 4 * len(topic)
