"""The settings of the gateway: one TOML file to frozen values, checked before anything starts.

A key that is not known is an error that names the nearest known one; nothing is read from the environment.
"""

import difflib
import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from mappings.topics import TopicError, check_mqtt_topic_filter

#: MQTT 3.1.1, section 2.2.3: the largest remaining length that four bytes can say.
MAXIMUM_REMAINING_LENGTH_BYTES: Final = 268_435_455
#: A packet identifier has 16 bits and is never 0.
MAXIMUM_PACKET_IDENTIFIERS: Final = 65_535
MAXIMUM_PORT: Final = 65_535

_MQ_NAME: Final = re.compile(r"[A-Za-z0-9./_%]{1,48}")
_LISTEN: Final = re.compile(r"(?:\[(?P<host6>[0-9A-Fa-f:.]+)\]|(?P<host>[^\[\]:\s]+)):(?P<port>[0-9]{1,5})")


class ConfigurationError(Exception):
    """The configuration is wrong: the operator's fault. `problems` are complete sentences, `hint` says what to do."""

    def __init__(self, source: str, problems: tuple[str, ...], hint: str) -> None:
        super().__init__(source, problems, hint)
        self.source = source
        self.problems = problems
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.source}: {'; '.join(self.problems)} ({self.hint})"


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


def _listed(value: object) -> object:
    """TOML has arrays, the settings have tuples."""
    return tuple(value) if isinstance(value, list) else value


def _as_path(value: object) -> object:
    if value == "":
        raise ValueError("the name of the folder is empty")
    return Path(value) if isinstance(value, str) else value


ListenText = Annotated[str, AfterValidator(_checked_address)]
FolderPath = Annotated[Path, BeforeValidator(_as_path)]
MqName = Annotated[str, AfterValidator(_checked_mq_name)]
MqNames = Annotated[tuple[MqName, ...], BeforeValidator(_listed)]
TopicFilters = Annotated[tuple[Annotated[str, AfterValidator(_checked_topic_filter)], ...], BeforeValidator(_listed)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Table(BaseModel):
    """A table of the file: frozen, no further keys, no value converted from another type (1 is a valid float)."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class QueueManagerSettings(_Table):
    """The embedded queue manager."""

    name: MqName = Field(default="RFHBRIDGE", description="name of the embedded queue manager, 1 to 48 characters")


class PublishSettings(_Table):
    """From MQTT to MQ."""

    stream: MqName = Field(
        default="SYSTEM.BROKER.DEFAULT.STREAM", description="stream queue that publications are put on"
    )


class BrokerSettings(_Table):
    """The publish/subscribe broker inside."""

    streams: MqNames = Field(default=(), description="stream queues that the broker serves beside publish.stream")


class SubscribeSettings(_Table):
    """From MQ to MQTT."""

    queue: MqName = Field(
        default="RFHBRIDGE.SUBSCRIBER", description="queue on which the gateway receives its publications"
    )
    reply_queue: MqName = Field(default="RFHBRIDGE.REPLY", description="queue on which the broker answers the gateway")
    answer_timeout_s: Seconds = Field(
        default=10.0, description="seconds that a SUBACK waits for the broker's answer before it refuses"
    )


class MqttSettings(_Table):
    """Limits of the MQTT server."""

    maximum_packet_bytes: int = Field(
        default=MAXIMUM_REMAINING_LENGTH_BYTES,
        ge=2,
        le=MAXIMUM_REMAINING_LENGTH_BYTES,
        description="bytes of the largest packet that is taken, by its remaining length",
    )
    maximum_in_flight: int = Field(
        default=100,
        ge=1,
        le=MAXIMUM_PACKET_IDENTIFIERS,
        description="PUBLISH packets of QoS 1 and 2 on their way to one client before the first is acknowledged",
    )
    connect_timeout_s: Seconds = Field(default=10.0, description="seconds that a new connection has for its CONNECT")
    maximum_connections: int = Field(
        default=10_000, ge=1, description="connections at one time; further ones are closed"
    )
    maximum_unsent_bytes: int = Field(
        default=8_388_608, ge=1, description="bytes that may wait for one slow client before its deliveries pause"
    )


class AccessSettings(_Table):
    """What clients may do."""

    publish: TopicFilters = Field(
        default=("#",), description="topic filters a client may publish to; others are refused"
    )
    subscribe: TopicFilters = Field(
        default=("#",), description="topic filters a client may subscribe to; others are refused"
    )


class AuditSettings(_Table):
    """The audit trail."""

    enabled: bool = Field(default=True, description="whether every conversion leaves its records in the trail")
    segment_bytes: int = Field(default=67_108_864, ge=1, description="bytes after which a file of the trail is closed")
    segment_minutes: int = Field(default=15, ge=1, description="minutes after which a file of the trail is closed")


class LogSettings(_Table):
    """The log, on standard error."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="least important events that are logged: debug, info, warning or error"
    )
    format: Literal["text", "json"] = Field(
        default="text", description='"text": key=value; "json": one JSON object a line'
    )


