"""DEFINE, ALTER, DELETE and DISPLAY SUB, and CLEAR TOPICSTR: the broker's subscriptions by command.

A subscription has the attributes that queued publish/subscribe can keep. PSPROP says in which header publications come,
and goes with the wildcard scheme: RFH2 with WSCHEMA(TOPIC), COMPAT (MQRFH) with WSCHEMA(CHAR). TOPICOBJ names a topic
object, and its topic string comes first; for WSCHEMA(CHAR) it names a stream. The default of SUBUSER is the user of the
present subscriptions of that queue and DESTCORL. If there are none, it is the user that gives the command. Another user
is refused with 3078, as in a RegSub. The name of a subscription that an application registered is its SubName. Without
a SubName it is the identity `QMgr:Queue[:CorrelId]`. The SUBID always names it too. Source: IBM MQ, "DEFINE SUB",
"ALTER SUB", "DISPLAY SUB", "CLEAR TOPICSTR".
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from mappings.commands.command import RegisterSubscriber, write_command
from mappings.commands.options import RegistrationOption
from mappings.errors import MappingError
from mappings.table import Dialect
from mq_adapters.attributes import (
    Attribute,
    Choice,
    Hexadecimal,
    Name,
    Number,
    NumberOrNone,
    ObjectType,
    Text,
    Value,
)
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqsc.display import Shown, matches
from mq_adapters.embedded.mqsc.publish_subscribe import PublishSubscribe, RegisteredSubscription, SubscriptionRefused
from mq_adapters.embedded.mqsc.values import MqscRefused, name_of, not_found, refuse_others, syntax_error, values_of
from mq_adapters.embedded.operators_act import OperatorsAct, tell
from mq_adapters.embedded.unit_of_work import StateKind
from mq_adapters.message import (
    IDENTIFIER_TAG,
    MQCI_NONE,
    MQEI_UNLIMITED,
    MQMT_DATAGRAM,
    MQPER_PERSISTENT,
    Message,
    MessageDescriptor,
)
from mq_adapters.mqsc import MqscCommand, Parameter, quoted
from mq_adapters.system_queues import DEFAULT_STREAM, MANAGED_DURABLE, MANAGED_NOT_DURABLE

_MOST_CHARACTERS: Final = 10_240
_ATTRIBUTES: Final[Mapping[str, Attribute]] = {
    "TOPICSTR": Text(characters=_MOST_CHARACTERS),
    "TOPICOBJ": Name(),
    "DEST": Name(),
    "DESTQMGR": Name(),
    "DESTCLAS": Choice(words=("PROVIDED",)),
    "DESTCORL": Hexadecimal(length=24),
    "EXPIRY": NumberOrNone(minimum=1, maximum=999_999_999, word="UNLIMITED", default="UNLIMITED"),
    "PSPROP": Choice(words=("RFH2", "COMPAT")),
    "PUBACCT": Hexadecimal(length=32),
    "PUBAPPID": Text(characters=32),
    "PUBPRTY": Choice(words=("ASPUB",)),
    "REQONLY": Choice(words=("NO", "YES")),
    "SELECTOR": Text(characters=_MOST_CHARACTERS),
    "SUBLEVEL": Number(minimum=1, maximum=1, default=1),
    "SUBSCOPE": Choice(words=("ALL", "QMGR")),
    "SUBUSER": Text(characters=12),
    "USERDATA": Text(characters=_MOST_CHARACTERS),
    "VARUSER": Choice(words=("ANY", "FIXED")),
    "WSCHEMA": Choice(words=("TOPIC", "CHAR")),
}
#: Attributes that IBM MQ does not alter.
_FIXED: Final = frozenset({"TOPICOBJ", "TOPICSTR", "WSCHEMA", "SELECTOR", "SUBSCOPE", "DESTCLAS", "SUBLEVEL"})
#: The attributes that DISPLAY shows.
KEYWORDS: Final = ("SUBID", "SUB", *(each for each in _ATTRIBUTES if each != "TOPICOBJ"), "DURABLE", "SELTYPE")
_SUB_IDENTIFIER: Final = Hexadecimal(length=24)

_FORMATS: Final = {Dialect.MQRFH: b"MQHRF   ", Dialect.MQRFH2: b"MQHRF2  "}
_PROPERTIES: Final = {"TOPIC": "RFH2", "CHAR": "COMPAT"}
_NO_OPTIONS: Final = RegistrationOption(0)
#: The options of a registration that attributes set.
_OPTIONS: Final = {
    ("REQONLY", "YES"): RegistrationOption.PUBLISH_ON_REQUEST_ONLY,
    ("SUBSCOPE", "QMGR"): RegistrationOption.LOCAL,
    ("VARUSER", "ANY"): RegistrationOption.VARIABLE_USER_ID,
}
_SAID_OPTIONS: Final = RegistrationOption.CORREL_ID_AS_IDENTITY | sum(_OPTIONS.values(), _NO_OPTIONS)
_TENTH_US: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionShown:
    """One subscription: its names, the attributes that define it, and the attributes that DISPLAY shows."""

    name: str
    identifier: str
    subscription: RegisteredSubscription
    said: Mapping[str, Value]
    shown: Shown


def define(engine: Engine, command: MqscCommand, user: str, act: OperatorsAct) -> str:
    """DEFINE SUB. With REPLACE the subscription may exist. `user` gave the command."""
    words = {parameter.keyword for parameter in command.parameters}
    rest = tuple(each for each in command.parameters if each.keyword not in ("REPLACE", "NOREPLACE", "LIKE"))
    name = name_of(command)
    there = rows(engine)
    existing = [row for row in there if row.name == name]
    if existing and "REPLACE" not in words:
        raise MqscRefused(f"AMQ8150E: Subscription {name} already exists.")
    said = values_of("SUB", _ATTRIBUTES, rest)
    if existing:
        changed = {each for each in _FIXED & said.keys() - {"TOPICOBJ"} if said[each] != existing[0].said[each]}
        if changed or "TOPICOBJ" in said:
            raise syntax_error(f"{', '.join(sorted(changed) or ['TOPICOBJ'])} cannot be replaced; delete it first.")
        _alter(engine, existing[0], said, replace(act, command="DEFINE SUB REPLACE"))
        return "The subscription was changed."
    like = next((each.text for each in command.parameters if each.keyword == "LIKE"), None)
    if like is not None:
        said = {**_one(engine, like, "").said, **said}
    _define(engine, name, {"SUBUSER": _owner(there, said) or user, **said}, act)
    return "AMQ8094I: Subscription created."


def _owner(there: list[SubscriptionShown], said: Mapping[str, Value]) -> str:
    """The user of the subscriptions of that queue and CorrelId: a subscriber's identity belongs to one user."""
    place = (said.get("DEST"), said.get("DESTCORL", MQCI_NONE.hex()))
    return next((str(row.said["SUBUSER"]) for row in there if (row.said["DEST"], row.said["DESTCORL"]) == place), "")


