"""The command server: carries out MQSC commands on the engine, and answers in the manner of runmqsc.

The message numbers are IBM MQ's if it has one for the case. A refusal of an unknown command names the command.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from mq_adapters.attributes import (
    ATTRIBUTES,
    QUEUE_TYPES,
    Attribute,
    Definition,
    ObjectType,
)
from mq_adapters.embedded import queue_administration
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.kept_time import believe
from mq_adapters.embedded.mqsc import channels as mqsc_channels
from mq_adapters.embedded.mqsc import clients as mqsc_clients
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

_KNOWN_VERBS: Final = ("DEFINE", "ALTER", "DELETE", "DISPLAY", "CLEAR", "RESET")
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
_STATUS: Final = ("CHSTATUS", "CHS")
_NOUNS: Final = {ObjectType.TOPIC: "topic", ObjectType.NAMELIST: "namelist", ObjectType.QMGR: "queue manager"}
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
    ("queue manager", "changed"): "AMQ8005I",
}
_DETAILS: Final = {
    "queue": "AMQ8409I: Display Queue details.",
    "topic": "AMQ8633I: Display topic details.",
    "namelist": "AMQ8550I: Display namelist details.",
    "queue manager": "AMQ8408I: Display Queue Manager details.",
}
_SUBSCRIPTION_VERBS: Final[Mapping[str, Callable[[Engine, MqscCommand, OperatorsAct], str]]] = {
    "ALTER": mqsc_subscriptions.alter,
    "DELETE": mqsc_subscriptions.delete,
}
#: Attributes that keep messages off a queue, or on it. A change of one is noted as an operator's act.
_LIMITS: Final = frozenset(("PUT", "GET", "PUB", "SUB", "MAXDEPTH", "MAXMSGL", "MAXUMSGS", "DEADQ"))
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
        word = command.target.keyword
        self._check_rights(verb, command)
        if word in ("CHANNEL", "CHL", "CHSTATUS", "CHS"):
            return self._channel(verb, command)
        if verb not in _KNOWN_VERBS:
            raise MqscRefused(f"AMQ8426E: {command.verb} is not supported: {_KNOWN_VERBS_TEXT} are.")
        if word == "SUB":
            return self._subscription(verb, command)
        if word == "TOPICSTR" and verb == "CLEAR":
            return [mqsc_subscriptions.clear_retained(self._engine, command, self._act("CLEAR TOPICSTR"))]
        kinds = _OBJECTS.get(word)
        is_generic = word in ("QUEUE", "Q")
        is_reset = verb == "RESET" and kinds != (ObjectType.QMGR,)
        if kinds is None or is_reset or (is_generic and verb != "DISPLAY"):
            supported = "QLOCAL, QALIAS, QREMOTE, QMODEL, TOPIC, SUB, NAMELIST and QMGR"
            raise syntax_error(f"{verb} {word} is not supported: objects are {supported}.")
        if verb == "DISPLAY":
            return self._display(kinds, command)
        kind = kinds[0]
        if kind == ObjectType.QMGR:
            return self._alter_queue_manager(verb, command)
        if verb == "DEFINE":
            return self._define(kind, command)
        if verb == "ALTER":
            return self._alter(kind, command)
        return self._delete(kind, command) if verb == "DELETE" else self._clear(kind, command)

    def _check_rights(self, verb: str, command: MqscCommand) -> None:
        """Raises 2035 without the right admin, for the local queue that is named, or else for every queue.

        An alias, a channel or a subscription leads to queues of other names, so it needs the right for every queue.
        """
        kinds = _OBJECTS.get(command.target.keyword)
        name = name_of(command) if kinds == (ObjectType.QLOCAL,) else EVERY_QUEUE
        self._rights.check(Right.ADMIN, name, f"{verb} {command.target.keyword}")

    # -- verbs --------------------------------------------------------------------------------------------------------

    def _define(self, kind: ObjectType, command: MqscCommand) -> list[str]:
        name = name_of(command)
        words = {parameter.keyword: parameter for parameter in command.parameters}
        replaces = "REPLACE" in words
        like = words["LIKE"].text if "LIKE" in words else None
        rest = tuple(each for each in command.parameters if each.keyword not in ("REPLACE", "NOREPLACE", "LIKE"))
        base = Definition(object_type=kind, name=name) if like is None else self._existing(kind, like).named(name)
        definition = base.altered(values_of(kind.name, ATTRIBUTES[kind], rest))
        there = self._engine.objects.find(kind, name)
        if not replaces or there is None:
            self._engine.objects.define(definition)
            return [_done(kind, "created")]
        queue_administration.alter(self._engine, definition)
        self._tell_limits(f"DEFINE {kind.name} REPLACE", there, definition)
        return [_done(kind, "changed")]

    def _alter(self, kind: ObjectType, command: MqscCommand) -> list[str]:
        there = self._existing(kind, name_of(command))
        definition = there.altered(values_of(kind.name, ATTRIBUTES[kind], command.parameters))
        queue_administration.alter(self._engine, definition)
        self._tell_limits(f"ALTER {kind.name}", there, definition)
        return [_done(kind, "changed")]

    def _tell_limits(self, command: str, before: Definition, after: Definition) -> None:
        """Notes an operator's act if the command changed which messages an object lets in or out."""
        known = ATTRIBUTES[after.object_type].keys() & _LIMITS
        changed = [f"{each}({after[each]})" for each in sorted(known) if before[each] != after[each]]
        if changed:
            is_queue = after.object_type in QUEUE_TYPES
            act = self._act(command, subject="" if is_queue else after.name, reason=" ".join(changed))
            tell_alone(self._engine, act.on_queue(after.name) if is_queue else act)

    def _act(self, command: str, *, subject: str = "", reason: str = "") -> OperatorsAct:
        return OperatorsAct(operator=self._operator, command=command, subject=subject, reason=reason)

    def _alter_queue_manager(self, verb: str, command: MqscCommand) -> list[str]:
        if verb == "RESET":
            return [self._reset_clock(command)]
        if verb != "ALTER":
            raise syntax_error(f"{verb} QMGR is not supported: ALTER QMGR, DISPLAY QMGR and RESET QMGR are.")
        parameters = command.parameters
        if command.target.items is not None:
            raise syntax_error("QMGR has no name here: ALTER QMGR keyword(value).")
        objects = self._engine.objects
        before, changes = objects.queue_manager, values_of("QMGR", ATTRIBUTES[ObjectType.QMGR], parameters)
        objects.alter_queue_manager(changes)
        self._tell_limits("ALTER QMGR", before, objects.queue_manager)
        return [_done(ObjectType.QMGR, "changed")]

    def _reset_clock(self, command: MqscCommand) -> str:
        """RESET QMGR TYPE(CLOCK): the operator says that the wall clock is right."""
        if [(each.keyword, each.items) for each in command.parameters] != [("TYPE", ("CLOCK",))]:
            raise syntax_error("RESET QMGR needs TYPE(CLOCK).")
        if not believe(self._engine, f"{self._operator} says that the wall clock is right"):
            raise MqscRefused("AMQ8149E: The gateway trusts the clock already.")
        tell_alone(self._engine, self._act("RESET QMGR", reason="TYPE(CLOCK)"))
        return "AMQ8005I: Queue manager changed."

    def _delete(self, kind: ObjectType, command: MqscCommand) -> list[str]:
        definition = self._existing(kind, name_of(command))
        words = refuse_others(command.parameters, ("PURGE", "NOPURGE") if kind == ObjectType.QLOCAL else ())
        if kind == ObjectType.QLOCAL:
            queue, purge = self._engine.queue(definition.name), "PURGE" in words
            act = self._act("DELETE QLOCAL PURGE" if purge else "DELETE QLOCAL")
            queue_administration.delete(self._engine, queue, act, purge=purge)
        else:
            if kind in QUEUE_TYPES:
                queue_administration.check_not_needed(self._engine, definition.name, f"delete {definition.name}")
            self._engine.objects.delete(definition)
        return [_done(kind, "deleted")]

    def _clear(self, kind: ObjectType, command: MqscCommand) -> list[str]:
        if kind != ObjectType.QLOCAL:
            raise syntax_error(f"CLEAR {kind.name} is not supported: CLEAR QLOCAL is.")
        name = self._existing(kind, name_of(command)).name
        refuse_others(command.parameters)
        queue_administration.clear(self._engine, self._engine.queue(name), self._act("CLEAR QLOCAL"))
        return [_done(kind, "cleared")]

    def _display(self, kinds: tuple[ObjectType, ...], command: MqscCommand) -> list[str]:
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

    def _subscription(self, verb: str, command: MqscCommand) -> list[str]:
        if verb == "CLEAR":
            raise syntax_error("CLEAR SUB is not supported: CLEAR QLOCAL and CLEAR TOPICSTR are.")
        if verb == "DEFINE":
            return [mqsc_subscriptions.define(self._engine, command, self._user)]
        if verb != "DISPLAY":
            return [_SUBSCRIPTION_VERBS[verb](self._engine, command, self._act(f"{verb} SUB"))]
        known = set(mqsc_subscriptions.KEYWORDS)
        found, parameters = mqsc_subscriptions.display(self._engine, command)
        keywords = wanted_keywords(parameters, known)
        wanted = list(filtered(iter(found), parameters, known))
        if not wanted:
            raise not_found("Subscription", ",".join(command.target.items or ("*",)))
        return _rows("AMQ8096I: Subscription inquired.", wanted, keywords, 2, {})

    def _channel(self, verb: str, command: MqscCommand) -> list[str]:
        if mqsc_clients.are_meant(command):
            return self._client(verb, command)
        name, channels = name_of(command), self._engine.objects.channels
        if verb != "DISPLAY" or command.target.keyword not in _STATUS:
            answer = mqsc_channels.carry_out(channels, verb, name, command)
            if verb == "RESOLVE":
                action = command.parameters[0].text
                tell_alone(self._engine, self._act("RESOLVE CHANNEL", subject=name, reason=f"ACTION({action})"))
            return [answer]
        known = set(mqsc_channels.CHANNEL_KEYWORDS)
        keywords = wanted_keywords(command.parameters, known)
        wanted = list(filtered(iter(mqsc_channels.statuses(channels, name)), command.parameters, known))
        if not wanted:
            raise not_found("Channel", name)
        return _rows("AMQ8417I: Display Channel Status details.", wanted, keywords, 3, {})

    def _client(self, verb: str, command: MqscCommand) -> list[str]:
        name, clients = name_of(command), self._engine.objects.clients
        if verb != "DISPLAY" or command.target.keyword not in _STATUS:
            return [mqsc_clients.carry_out(clients, verb, name, command, self._act(f"{verb} CHANNEL"))]
        known, parameters = set(mqsc_clients.CLIENT_KEYWORDS), mqsc_clients.other_parameters(command)
        keywords = wanted_keywords(parameters, known)
        wanted = list(filtered(iter(mqsc_clients.statuses(clients, name, command)), parameters, known))
        if not wanted:
            raise not_found("Client", name)
        return _rows("AMQ8417I: Display Channel Status details.", wanted, keywords, 3, {})

    # -- inside -------------------------------------------------------------------------------------------------------

    def _existing(self, kind: ObjectType, name: str) -> Definition:
        queue = self._engine.objects.queues.get(name) if kind == ObjectType.QLOCAL else None
        found = self._engine.objects.find(kind, name) if queue is None else queue.definition
        if found is None:
            raise not_found("Object", name)
        return found


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
