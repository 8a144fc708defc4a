"""The command server: carries out MQSC commands on the engine, and answers in the manner of runmqsc.

The message numbers are IBM MQ's if it has one for the case. A refusal of an unknown command names the command.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from mq_adapters.attributes import (
    ATTRIBUTES,
    QUEUE_TYPES,
    Attribute,
    Definition,
    ObjectType,
    Value,
    longest_name,
)
from mq_adapters.embedded import queue_administration
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.kept_time import believe
from mq_adapters.embedded.mqsc import channels as mqsc_channels
from mq_adapters.embedded.mqsc import clients as mqsc_clients
from mq_adapters.embedded.mqsc import server_connections as mqsc_connections
from mq_adapters.embedded.mqsc import subscriptions as mqsc_subscriptions
from mq_adapters.embedded.mqsc.display import (
    READ_ONLY,
    Shown,
    columns,
    filtered,
    matches,
    shown,
    wanted_keywords,
)
from mq_adapters.embedded.mqsc.values import MqscRefused, name_of, not_found, refuse_others, syntax_error, values_of
from mq_adapters.embedded.operators_act import OperatorsAct, tell_alone
from mq_adapters.embedded.rights import EVERY_QUEUE, EVERYTHING, Right, Rights
from mq_adapters.mqsc import MqscAnswer, MqscCommand, MqscSyntaxError, read_command
from mq_adapters.reasons import QueueManagerError, ReasonCode

_KNOWN_VERBS: Final = (
    "DEFINE",
    "ALTER",
    "DELETE",
    "DISPLAY",
    "CLEAR",
    "RESET",
    "START",
    "STOP",
    "RESOLVE",
    "PURGE",
)
#: Verbs that are for channels alone.
_OF_CHANNELS: Final = _KNOWN_VERBS[-4:]
_KNOWN_VERBS_TEXT: Final = f"{', '.join(_KNOWN_VERBS[:-1])} and {_KNOWN_VERBS[-1]}"
_VERBS: Final = {"DEF": "DEFINE", "ALT": "ALTER", "DIS": "DISPLAY", "DISP": "DISPLAY"}
_OBJECTS: Final[Mapping[str, tuple[ObjectType, ...]]] = {
    **{kind.name: (kind,) for kind in ObjectType},
    "QL": (ObjectType.QLOCAL,),
    "QA": (ObjectType.QALIAS,),
    "QR": (ObjectType.QREMOTE,),
    "QM": (ObjectType.QMODEL,),
    "NL": (ObjectType.NAMELIST,),
    "QUEUE": QUEUE_TYPES,
    "Q": QUEUE_TYPES,
}
#: Short names of objects.
_FULL_NAMES: Final = {
    **{word: kinds[0].name for word, kinds in _OBJECTS.items() if len(kinds) == 1},
    "Q": "QUEUE",
    "CHL": "CHANNEL",
    "CHS": "CHSTATUS",
}
_NOUNS: Final = {
    ObjectType.TOPIC: "topic",
    ObjectType.NAMELIST: "namelist",
    ObjectType.CHANNEL: "channel",
    ObjectType.QMGR: "queue manager",
}
_DONE: Final = {
    ("queue", "created"): "AMQ8006I",
    ("queue", "deleted"): "AMQ8007I",
    ("queue", "changed"): "AMQ8008I",
    ("queue", "cleared"): "AMQ8022I",
    ("topic", "created"): "AMQ8690I",
    ("topic", "changed"): "AMQ8691I",
    ("topic", "deleted"): "AMQ8692I",
    ("namelist", "created"): "AMQ8552I",
    ("namelist", "changed"): "AMQ8551I",
    ("namelist", "deleted"): "AMQ8553I",
    ("channel", "created"): "AMQ8014I",
    ("channel", "changed"): "AMQ8016I",
    ("channel", "deleted"): "AMQ8015I",
    ("queue manager", "changed"): "AMQ8005I",
}
_DETAILS: Final = {
    "queue": "AMQ8409I: Display Queue details.",
    "topic": "AMQ8633I: Display topic details.",
    "namelist": "AMQ8550I: Display namelist details.",
    "channel": "AMQ8414I: Display Channel details.",
    "queue manager": "AMQ8408I: Display Queue Manager details.",
}
_REFUSALS: Final[Mapping[int, str]] = {
    ReasonCode.MQRC_OBJECT_ALREADY_EXISTS: "AMQ8150E: The object already exists.",
    ReasonCode.MQRC_Q_NOT_EMPTY: "AMQ8143E: The queue is not empty; clear it, or add PURGE.",
    ReasonCode.MQRC_OBJECT_IN_USE: "AMQ8148E: The object is in use.",
    ReasonCode.MQRC_NOT_AUTHORIZED: "AMQ8135E: Not authorized.",
    ReasonCode.MQRC_OBJECT_NAME_ERROR: "AMQ8140E: The name has 1 to 48 letters, digits and . / _ % .",
}


class CommandServer:
    """Carries out commands for one application, which runs as `user`; `operator` is the whole name of that user."""

    def __init__(self, engine: Engine, user: str = "", operator: str = "", rights: Rights = EVERYTHING) -> None:
        self._engine = engine
        self._rights = rights
        self._user = user
        self._operator = operator or user

    def execute(self, text: str) -> MqscAnswer:
        """Carries out one command and answers it. Raises StoreError if the store fails."""
        try:
            lines = self._carried_out(read_command(text))
        except MqscSyntaxError as error:
            segment = f"AMQ8405I: Syntax error detected at or near end of command segment below:-\n{error}"
            return MqscAnswer(lines=tuple(segment.split("\n")), succeeded=False)
        except MqscRefused as error:
            return MqscAnswer(lines=error.lines, succeeded=False)
        except mqsc_channels.ChannelCommandRefused as error:
            return MqscAnswer(lines=(str(error),), succeeded=False)
        except QueueManagerError as error:
            known = _REFUSALS.get(error.reason_code)
            why = f" {error.own_hint[:1].upper()}{error.own_hint[1:]}." if known and error.own_hint else ""
            return MqscAnswer(lines=(f"{known or error}{why}",), succeeded=False)
        return MqscAnswer(lines=tuple(lines), succeeded=True)

    def _carried_out(self, command: MqscCommand) -> list[str]:
        verb = _VERBS.get(command.verb, command.verb)
        noun = _FULL_NAMES.get(command.target.keyword, command.target.keyword)
        self._check_rights(verb, command)
        carry_out = COMMANDS.get((verb, noun))
        if carry_out is None:
            raise _not_supported(verb, noun, command)
        return carry_out(self, command)

    def _check_rights(self, verb: str, command: MqscCommand) -> None:
        """Raises 2035 without the right admin, for the local queue that is named, or else for every queue.

        An alias, a channel or a subscription leads to queues of other names, so it needs the right for every queue.
        """
        kinds = _OBJECTS.get(command.target.keyword)
        name = name_of(command) if kinds == (ObjectType.QLOCAL,) else EVERY_QUEUE
        self._rights.check(Right.ADMIN, name, f"{verb} {command.target.keyword}")

    # -- verbs --------------------------------------------------------------------------------------------------------

    def _define(self, command: MqscCommand) -> list[str]:
        kind, name = _kind(command), name_of(command)
        if kind == ObjectType.CHANNEL:
            self._check_channel(name, command)
        words = {parameter.keyword: parameter for parameter in command.parameters}
        replaces = "REPLACE" in words
        like = words["LIKE"].text if "LIKE" in words else None
        rest = tuple(each for each in command.parameters if each.keyword not in ("REPLACE", "NOREPLACE", "LIKE"))
        new = Definition(object_type=kind, name=name)
        base = new if like is None else self._existing(kind, like).named(name)
        definition = base.altered(values_of(kind.name, ATTRIBUTES[kind], rest))
        there = self._engine.objects.find(kind, name)
        if not replaces or there is None:
            self._engine.objects.define(definition)
            self._tell_change(f"DEFINE {kind.name}", new, definition)
            return [_done(kind, "created")]
        queue_administration.alter(self._engine, definition)
        self._tell_change(f"DEFINE {kind.name} REPLACE", there, definition)
        return [_done(kind, "changed")]

    def _check_channel(self, name: str, command: MqscCommand) -> None:
        """Refuses a channel without a type, one with too long a name, and one named as a channel to a target."""
        if not any(each.keyword in ("CHLTYPE", "LIKE") for each in command.parameters):
            raise syntax_error("DEFINE CHANNEL needs CHLTYPE(SVRCONN).")
        if len(name) > (longest := longest_name(ObjectType.CHANNEL)):
            raise MqscRefused(f"AMQ8140E: The name of a channel has at most {longest} characters.")
        channels = self._engine.objects.channels
        if channels is not None and name in channels.names():
            raise QueueManagerError(ReasonCode.MQRC_OBJECT_ALREADY_EXISTS, f"define channel {name}")

    def _alter(self, command: MqscCommand) -> list[str]:
        kind = _kind(command)
        there = self._existing(kind, name_of(command))
        definition = there.altered(values_of(kind.name, ATTRIBUTES[kind], command.parameters))
        queue_administration.alter(self._engine, definition)
        self._tell_change(f"ALTER {kind.name}", there, definition)
        return [_done(kind, "changed")]

    def _tell_change(self, command: str, before: Definition, after: Definition) -> None:
        """Notes an operator's act that defines or alters an object, with the attributes that are other than before."""
        changed = (each for each in sorted(ATTRIBUTES[after.object_type]) if before[each] != after[each])
        self._tell_object(command, after, reason=" ".join(f"{each}({_value(after[each])})" for each in changed))

    def _tell_object(self, command: str, definition: Definition, *, reason: str = "") -> None:
        is_queue = definition.object_type in QUEUE_TYPES
        act = self._act(command, subject="" if is_queue else definition.name, reason=reason)
        tell_alone(self._engine, act.on_queue(definition.name) if is_queue else act)

    def _act(self, command: str, *, subject: str = "", reason: str = "") -> OperatorsAct:
        return OperatorsAct(operator=self._operator, command=command, subject=subject, reason=reason)

    def _alter_queue_manager(self, command: MqscCommand) -> list[str]:
        parameters = command.parameters
        if command.target.items is not None:
            raise syntax_error("QMGR has no name here: ALTER QMGR keyword(value).")
        objects = self._engine.objects
        before, changes = objects.queue_manager, values_of("QMGR", ATTRIBUTES[ObjectType.QMGR], parameters)
        objects.alter_queue_manager(changes)
        self._tell_change("ALTER QMGR", before, objects.queue_manager)
        return [_done(ObjectType.QMGR, "changed")]

    def _reset_clock(self, command: MqscCommand) -> list[str]:
        """RESET QMGR TYPE(CLOCK): the operator says that the wall clock is right."""
        if [(each.keyword, each.items) for each in command.parameters] != [("TYPE", ("CLOCK",))]:
            raise syntax_error("RESET QMGR needs TYPE(CLOCK).")
        if not believe(self._engine, f"{self._operator} says that the wall clock is right"):
            raise MqscRefused("AMQ8149E: The gateway trusts the clock already.")
        tell_alone(self._engine, self._act("RESET QMGR", reason="TYPE(CLOCK)"))
        return ["AMQ8005I: Queue manager changed."]

    def _delete(self, command: MqscCommand) -> list[str]:
        kind = _kind(command)
        definition = self._existing(kind, name_of(command))
        words = refuse_others(command.parameters, ("PURGE", "NOPURGE") if kind == ObjectType.QLOCAL else ())
        if kind == ObjectType.QLOCAL:
            queue, purge = self._engine.queue(definition.name), "PURGE" in words
            act = self._act("DELETE QLOCAL PURGE" if purge else "DELETE QLOCAL")
            queue_administration.delete(self._engine, queue, act, purge=purge)
            return [_done(kind, "deleted")]
        if kind in QUEUE_TYPES:
            queue_administration.check_not_needed(self._engine, definition.name, f"delete {definition.name}")
        self._engine.objects.delete(definition)
        self._tell_object(f"DELETE {kind.name}", definition)
        return [_done(kind, "deleted")]

    def _clear(self, command: MqscCommand) -> list[str]:
        name = self._existing(ObjectType.QLOCAL, name_of(command)).name
        refuse_others(command.parameters)
        queue_administration.clear(self._engine, self._engine.queue(name), self._act("CLEAR QLOCAL"))
        return [_done(ObjectType.QLOCAL, "cleared")]

    def _clear_retained(self, command: MqscCommand) -> list[str]:
        return [mqsc_subscriptions.clear_retained(self._engine, command, self._act("CLEAR TOPICSTR"))]

    def _display(self, command: MqscCommand) -> list[str]:
        kinds = _OBJECTS[command.target.keyword]
        known = {keyword for kind in kinds for keyword in (*ATTRIBUTES[kind], *READ_ONLY[kind])}
        parameters = command.parameters
        if ObjectType.QMGR in kinds:
            definitions = [self._engine.objects.queue_manager]
        else:
            pattern = name_of(command)
            definitions = [each for each in self._engine.objects.all(kinds) if matches(each.name, pattern)]
        if not definitions:
            raise not_found("Object", name_of(command))
        keywords = wanted_keywords(parameters, known)
        attributes = {keyword: attribute for kind in kinds for keyword, attribute in ATTRIBUTES[kind].items()}
        headings = 2 if kinds[0] in QUEUE_TYPES else 1
        rows = list(filtered((shown(self._engine, definition) for definition in definitions), parameters, known))
        if not rows:
            raise not_found("Object", ",".join(command.target.items or ()) or self._engine.name)
        return _rows(_DETAILS[_noun(kinds[0])], rows, keywords, headings, attributes)

    def _define_subscription(self, command: MqscCommand) -> list[str]:
        return [mqsc_subscriptions.define(self._engine, command, self._user, self._act("DEFINE SUB"))]

    def _alter_subscription(self, command: MqscCommand) -> list[str]:
        return [mqsc_subscriptions.alter(self._engine, command, self._act("ALTER SUB"))]

    def _delete_subscription(self, command: MqscCommand) -> list[str]:
        return [mqsc_subscriptions.delete(self._engine, command, self._act("DELETE SUB"))]

    def _display_subscriptions(self, command: MqscCommand) -> list[str]:
        known = set(mqsc_subscriptions.KEYWORDS)
        found, parameters = mqsc_subscriptions.display(self._engine, command)
        keywords = wanted_keywords(parameters, known)
        wanted = list(filtered(iter(found), parameters, known))
        if not wanted:
            raise not_found("Subscription", ",".join(command.target.items or ("*",)))
        return _rows("AMQ8096I: Subscription inquired.", wanted, keywords, 2, {})

    def _channel(self, command: MqscCommand) -> list[str]:
        """START and STOP of a channel, and RESOLVE of one to a target; STOP and PURGE of an MQTT client."""
        verb, name = command.verb, name_of(command)
        act = self._act(f"{verb} CHANNEL")
        if mqsc_clients.are_meant(command):
            return [mqsc_clients.carry_out(self._engine.objects.clients, verb, name, command, act)]
        objects = self._engine.objects
        if objects.find(ObjectType.CHANNEL, name) is not None:
            answer = mqsc_connections.carry_out(objects.server_connections, objects.channels, name, command)
        else:
            answer = mqsc_channels.carry_out(objects.channels, verb, name, command)
        reason = " ".join(f"{each.keyword}({each.text})" for each in command.parameters)
        tell_alone(self._engine, replace(act, subject=name, reason=reason))
        return [answer]

    def _display_status(self, command: MqscCommand) -> list[str]:
        name, parameters = name_of(command), command.parameters
        if mqsc_clients.are_meant(command):
            noun, known = "Client", set(mqsc_clients.CLIENT_KEYWORDS)
            parameters = mqsc_clients.other_parameters(command)
            shown = mqsc_clients.statuses(self._engine.objects.clients, name, command)
        else:
            noun, known = "Channel", {*mqsc_channels.CHANNEL_KEYWORDS, *mqsc_connections.CONNECTION_KEYWORDS}
            shown = self._channels_of(name)
        keywords = wanted_keywords(parameters, known)
        wanted = list(filtered(iter(shown), parameters, known))
        if not wanted:
            raise not_found(noun, name)
        return _rows("AMQ8417I: Display Channel Status details.", wanted, keywords, 3, {})

    def _display_programs(self, command: MqscCommand) -> list[str]:
        """DISPLAY CONN: the programs that MQ clients have connected."""
        pattern, parameters, known = name_of(command), command.parameters, set(mqsc_connections.PROGRAM_KEYWORDS)
        connections = self._engine.objects.server_connections
        programs = () if connections is None else connections.programs()
        found = (each for each in programs if matches(each["CONN"], pattern))
        keywords = wanted_keywords(parameters, known)
        wanted = list(filtered(found, parameters, known))
        if not wanted:
            raise not_found("Connection", pattern)
        return _rows("AMQ8276I: Display Connection details.", wanted, keywords, 2, {})

    def _channels_of(self, pattern: str) -> list[Shown]:
        """The connections of SVRCONN channels with that name, and the channels to targets. ChannelCommandRefused."""
        objects = self._engine.objects
        connections = objects.server_connections
        names = [each.name for each in objects.all((ObjectType.CHANNEL,)) if matches(each.name, pattern)]
        found = [] if connections is None else [row for name in names for row in connections.shown(name)]
        found += mqsc_channels.statuses(objects.channels, pattern)
        if not found:
            raise mqsc_channels.no_status(objects.channels, pattern, is_defined=pattern in names)
        return found

    # -- inside -------------------------------------------------------------------------------------------------------

    def _existing(self, kind: ObjectType, name: str) -> Definition:
        queue = self._engine.objects.queues.get(name) if kind == ObjectType.QLOCAL else None
        found = self._engine.objects.find(kind, name) if queue is None else queue.definition
        if found is None:
            raise not_found("Object", name)
        return found