def alter(engine: Engine, command: MqscCommand, act: OperatorsAct) -> str:
    """ALTER SUB, by its name or SUBID."""
    row, rest = _named(engine, command)
    _alter(engine, row, values_of("SUB", _ATTRIBUTES, rest, fixed=_FIXED), act)
    return "The subscription was changed."


def delete(engine: Engine, command: MqscCommand, act: OperatorsAct) -> str:
    """DELETE SUB, by its name or SUBID."""
    row, rest = _named(engine, command)
    refuse_others(rest)
    unit = engine.begin()
    _broker(engine).delete(unit, row.subscription.number)
    tell(engine, unit, replace(act, subject=str(row.said["TOPICSTR"]), reason=row.name))
    engine.submit(unit)
    return "The subscription was deleted."


def display(engine: Engine, command: MqscCommand) -> tuple[list[Shown], tuple[Parameter, ...]]:
    """The subscriptions that DISPLAY SUB names, and the parameters that say what to show of them."""
    identifier, rest = _identifier(command)
    pattern = "*" if command.target.items is None and identifier else name_of(command)
    found = [row.shown for row in rows(engine) if matches(row.name, pattern) and identifier in ("", row.identifier)]
    if not found:
        raise not_found("Subscription", identifier or pattern)
    return found, rest


