"""Converts the fields of one command, each by its row of the table, and notes what became of it.

Input order is kept, except that MQRFH wants its command first. Values are literal, with three exceptions: topic names
are escaped for MQRFH and unescaped from it, patterns change their wildcard scheme, and option numbers become tokens.
Source: "Message formats" (file aq19780_, WebSphere Message Broker V6), and `fields.toml`.
"""

from collections.abc import Iterable

from mappings.commands.options import (
    NO_OPTIONS_TOKEN,
    DeleteOption,
    OptionClass,
    PublicationOption,
    RegistrationOption,
    option_number,
    option_rows,
    tokens_of,
)
from mappings.commands.parameters import MQRFH_ONLY_VERBS, NAME_VERBS, NAMED_VERBS
from mappings.conversion.report import FieldOutcome, Mode, Outcome
from mappings.errors import CommandError, ConversionError
from mappings.headers.name_value import NameValues
from mappings.reasons import Reason
from mappings.table import (
    OTHER_OMISSIONS,
    ROWS_BY_KEY,
    ROWS_BY_NAME,
    SUPPORT_NOTES,
    Dialect,
    FieldRow,
    Omission,
    OptionRow,
    Standing,
)
from mappings.topics.topics import (
    character_patterns,
    escape_topic,
    topic_filter_for,
    unescape_topic,
    why_character_patterns_are_wider,
    why_topic_filter_is_wider,
)

DEFAULT_SUBSCRIPTION_POINTS = frozenset({"", "SYSTEM.BROKER.DEFAULT.SUBPOINT"})

_OPTION_CLASSES: dict[str, OptionClass] = {
    "RegOpt": RegistrationOption,
    "PubOpt": PublicationOption,
    "DelOpt": DeleteOption,
}
_LOCAL_FIELD = {Dialect.MQRFH: "RegOpt", Dialect.MQRFH2: "PubOpt"}  # where a Publish has Local
_LEAVE_ONLY = "LeaveOnly"  # one identity leaves a subscription that it shares with others
_LOCAL_OF_PSC = ("PubOpt", "Local")  # no publication option: in MQRFH it is one of RegOpts