class Settings(_Table):
    """The complete settings. Defaults are those of a gateway on this machine alone, with its data under ./var."""

    listen: ListenText = Field(
        default="127.0.0.1:1883",
        description="address of the MQTT server, HOST:PORT or [IPV6]:PORT; port 0: any free one",
    )
    data: FolderPath = Field(
        default=Path("var"), description="folder of the store and the trail, relative to the working folder"
    )
    header: Literal["mqrfh2", "mqrfh"] = Field(
        default="mqrfh2", description='header of the commands that the gateway writes: "mqrfh2" or "mqrfh"'
    )
    queue_manager: QueueManagerSettings = QueueManagerSettings()
    publish: PublishSettings = PublishSettings()
    broker: BrokerSettings = BrokerSettings()
    subscribe: SubscribeSettings = SubscribeSettings()
    mqtt: MqttSettings = MqttSettings()
    access: AccessSettings = AccessSettings()
    audit: AuditSettings = AuditSettings()
    log: LogSettings = LogSettings()

    @property
    def address(self) -> Address:
        """`listen` as host and port."""
        return Address.parse(self.listen)

    @property
    def configuration_sha256(self) -> str:
        """SHA-256 (hex) of the effective settings as canonical JSON: sorted keys, no blanks, UTF-8."""
        settings = self.model_dump(mode="json")
        canonical = json.dumps(settings, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(canonical.encode()).hexdigest()

    @classmethod
    def load(cls, path: Path | None = None, overrides: Mapping[str, object] | None = None) -> Self:
        """The settings of a TOML file (None: the defaults), with overrides by dotted key; an override of None is none.

        Raises ConfigurationError for a file that cannot be read, an unknown key or a wrong value.
        """
        tables = {} if path is None else _read_toml(path)
        source = "configuration" if path is None else str(path)
        for key, value in (overrides or {}).items():
            if value is not None:
                _override(tables, key, value)
        try:
            return cls.model_validate(tables)
        except ValidationError as error:
            problems = tuple(_sentence(problem) for problem in error.errors())
            raise ConfigurationError(
                source, problems, "'rfhbridge check --example' prints every key with its default"
            ) from None


def example_toml() -> str:
    """A configuration file with every key, its default, and what it is."""
    lines = ["# rfhbridge: every key with its default"]
    for name, field in Settings.model_fields.items():
        if not isinstance(field.default, _Table):
            lines += ["", f"# {field.description}", f"{name} = {_toml_value(field.default)}"]
    for name, field in Settings.model_fields.items():
        if isinstance(field.default, _Table):
            lines += ["", f"[{name}]", *_example_table(field.default)]
    return "\n".join(lines) + "\n"


def known_keys() -> tuple[str, ...]:
    """Every key by its full path, `mqtt.maximum_in_flight` for example, and every table."""
    return tuple(_known_keys())


def _known_keys() -> Iterator[str]:
    for name, field in Settings.model_fields.items():
        yield name
        if isinstance(field.default, _Table):
            yield from (f"{name}.{key}" for key in type(field.default).model_fields)


def _read_toml(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(
            str(path), (f"cannot be read: {error.strerror}",), "name a readable file with --config"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(str(path), (f"is not TOML: {error}",), "correct the file at that place") from None


def _override(tables: dict[str, object], key: str, value: object) -> None:
    *parents, name = key.split(".")
    table = tables
    for parent in parents:
        child = table.get(parent)
        if not isinstance(child, dict):
            child = table[parent] = {}
        table = child
    table[name] = value


#: Pydantic's kinds of error whose own words speak of Python instead of TOML.
_IN_TOML_TERMS: Final = {
    "model_type": "must be a table",
    "tuple_type": "must be an array",
    "is_instance_of": "must be text",
}


def _sentence(problem: ErrorDetails) -> str:
    path = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return f"unknown key {path!r}{_nearest(path)}"
    if problem["type"] == "value_error":
        return f"{path}: {problem['msg'].removeprefix('Value error, ')}"
    message = _IN_TOML_TERMS.get(problem["type"]) or problem["msg"].replace("Input should be", "must be")
    return f"{path}: {message}, not {problem['input']!r}"


def _nearest(path: str) -> str:
    """The known key that looks most like an unknown one: by its full path, else by its last name."""
    keys = known_keys()
    close = difflib.get_close_matches(path, keys, n=1, cutoff=0.6)
    if not close:
        last = path.rpartition(".")[2]
        names = difflib.get_close_matches(last, [key.rpartition(".")[2] for key in keys], n=1, cutoff=0.0)
        close = [key for key in keys if key.rpartition(".")[2] == names[0]]
    return f", the nearest known key is {close[0]!r}"


def _example_table(table: _Table) -> Iterator[str]:
    for name, field in type(table).model_fields.items():
        yield f"# {field.description}"
        yield f"{name} = {_toml_value(field.default)}"


def _toml_value(value: object) -> str:
    """TOML writes strings, numbers, booleans and arrays of our kind as JSON does."""
    if isinstance(value, tuple):
        return json.dumps(list(value))
    return json.dumps(str(value) if isinstance(value, Path) else value)