_CarryOut = Callable[[CommandServer, MqscCommand], list[str]]
_DEFINABLE: Final = ("QLOCAL", "QALIAS", "QREMOTE", "QMODEL", "TOPIC", "NAMELIST", "CHANNEL")
#: The commands, by verb and object. Each one but DISPLAY notes an operator's act if it changes anything.
COMMANDS: Final[Mapping[tuple[str, str], _CarryOut]] = {
    **{("DEFINE", noun): CommandServer._define for noun in _DEFINABLE},
    **{("ALTER", noun): CommandServer._alter for noun in _DEFINABLE},
    **{("DELETE", noun): CommandServer._delete for noun in _DEFINABLE},
    **{("DISPLAY", noun): CommandServer._display for noun in (*_DEFINABLE, "QUEUE", "QMGR")},
    ("ALTER", "QMGR"): CommandServer._alter_queue_manager,
    ("RESET", "QMGR"): CommandServer._reset_clock,
    ("CLEAR", "QLOCAL"): CommandServer._clear,
    ("CLEAR", "TOPICSTR"): CommandServer._clear_retained,
    ("DEFINE", "SUB"): CommandServer._define_subscription,
    ("ALTER", "SUB"): CommandServer._alter_subscription,
    ("DELETE", "SUB"): CommandServer._delete_subscription,
    ("DISPLAY", "SUB"): CommandServer._display_subscriptions,
    ("START", "CHANNEL"): CommandServer._channel,
    ("STOP", "CHANNEL"): CommandServer._channel,
    ("RESOLVE", "CHANNEL"): CommandServer._channel,
    ("PURGE", "CHANNEL"): CommandServer._channel,
    ("DISPLAY", "CHSTATUS"): CommandServer._display_status,
    ("DISPLAY", "CONN"): CommandServer._display_programs,
}