class FieldConversion:
    """Converts the fields of one command one by one; `fields` and `outcomes` grow with each."""

    def __init__(self, *, verb: str, source: Dialect, target: Dialect, mode: Mode) -> None:
        if verb in MQRFH_ONLY_VERBS and target is Dialect.MQRFH2:
            raise ConversionError(
                Reason.MQRC_RFH_COMMAND_ERROR,
                f"{verb} has no psc form; answer it where it was received",
                parameter=verb,
            )
        self.fields: list[tuple[str, str]] = []
        self.outcomes: list[FieldOutcome] = []
        self._verb = verb
        self._source = source
        self._target = target
        self._mode = mode
        self._seen: set[str] = set()
        #: Patterns of the output, each with the topic of the input that it was first made of.
        self._topics: dict[str, str] = {}

    def add_all(self, fields: NameValues) -> None:
        """Convert all fields of the input, in order."""
        for name, value in fields:
            row = ROWS_BY_NAME[self._source].get(name)
            if row is None:
                self._drop(name, value, self._omission(name))
            else:
                self._add(row, name, value)
        self._refuse_nameless()

    def _add(self, row: FieldRow, name: str, value: str) -> None:
        if name in self._seen and self._verb not in row.repeats:
            raise CommandError(Reason.MQRC_RFH_DUPLICATE_PARM, f"{name} stands twice; give it once", parameter=name)
        self._seen.add(name)
        option_class = _OPTION_CLASSES.get(row.key)
        if option_class is not None:
            self._add_option(row, option_class, name, value)
        elif row.key == "Topic":
            self._add_topic(row, name, value)
        elif self._copies(row):
            self._keep(row, name, value, [value], Outcome.RENAMED)
        else:
            self._refuse_widening(row, name, value)
            self._drop(name, value, Omission(reason=row.reason, source=row.source))

    def _copies(self, row: FieldRow) -> bool:
        return row.standing is Standing.MAPPED or (row.standing is Standing.EXTENDED and self._mode is Mode.EXTENDED)

    def _refuse_widening(self, row: FieldRow, name: str, value: str) -> None:
        """A subscription must not quietly receive more than it asked for."""
        harmless = row.key == "SubPoint" and value in DEFAULT_SUBSCRIPTION_POINTS
        if row.standing is Standing.REFUSED and self._verb != "Publish" and not harmless:
            raise ConversionError(Reason.MQRC_RFH_PARM_ERROR, f"{name} on {self._verb}: {row.reason}", parameter=name)

    def _refuse_nameless(self) -> None:
        """A command that says by SubName alone which subscription it means says nothing without it."""
        name = ROWS_BY_KEY["SubName"].name_in(self._source) or ""
        is_dropped = any(field.name == name and field.outcome is Outcome.DROPPED for field in self.outcomes)
        says_which = any(field in ("Topic", "MQPSTopic") or value == "DeregAll" for field, value in self.fields)
        if self._verb in NAMED_VERBS and is_dropped and not says_which:
            raise ConversionError(
                Reason.MQRC_RFH_PARM_MISSING,
                f"{name} alone says which subscription is meant, and strict mode does not copy it; use extended mode",
                parameter=name,
            )

    def _add_option(self, row: FieldRow, option_class: OptionClass, name: str, value: str) -> None:
        tokens = _tokens(row, option_class, value)
        lacks = {token: lack for token in tokens if (lack := self._lack(row, option_class, token))}
        if _LEAVE_ONLY in lacks and self._verb == "DeregSub":
            raise ConversionError(
                Reason.MQRC_RFH_PARM_ERROR,
                f"DeregSub would end the subscription for everybody who has joined it: {lacks[_LEAVE_ONLY]}; use"
                " extended mode",
                parameter=name,
            )
        for token, lack in lacks.items():
            self._drop(
                name, value if token == value else f"{value} ({token})", Omission(reason=lack, source=row.source)
            )
        moved = [token for token in tokens if self._moves(row, token)]
        kept = [token for token in tokens if token not in moved and token not in lacks]
        for token in moved:
            target = ROWS_BY_NAME[Dialect.MQRFH2][_LOCAL_FIELD[self._target]]
            self._keep(target, name, token, [token], Outcome.MOVED)
        if kept:
            self._keep(row, name, value, kept, Outcome.RENAMED if kept == [value] else Outcome.EXPANDED)

    def _lack(self, row: FieldRow, option_class: OptionClass, token: str) -> str:
        """Why an option is not copied: the other format lacks it, or what it needs is not copied; empty if it is."""
        if token == NO_OPTIONS_TOKEN or (row.key, token) == _LOCAL_OF_PSC:
            return ""
        (option,) = option_rows(option_class(option_number(option_class, token)))
        if self._target not in option.formats:
            return f"the option {token} does not exist in {self._target.value}{_support(option)}"
        if option.needs is not None and not self._copies(ROWS_BY_KEY[option.needs]):
            return f"{token} means nothing without {option.needs}, which {self._mode.value} mode does not copy"
        return ""

    def _moves(self, row: FieldRow, token: str) -> bool:
        """Local of a Publish stands in different fields; the strict mode leaves it where the input has it."""
        return (
            self._mode is Mode.EXTENDED
            and self._verb == "Publish"
            and token == "Local"
            and row.key != _LOCAL_FIELD[self._target]
        )

    def _add_topic(self, row: FieldRow, name: str, value: str) -> None:
        if self._verb in NAME_VERBS:
            text = escape_topic(value) if self._target is Dialect.MQRFH else unescape_topic(value)
            self._keep(row, name, value, [text], Outcome.RENAMED)
            return
        patterns = character_patterns(value) if self._target is Dialect.MQRFH else (topic_filter_for(value),)
        if self._verb == "ReqUpdate" and len(patterns) > 1:
            raise ConversionError(
                Reason.MQRCCF_TOPIC_ERROR,
                f"ReqUpdate takes one topic, and {value[:200]!a} needs two in MQRFH; send two requests",
                parameter=value,
            )
        if self._verb == "DeletePub" and not self._deletes_no_more(value):
            raise ConversionError(
                Reason.MQRCCF_TOPIC_ERROR,
                f"DeletePub of {value[:200]!a} would delete more in {self._target.upper()}; name the topics themselves",
                parameter=value,
            )
        fresh = [pattern for pattern in patterns if self._topics.setdefault(pattern, value) == value]
        outcome = Outcome.RENAMED if patterns == (value,) else Outcome.EXPANDED
        wider = self._why_wider(value)
        self._keep(row, name, value, fresh, outcome, reason=wider and f"wider: {wider}")

    def _why_wider(self, pattern: str) -> str:
        to_character = self._target is Dialect.MQRFH
        return why_character_patterns_are_wider(pattern) if to_character else why_topic_filter_is_wider(pattern)

    def _deletes_no_more(self, value: str) -> bool:
        """Whether a pattern is the same in the other scheme: nobody can check again what was deleted."""
        if not self._why_wider(value):
            return True
        if self._target is Dialect.MQRFH:
            return False
        topic = topic_filter_for(value).removesuffix("/#")
        return value == f"{escape_topic(topic)}/*" and topic in self._topics

    def _keep(
        self, row: FieldRow, name: str, value: str, values: Iterable[str], outcome: Outcome, *, reason: str = ""
    ) -> None:
        target = row.name_in(self._target) or name
        kept = [(target, each) for each in values]
        self.fields += kept
        changed = [each for _, each in kept] != [value]
        described = ", ".join(f"{target} {each}" for _, each in kept) if changed else target
        self.outcomes.append(
            FieldOutcome(
                name=name,
                value=value,
                outcome=outcome,
                target=described or target,
                reason=reason or row.reason,
                source=row.source,
            )
        )

    def _drop(self, name: str, value: str, omission: Omission) -> None:
        self.outcomes.append(
            FieldOutcome(
                name=name,
                value=value,
                outcome=Outcome.DROPPED,
                target=None,
                reason=omission.reason,
                source=omission.source,
            )
        )

    def _omission(self, name: str) -> Omission:
        if self._source is Dialect.MQRFH2:
            return OTHER_OMISSIONS["element"]
        return OTHER_OMISSIONS["reserved_name" if name.startswith("MQ") else "own_pair"]


def _tokens(row: FieldRow, option_class: OptionClass, value: str) -> tuple[str, ...]:
    """The options of a value, as tokens."""
    if (row.key, value) == _LOCAL_OF_PSC:
        return (value,)
    return tokens_of(option_class(option_number(option_class, value))) or (NO_OPTIONS_TOKEN,)


def _support(option: OptionRow) -> str:
    """What the message format page notes about an option, as the end of a sentence."""
    return "".join(f"; note {note}: {SUPPORT_NOTES[note]}" for note in option.notes)
