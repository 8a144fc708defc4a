"""Properties of a PUBLISH of MQTT 5.0 as an operator writes them, and the place of each in MQ.

Their names are those of mosquitto's clients. The bridge decides their places (`carried_properties`, `message_expiry`);
this module describes them. Source: MQTT 5.0 section 3.3.2.3.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, repeat
from typing import Any, Final, NamedTuple

from gateway.bridge.messages.usr_folder import FOLDER, UserPropertyStyle, carried_pairs_of, expiry_of
from gateway.mqtt import property_codec
from gateway.mqtt.errors import PeerError, UsageError
from gateway.mqtt.incoming import check_response_topic
from gateway.mqtt.properties import PublishProperties, UserProperties
from gateway.mqtt.wire import Fields
from mappings.commands.command import Dialect
from mq_adapters.message import MQEI_UNLIMITED

_USER_PROPERTY: Final = "user-property"
_OF_ONE_CONNECTION: Final = frozenset({"topic-alias", "subscription-identifier"})


class PropertyProblem(ValueError):
    """A PUBLISH may not have this property. The text names it, and says what to write."""


class PropertyPlace(NamedTuple):
    """A property by its name, its place in MQ, and its value there."""

    name: str
    place: str
    value: str


#: Field of `PublishProperties` and kind of text, by name, in the order in which they are carried.
_FIELDS: Final[dict[str, tuple[str, Callable[[str], object]]]] = {
    "message-expiry-interval": ("message_expiry_s", int),
    "payload-format-indicator": ("payload_format_indicator", int),
    "content-type": ("content_type", str),
    "response-topic": ("response_topic", str),
    "correlation-data": ("correlation_data", str.encode),
    _USER_PROPERTY: ("user_properties", str),
}


def asked_properties(texts: Iterable[str]) -> PublishProperties | None:
    """The properties in texts NAME=VALUE; None for no text. The value of user-property is again NAME=VALUE."""
    found: dict[str, Any] = {}
    user_properties: list[tuple[str, str]] = []
    for text in texts:
        name, value = _halves(text, "NAME=VALUE, for example content-type=text/plain")
        if name == _USER_PROPERTY:
            user_properties.append(_halves(value, "user-property=NAME=VALUE, for example user-property=unit=bar"))
            continue
        field, read = _field(name)
        if field in found:
            raise PropertyProblem(f"{name} is given twice; only user-property may be")
        try:
            found[field] = read(value)
        except ValueError:
            raise PropertyProblem(f"{name} must be a number, not {value!r}") from None
    if user_properties:
        found["user_properties"] = tuple(user_properties)
    return _checked(PublishProperties(**found)) if found else None


def places(properties: PublishProperties | None, dialect: Dialect, style: UserPropertyStyle) -> Iterator[PropertyPlace]:
    """The place of each property. An MQRFH2 has them in a folder, an MQRFH as pairs."""
    if properties is None:
        return
    if properties.message_expiry_s is not None:
        expiry = expiry_of(properties)
        text = "-1, for an MQLONG holds no more" if expiry == MQEI_UNLIMITED else f"{expiry} tenths of a second"
        yield PropertyPlace("message-expiry-interval", "MQMD.Expiry", text)
    names = (name for name, (field, _) in _FIELDS.items() if _is_carried(properties, field))
    front = f"{FOLDER}." if dialect is Dialect.MQRFH2 else "pair "
    carried = carried_pairs_of(properties, style)
    for name, (place, value) in zip(chain(names, repeat(_USER_PROPERTY)), carried.pairs, strict=False):
        yield PropertyPlace(name, front + place, value)
    for name, reason in carried.left_out:
        yield PropertyPlace(f"{_USER_PROPERTY} {name}", "no property of its own", reason)


def _is_carried(properties: PublishProperties, field: str) -> bool:
    empty: tuple[UserProperties | None, ...] = (None, ())
    return field != "message_expiry_s" and getattr(properties, field) not in empty


def _halves(text: str, form: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise PropertyProblem(f"{text!r} has no value: write {form}")
    return name, value


def _field(name: str) -> tuple[str, Callable[[str], object]]:
    if name in _OF_ONE_CONNECTION:
        raise PropertyProblem(f"{name} belongs to one connection, and has no place in MQ")
    if name not in _FIELDS:
        raise PropertyProblem(f"{name!r} is no property of a PUBLISH: they are {', '.join(_FIELDS)}")
    return _FIELDS[name]


def _checked(properties: PublishProperties) -> PublishProperties:
    """The properties as the gateway would read them. PropertyProblem if it would refuse the PUBLISH."""
    try:
        encoded = property_codec.PUBLISH.encode(properties)
        property_codec.PUBLISH.read(Fields(encoded, 0, len(encoded)))
        check_response_topic(properties.response_topic)
    except UsageError as error:
        raise PropertyProblem(f"{error}") from None
    except PeerError as error:
        raise PropertyProblem(f"a PUBLISH with it would be refused: {error.reason}") from None
    return properties