def clear_retained(engine: Engine, command: MqscCommand, act: OperatorsAct) -> str:
    """CLEAR TOPICSTR(...) CLRTYPE(RETAINED). A topic string without retained publications is no error."""
    topic_string = name_of(command)
    values = values_of("TOPICSTR", _CLEARING, command.parameters)
    if not topic_string or "CLRTYPE" not in values:
        raise syntax_error("CLEAR TOPICSTR needs a topic string, and CLRTYPE(RETAINED).")
    unit = engine.begin()
    _broker(engine).clear_retained(unit, topic_string)
    cleared = sum(kind == StateKind.BROKER_RETAINED and value is None for kind, _, value in unit.states)
    tell(engine, unit, replace(act, subject=topic_string), messages=cleared)
    engine.submit(unit)
    return "The retained publications were cleared."


_CLEARING: Final[Mapping[str, Attribute]] = {"CLRTYPE": Choice(words=("RETAINED",)), "SCOPE": Choice(words=("LOCAL",))}


def rows(engine: Engine) -> list[SubscriptionShown]:
    """Every subscription that has not expired, by name."""
    found = [_row(engine, subscription) for subscription in _broker(engine).subscriptions()]
    return sorted(found, key=lambda row: (row.name, str(row.said["TOPICSTR"])))


def _row(engine: Engine, found: RegisteredSubscription) -> SubscriptionShown:
    name = found.name or str(found.identity)
    identifier = (IDENTIFIER_TAG + engine.identity + found.number.to_bytes(8, "big")).hex().upper()
    said = _said(engine, found)
    shown = {"SUBID": identifier, "SUB": quoted(name) if name else " "}
    shown |= {keyword: _shown(_ATTRIBUTES[keyword], said[keyword]) for keyword in _ATTRIBUTES if keyword in said}
    shown["DURABLE"] = "NO" if found.is_on_temporary_queue or not found.is_durable else "YES"
    if found.is_of_mqsub:
        shown |= _shown_of_mqsub(found)
    shown["SELTYPE"] = "EXTENDED" if found.interest.filter else "NONE"
    return SubscriptionShown(name=name, identifier=identifier, subscription=found, said=said, shown=shown)


def _shown_of_mqsub(found: RegisteredSubscription) -> dict[str, str]:
    """What is different for a subscription that a program has made with MQSUB."""
    is_managed = found.identity.queue_name.startswith((MANAGED_DURABLE, MANAGED_NOT_DURABLE))
    return {
        "DESTCLAS": "MANAGED" if is_managed else "PROVIDED",
        "PSPROP": "MSGPROP",
        "PUBPRTY": "ASPUB" if found.priority < 0 else str(found.priority),
    }


def _shown(attribute: Attribute, value: Value) -> str:
    return quoted(str(value)) if isinstance(attribute, Text | Name) else str(value)