def _not_supported(verb: str, noun: str, command: MqscCommand) -> Exception:
    """The refusal of a command that is not in the table."""
    if noun in ("CHANNEL", "CHSTATUS"):
        return mqsc_clients.refusal(verb) if mqsc_clients.are_meant(command) else mqsc_channels.refusal(verb)
    if verb not in _KNOWN_VERBS:
        return MqscRefused(f"AMQ8426E: {command.verb} is not supported: {_KNOWN_VERBS_TEXT} are.")
    supported = "objects are QLOCAL, QALIAS, QREMOTE, QMODEL, TOPIC, SUB, NAMELIST, CHANNEL and QMGR"
    if verb == "CLEAR":
        supported = "CLEAR QLOCAL and CLEAR TOPICSTR are"
    elif verb in _OF_CHANNELS:
        supported = f"{verb} CHANNEL is"
    elif noun == "QMGR":
        supported = "ALTER QMGR, DISPLAY QMGR and RESET QMGR are"
    return syntax_error(f"{verb} {command.target.keyword} is not supported: {supported}.")


def _kind(command: MqscCommand) -> ObjectType:
    return _OBJECTS[command.target.keyword][0]


def _value(value: Value) -> str:
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _rows(
    heading: str,
    rows: Iterable[Shown],
    keywords: tuple[str, ...] | None,
    headings: int,
    attributes: Mapping[str, Attribute],
) -> list[str]:
    lines: list[str] = []
    for row in rows:
        lines += [heading, *columns(row, keywords, headings, attributes)]
    return lines


def _noun(kind: ObjectType) -> str:
    return _NOUNS.get(kind, "queue")


def _done(kind: ObjectType, what: str) -> str:
    noun = _noun(kind)
    return f"{_DONE[noun, what]}: {noun.capitalize()} {what}."
