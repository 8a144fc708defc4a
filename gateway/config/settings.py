"""The settings of the gateway: one TOML file to frozen values, checked before anything starts.

An unknown key is an error, which names the nearest known key. From the environment the gateway reads only variables
that a key names.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from gateway.config.applications import ApplicationSettings
from gateway.config.checks import problems_of
from gateway.config.complaints import key_of, path_of, sentence, unusable_values
from gateway.config.error import ConfigurationError
from gateway.config.listeners import (
    DEFAULT_LISTENER,
    ListenerSettings,
    OptionalListenText,
    ServerNameSettings,
)
from gateway.config.mq_listeners import MqChannelSettings, MqListenerSettings
from gateway.config.places import lines_of
from gateway.config.tables import (
    AccessSettings,
    AuditSettings,
    BrokerSettings,
    ConversionSettings,
    HttpSettings,
    LogSettings,
    MqttSettings,
    PublishSettings,
    QueueManagerSettings,
    SubscribeSettings,
)
from gateway.config.targets import RouteSettings, TargetSettings
from gateway.config.values import FolderPath, GatewayName, OptionalFolder, Table, listed
from gateway.config.witnesses import WitnessSettings

#: The place in an error of tomllib.
_PLACE: Final = re.compile(r"at line (\d+)")
#: A larger file is a mistake.
_MAXIMUM_CHARACTERS: Final = 16_777_216
_HINT: Final = "'rfhbridge check --example' prints every key with its default"

Conversions = Annotated[tuple[ConversionSettings, ...], BeforeValidator(listed)]
Applications = Annotated[tuple[ApplicationSettings, ...], BeforeValidator(listed)]
Targets = Annotated[tuple[TargetSettings, ...], BeforeValidator(listed)]
Routes = Annotated[tuple[RouteSettings, ...], BeforeValidator(listed)]
Listeners = Annotated[tuple[ListenerSettings, ...], BeforeValidator(listed)]
MqListeners = Annotated[tuple[MqListenerSettings, ...], BeforeValidator(listed)]


class Settings(Table):
    """The complete settings. Defaults are those of a gateway on this machine alone, with its data under ./var."""

    listen: OptionalListenText = Field(
        default="127.0.0.1:1883",
        description="address of the MQTT server, HOST:PORT or [IPV6]:PORT; port 0: any free one; a file with"
        " [[listener]] and without this key opens only those",
    )
    name: GatewayName = Field(
        default="", description="name of this gateway in its trail, and so in the reports of audits; empty: none"
    )
    data: FolderPath = Field(
        default=Path("var"), description="folder of the store and the trail, relative to the working folder"
    )
    rescue_folder: OptionalFolder = Field(
        default="",
        description="folder on another disk; when the data folder disappears, the gateway copies its open files there",
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
    application: Applications = Field(
        default=(), description="programs that use the queues with rights of their own, one table for each"
    )
    conversion: Conversions = Field(default=(), description="queues whose messages are converted, one table for each")
    target: Targets = Field(default=(), description="IBM MQ queue managers that publications go to")
    route: Routes = Field(default=(), description="topics that go to a target; without routes all go to the only one")
    listener: Listeners = Field(default=(), description="further addresses of the MQTT server, with rules of their own")
    mq_listener: MqListeners = Field(
        default=(), description="addresses for IBM MQ's clients, whose channels DEFINE CHANNEL makes"
    )
    http: HttpSettings = HttpSettings()
    audit: AuditSettings = AuditSettings()
    log: LogSettings = LogSettings()

    @model_validator(mode="before")
    @classmethod
    def _without_default_listener(cls, tables: object) -> object:
        if isinstance(tables, dict) and tables.get("listener") and "listen" not in tables:
            return {**tables, "listen": ""}
        return tables

    @model_validator(mode="after")
    def _checked_queues(self) -> Self:
        problems = tuple(problems_of(self))
        if problems:
            raise ValueError("\n".join(problems))
        return self

    @property
    def listeners(self) -> tuple[ListenerSettings, ...]:
        """Every listener. That of `listen` comes first: plain TCP with the rules of [mqtt] and [access]."""
        if not self.listen:
            return self.listener
        return (ListenerSettings(name=DEFAULT_LISTENER, listen=self.listen), *self.listener)

    @property
    def all_listeners(self) -> tuple[ListenerSettings | MqListenerSettings, ...]:
        """Every listener, for MQTT clients and for MQ clients."""
        return (*self.listeners, *self.mq_listener)

    @property
    def rescue(self) -> Path | None:
        """The rescue folder; None if there is none."""
        return Path(self.rescue_folder).absolute() if self.rescue_folder else None

    @property
    def has_certificate_users(self) -> bool:
        """Whether any listener takes its users from the certificates of clients."""
        return any(listener.tls.user_from_certificate for listener in self.listeners)

    @property
    def routes(self) -> tuple[RouteSettings, ...]:
        """The routes in force. If none is given, every topic goes to the only target."""
        if self.target and not self.route:
            return (RouteSettings(target=self.target[0].name),)
        return self.route

    @property
    def configuration_sha256(self) -> str:
        """SHA-256 (hex) of the effective settings as canonical JSON: sorted keys, no blanks, UTF-8."""
        settings = self.model_dump(mode="json", by_alias=True)
        canonical = json.dumps(settings, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(canonical.encode()).hexdigest()

    @classmethod
    def load(cls, path: Path | None = None, overrides: Mapping[str, object] | None = None) -> Self:
        """The settings of a TOML file (None: the defaults), with overrides by dotted key.

        An override of None has no effect.

        Raises ConfigurationError for a file that cannot be read, an unknown key or a wrong value.
        """
        text = "" if path is None else _read(path)
        tables = {} if path is None else _parsed(path, text)
        source = "configuration" if path is None else str(path)
        for key, value in (overrides or {}).items():
            if value is not None:
                _override(tables, key, value)
        problems = list(unusable_values(tables))
        if not problems:
            try:
                return cls.model_validate(tables)
            except ValidationError as error:
                sentences = (sentence(problem, known_keys()) for problem in error.errors())
                problems = [line for each in sentences for line in each.split("\n")]
        said = {key for key, value in (overrides or {}).items() if value is not None}
        places = [() if key_of(problem) in said else path_of(problem) for problem in problems]
        lines = lines_of(text, places)
        raise ConfigurationError(source, tuple(problems), _HINT, tuple(lines))


def known_keys() -> tuple[str, ...]:
    """Every key by its full path, `mqtt.maximum_in_flight` for example, and every table."""
    return tuple(_known_keys())


def _known_keys() -> Iterator[str]:
    def keys_of(table: type[Table], parent: str) -> Iterator[str]:
        for name, field in table.model_fields.items():
            key = parent + (field.alias or name)
            yield key
            inner = TABLE_ARRAYS.get(key) or type(field.default)
            if issubclass(inner, Table):
                yield from keys_of(inner, f"{key}.")

    yield from keys_of(Settings, "")


#: Tables that a file may have any number of times, by their full key.
TABLE_ARRAYS: Final[dict[str, type[Table]]] = {
    "listener": ListenerSettings,
    "listener.tls.server_name": ServerNameSettings,
    "mq_listener": MqListenerSettings,
    "mq_listener.tls.server_name": ServerNameSettings,
    "mq_listener.channel": MqChannelSettings,
    "target": TargetSettings,
    "route": RouteSettings,
    "application": ApplicationSettings,
    "conversion": ConversionSettings,
    "audit.witness": WitnessSettings,
}


def _read(path: Path) -> str:
    """The text of a file. Raises ConfigurationError."""
    try:
        with path.open(encoding="utf-8-sig") as file:  # Windows editors put a mark in front
            text = file.read(_MAXIMUM_CHARACTERS + 1)
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
        raise ConfigurationError(str(path), (problem,), "name a readable file with --config") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(str(path), (f"is not TOML: {error}",), "correct the file at that place") from None
    if len(text) > _MAXIMUM_CHARACTERS:
        problem = f"has more than {_MAXIMUM_CHARACTERS} characters"
        raise ConfigurationError(str(path), (problem,), "name the right file with --config")
    return text


def _parsed(path: Path, text: str) -> dict[str, object]:
    """The tables of a TOML text. Raises ConfigurationError."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        lines = (int(place[1]),) if place else ()
        hint = "correct the file at that place"
        raise ConfigurationError(str(path), (f"is not TOML: {error}",), hint, lines) from None
    except RecursionError:
        raise ConfigurationError(str(path), ("is nested too deeply",), _HINT) from None


def _override(tables: dict[str, object], key: str, value: object) -> None:
    *parents, name = key.split(".")
    table = tables
    for parent in parents:
        child = table.get(parent)
        if not isinstance(child, dict):
            child = table[parent] = {}
        table = child
    table[name] = value
