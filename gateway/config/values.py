"""Types of the values in the configuration file: addresses, names, topic filters; and the base of its tables."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from mappings.topics.topics import TopicError, check_mqtt_topic_filter
from spark_audit.location import local_folder, scheme_of

#: MQTT 3.1.1, section 2.2.3: the largest remaining length that four bytes can say.
MAXIMUM_REMAINING_LENGTH_BYTES: Final = 268_435_455
#: A packet identifier has 16 bits and is never 0.
MAXIMUM_PACKET_IDENTIFIERS: Final = 65_535
#: The length of a text has 16 bits (section 1.5.3).
MAXIMUM_TEXT_BYTES: Final = 65_535
#: Hosts that mean every IPv4 or every IPv6 address.
_EVERY_ADDRESS: Final = frozenset({"0.0.0.0", "::"})
MAXIMUM_PORT: Final = 65_535
#: A year. It is long enough for every wait, and overflows no clock.
MAXIMUM_WAIT_S: Final = 31_536_000
#: IBM MQ, MQ_SUB_POINT_LENGTH.
MAXIMUM_SUBSCRIPTION_POINT_CHARACTERS: Final = 128
_GATEWAY_NAME_CHARACTERS: Final = 64
_MQ_NAME: Final = re.compile(r"[A-Za-z0-9./_%]{1,48}")
_LISTEN: Final = re.compile(r"(?:\[(?P<host6>[0-9A-Fa-f:.]+)\]|(?P<host>[^\[\]:\s]+)):(?P<port>[0-9]{1,5})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A TCP address; port 0 asks the system for a free one. As text: HOST:PORT, an IPv6 host in brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The address of HOST:PORT or [IPV6]:PORT; ValueError says what is wrong."""
        found = _LISTEN.fullmatch(text)
        if found is None or int(found["port"]) > MAXIMUM_PORT:
            raise ValueError(f"{text!r} is not HOST:PORT or [IPV6]:PORT with a port from 0 to {MAXIMUM_PORT}")
        return cls(host=found["host6"] or found["host"], port=int(found["port"]))

    def takes_port_of(self, other: Self) -> bool:
        """Whether both cannot be open at once: they are the same, or one is every address of the other's kind."""
        is_of_one_kind = (":" in self.host) == (":" in other.host)
        meets = self.host == other.host or (is_of_one_kind and not _EVERY_ADDRESS.isdisjoint((self.host, other.host)))
        return meets and self.port == other.port != 0


def _checked_address(text: str) -> str:
    return str(Address.parse(text))


def _checked_mq_name(name: str) -> str:
    if not _MQ_NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not an MQ name: 1 to 48 characters, letters, digits and . / _ %")
    return name


def _checked_topic_filter(topic_filter: str) -> str:
    try:
        check_mqtt_topic_filter(topic_filter)
    except TopicError as problem:
        raise ValueError(problem.hint) from None
    return topic_filter


def _checked_gateway_name(name: str) -> str:
    if name != name.strip() or not name.isprintable() or len(name) > _GATEWAY_NAME_CHARACTERS:
        raise ValueError(f"must have at most {_GATEWAY_NAME_CHARACTERS} visible characters, and no space at its ends")
    return name


def listed(value: object) -> object:
    """An array of TOML as the tuple of a setting."""
    return tuple(value) if isinstance(value, list) else value


def _as_path(value: object) -> object:
    return local_folder(value) if isinstance(value, str) else value


def _checked_folder(text: str) -> str:
    return str(local_folder(text)) if scheme_of(text) else text


ListenText = Annotated[str, AfterValidator(_checked_address)]
GatewayName = Annotated[str, AfterValidator(_checked_gateway_name)]
FolderPath = Annotated[Path, BeforeValidator(_as_path)]
#: "" is no folder.
OptionalFolder = Annotated[str, AfterValidator(_checked_folder)]
MqName = Annotated[str, AfterValidator(_checked_mq_name)]
MqNames = Annotated[tuple[MqName, ...], BeforeValidator(listed)]
TopicFilter = Annotated[str, AfterValidator(_checked_topic_filter)]
TopicFilters = Annotated[tuple[TopicFilter, ...], BeforeValidator(listed)]
SubscriptionPoint = Annotated[str, Field(min_length=1, max_length=MAXIMUM_SUBSCRIPTION_POINT_CHARACTERS)]
Seconds = Annotated[float, Field(gt=0, le=MAXIMUM_WAIT_S, allow_inf_nan=False)]


class Table(BaseModel):
    """A table of the file: frozen, no further keys, no value converted from another type (1 is a valid float)."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)