def _said(engine: Engine, found: RegisteredSubscription) -> dict[str, Value]:
    """The attributes of a DEFINE SUB that would make this subscription; EXPIRY is the time that is left."""
    identity = found.identity
    prefix = "" if found.stream_name == DEFAULT_STREAM else f"{found.stream_name}/"
    schema = "CHAR" if found.dialect == Dialect.MQRFH else "TOPIC"
    left = -((engine.now_us() - found.expires_us) // _TENTH_US)
    return {
        "TOPICSTR": prefix + found.topic,
        "DEST": identity.queue_name,
        "DESTQMGR": identity.queue_manager_name,
        "DESTCLAS": "PROVIDED",
        "DESTCORL": (identity.correl_id or MQCI_NONE).hex().upper(),
        "EXPIRY": max(1, left) if found.expires_us else "UNLIMITED",
        "PSPROP": _PROPERTIES[schema],
        "PUBACCT": found.accounting_token.ljust(32, b"\0").hex().upper(),
        "PUBAPPID": found.appl_identity_data,
        "PUBPRTY": "ASPUB",
        "REQONLY": "YES" if found.options & RegistrationOption.PUBLISH_ON_REQUEST_ONLY else "NO",
        "SELECTOR": found.interest.filter,
        "SUBLEVEL": 1,
        "SUBSCOPE": "QMGR" if found.options & RegistrationOption.LOCAL else "ALL",
        "SUBUSER": found.user_identifier,
        "USERDATA": found.user_data,
        "VARUSER": "ANY" if found.options & RegistrationOption.VARIABLE_USER_ID else "FIXED",
        "WSCHEMA": schema,
    }


# -- which ---------------------------------------------------------------------------------------------------------


def _identifier(command: MqscCommand) -> tuple[str, tuple[Parameter, ...]]:
    """The SUBID of a command ('' without one), and its other parameters."""
    given = tuple(each for each in command.parameters if each.keyword == "SUBID" and each.items is not None)
    rest = tuple(each for each in command.parameters if each not in given)
    values = values_of("SUB", {"SUBID": _SUB_IDENTIFIER}, given)
    return str(values.get("SUBID", "")), rest


def _named(engine: Engine, command: MqscCommand) -> tuple[SubscriptionShown, tuple[Parameter, ...]]:
    """The one subscription that a command names, and the rest of the command."""
    identifier, rest = _identifier(command)
    name = "" if command.target.items is None and identifier else name_of(command)
    return _one(engine, name, identifier), rest


def _one(engine: Engine, name: str, identifier: str) -> SubscriptionShown:
    found = [row for row in rows(engine) if name in ("", row.name) and identifier in ("", row.identifier)]
    if not found:
        raise not_found("Subscription", name or identifier)
    if len(found) > 1:
        raise syntax_error(f"{len(found)} subscriptions go by the name {name}: say which by SUBID, see DISPLAY SUB.")
    return found[0]


def _broker(engine: Engine) -> PublishSubscribe:
    administration = engine.objects.publish_subscribe
    if administration is None:
        raise MqscRefused("AMQ8146E: No publish/subscribe broker is available.")
    return administration()


# -- what is to be registered ----------------------------------------------------------------------------------------


def _define(engine: Engine, name: str, said: Mapping[str, Value], act: OperatorsAct) -> None:
    wanted = {keyword: said.get(keyword, attribute.default) for keyword, attribute in _ATTRIBUTES.items()}
    _check(said, wanted)
    stream_name, topic = _topic(engine, wanted)
    expiry = wanted["EXPIRY"]
    message = _message(wanted, expires_us=engine.now_us() + expiry * _TENTH_US if isinstance(expiry, int) else 0)
    command = _command(name, wanted, stream_name=stream_name, topic=topic)
    _checked(command, _dialect(wanted))
    unit = engine.begin()
    try:
        _broker(engine).define(unit, message, command, _dialect(wanted))
    except SubscriptionRefused as refusal:
        raise MqscRefused(f"The subscription is refused: {refusal}.") from None
    tell(engine, unit, replace(act, subject=topic, reason=_told(name, said)))
    engine.submit(unit)


def _alter(engine: Engine, row: SubscriptionShown, changes: Mapping[str, Value], act: OperatorsAct) -> None:
    """Alters the attributes. The point, the other options and the joint identities of the subscription stay."""
    existing = row.subscription
    _check_queue_of_program(row, changes)
    wanted = {**row.said, **changes}
    _check(wanted, wanted)
    expiry = changes.get("EXPIRY")
    expires_us = engine.now_us() + expiry * _TENTH_US if isinstance(expiry, int) else 0
    message = _message(wanted, expires_us=expires_us if "EXPIRY" in changes else existing.expires_us)
    has_stream = existing.dialect == Dialect.MQRFH and existing.stream_name != DEFAULT_STREAM
    command = _command(
        existing.name,
        wanted,
        stream_name=existing.stream_name if has_stream else None,
        topic=existing.topic,
        point=existing.interest.point,
        others=existing.options & ~_SAID_OPTIONS,
    )
    _checked(command, existing.dialect)
    unit = engine.begin()
    try:
        _broker(engine).alter(unit, existing.number, message, command, existing.dialect)
    except SubscriptionRefused as refusal:
        raise MqscRefused(f"The subscription is refused: {refusal}.") from None
    tell(engine, unit, replace(act, subject=str(row.said["TOPICSTR"]), reason=_told(row.name, changes)))
    engine.submit(unit)


def _check_queue_of_program(row: SubscriptionShown, changes: Mapping[str, Value]) -> None:
    """Refuses another queue or CorrelId for a subscription of MQSUB: the program would get from a queue that ends."""
    changed = [each for each in ("DEST", "DESTCORL") if each in changes and changes[each] != row.said[each]]
    if changed and row.subscription.is_of_mqsub:
        does = "its program gets from that queue. DELETE SUB ends it, and DEFINE SUB makes one for another queue."
        raise syntax_error(f"{', '.join(changed)} of a subscription of MQSUB cannot be altered: {does}")


def _told(name: str, said: Mapping[str, Value]) -> str:
    """The name of a subscription, and what the operator said of it."""
    return " ".join((name, *(f"{keyword}({value})" for keyword, value in said.items() if keyword != "TOPICSTR")))


def _check(said: Mapping[str, Value], wanted: Mapping[str, Value]) -> None:
    """Refuses attributes that do not go together, and names all of them at once."""
    complaints: list[str] = []
    properties = _PROPERTIES[str(wanted["WSCHEMA"])]
    if said.get("PSPROP", properties) != properties:
        complaints.append(f"PSPROP({said['PSPROP']}) does not go with WSCHEMA({wanted['WSCHEMA']}): {properties} does.")
    if not wanted["DEST"]:
        complaints.append("DEST must name the queue that publications are put on.")
    if not (wanted["TOPICSTR"] or wanted.get("TOPICOBJ")):
        complaints.append("TOPICSTR or TOPICOBJ must say which topics.")
    if wanted["SELECTOR"] and wanted["WSCHEMA"] == "CHAR":
        complaints.append("SELECTOR goes with WSCHEMA(TOPIC) alone: an MQRFH subscriber has no content filter.")
    if complaints:
        raise syntax_error(*complaints)


def _topic(engine: Engine, wanted: Mapping[str, Value]) -> tuple[str | None, str]:
    """The stream, None for the default one, and the topic that TOPICOBJ and TOPICSTR say together."""
    name, topic = str(wanted["TOPICOBJ"]), str(wanted["TOPICSTR"])
    if name in ("", DEFAULT_STREAM):
        return None, topic
    topic_object = engine.objects.find(ObjectType.TOPIC, name)
    if topic_object is not None:
        return None, "/".join(part for part in (topic_object.text("TOPICSTR"), topic) if part)
    if wanted["WSCHEMA"] == "CHAR":
        return name, topic
    raise not_found("Topic object", name)


def _dialect(wanted: Mapping[str, Value]) -> Dialect:
    return Dialect.MQRFH if wanted["WSCHEMA"] == "CHAR" else Dialect.MQRFH2


def _message(wanted: Mapping[str, Value], *, expires_us: int) -> Message:
    """A message with the MQMD of a RegSub for this subscription. Its expiry time is the subscription's."""
    descriptor = MessageDescriptor(
        msg_type=MQMT_DATAGRAM,
        expiry=MQEI_UNLIMITED,
        persistence=MQPER_PERSISTENT,
        format=_FORMATS[_dialect(wanted)],
        correl_id=bytes.fromhex(str(wanted["DESTCORL"])),
        user_identifier=str(wanted["SUBUSER"]),
        accounting_token=bytes.fromhex(str(wanted["PUBACCT"])).rstrip(b"\0"),
        appl_identity_data=str(wanted["PUBAPPID"]),
    )
    message = Message(descriptor, b"")
    message.expires_us = expires_us
    return message


def _command(
    name: str,
    wanted: Mapping[str, Value],
    *,
    stream_name: str | None,
    topic: str,
    point: str = "",
    others: RegistrationOption = _NO_OPTIONS,
) -> RegisterSubscriber:
    options = others
    for (keyword, value), option in _OPTIONS.items():
        options |= option if wanted[keyword] == value else _NO_OPTIONS
    if wanted["DESTCORL"] != MQCI_NONE.hex():
        options |= RegistrationOption.CORREL_ID_AS_IDENTITY
    return RegisterSubscriber(
        topics=(topic,),
        registration_options=options,
        stream_name=stream_name,
        subscription_point=point or None,
        filter=str(wanted["SELECTOR"]) or None,
        queue_manager_name=str(wanted["DESTQMGR"]) or None,
        queue_name=str(wanted["DEST"]),
        subscription_name=name or None,
        subscription_user_data=str(wanted["USERDATA"]) or None,
    )


def _checked(command: RegisterSubscriber, dialect: Dialect) -> None:
    """Raises MqscRefused if no RegSub can carry this command."""
    try:
        write_command(command, dialect)
    except MappingError as error:
        raise MqscRefused(f"The subscription is refused: {error}") from None
