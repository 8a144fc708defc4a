"""What of a message survives a conversion to the other format and back, in one mode: the law, and as functions.

The law. A message that can be converted can be converted back, unless a pattern holds `+` or `#` as ordinary
characters, which only MQRFH can say, or the one pattern of a ReqUpdate would come back as two. (A DeletePub that would
delete more in the other format cannot be converted, nor in strict mode a command that names a subscription by its
SubName alone.) Then
 1. the body is the same, byte for byte, and so are its Format, Encoding and (resolved) CodedCharSetId;
 2. headers beside the converted one are the same but for their description of what follows; an MQRFH2 beside it, and
    folders beside psc, go lost on the way to MQRFH unless they are kept, and then come back in an MQRFH2 of their own;
 3. the command and the nine mapped fields have the same values in the same order, the command first;
 4. options are the same set, written as tokens; lost are those that the other format lacks, and in strict mode those
    that mean nothing without SubName or SubIdentity. In extended mode Local of a Publish ends in the field where its
    format has it: RegOpts in MQRFH, PubOpt in psc;
 5. patterns match at least what they matched: each is what the two translations make of it. One that two topics become
    stands once, and a topic that stands twice does so again. A pattern that came back wider may come back as two the
    next time, and stays as it is after that;
 6. lost is what the table does not copy: a stream name, publication data and own pairs of MQRFH, SubPoint and unknown
    elements of psc, in strict mode also SubName, SubIdentity and SubUserData; flags, attributes, text behind NUL;
 7. an answer keeps its completion, its reason codes and what identifies their causes; lost are ErrorId, ErrorPos and
    ParmId, values under names that no element can have or that answers use otherwise, the command answered unless
    FullResp returned more, and the failing command's folder;
 8. quotes, escapes, padding, NameValueCCSID and lengths are those of our writer, and stay as they are from then on.
Nothing goes lost that the reports of the two conversions do not name.

The functions work the law out from the table, not by converting, so that tests can hold a conversion against it.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from mappings.commands.options import (
    OPTION_FIELDS,
    DeleteOption,
    OptionClass,
    PublicationOption,
    RegistrationOption,
    option_number,
    option_rows,
)
from mappings.commands.parameters import NAME_VERBS
from mappings.commands.response import Completion, Response, ResponseReason
from mappings.conversion.report import Mode
from mappings.conversion.response import passes_between_formats
from mappings.headers.name_value import NameValues
from mappings.reasons import Reason
from mappings.table import ROWS_BY_KEY, ROWS_BY_NAME, Dialect, Standing
from mappings.topics.topics import character_patterns, topic_filter_for, unescape_topic

_CLASSES: dict[str, OptionClass] = {
    "registration": RegistrationOption,
    "publication": PublicationOption,
    "delete": DeleteOption,
}
_LOCAL_FIELD = {Dialect.MQRFH: "RegOpt", Dialect.MQRFH2: "PubOpt"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What a command says in either format: values by psc name and plain topics, in order, and a set of options."""

    verb: str
    topics: tuple[str, ...]
    fields: NameValues
    options: frozenset[tuple[str, str]]


def meaning_of(verb: str, fields: NameValues, dialect: Dialect, mode: Mode) -> Meaning:
    """What the fields of a command say, as far as the mode copies them."""
    copied = {Standing.MAPPED, Standing.EXTENDED} if mode is Mode.EXTENDED else {Standing.MAPPED}
    rows = [(ROWS_BY_NAME[dialect].get(name), value) for name, value in fields]
    known = [(row.key, value) for row, value in rows if row is not None and row.standing in copied]
    options = {(key, token) for key, value in known if key in OPTION_FIELDS for token in _tokens(key, value, copied)}
    topics = [value for key, value in known if key == "Topic"]
    unescaped = dialect is Dialect.MQRFH and verb in NAME_VERBS
    return Meaning(
        verb=verb,
        topics=tuple(unescape_topic(topic) if unescaped else topic for topic in topics),
        fields=tuple((key, value) for key, value in known if key not in (*OPTION_FIELDS, "Topic", "Command")),
        options=frozenset(options),
    )


def surviving_meaning(verb: str, fields: NameValues, dialect: Dialect, mode: Mode) -> Meaning:
    """What the fields of a command say after a conversion to the other format and back."""
    meaning = meaning_of(verb, fields, dialect, mode)
    topics, options = meaning.topics, meaning.options
    if verb not in NAME_VERBS:
        there = _as_character_patterns if dialect is Dialect.MQRFH2 else _as_topic_filters
        back = _as_topic_filters if dialect is Dialect.MQRFH2 else _as_character_patterns
        topics = back(there(topics))
    elif mode is Mode.EXTENDED:
        options = frozenset((_LOCAL_FIELD[dialect] if token == "Local" else key, token) for key, token in options)
    return Meaning(verb=verb, topics=topics, fields=meaning.fields, options=options)


def surviving_response(response: Response) -> Response:
    """What an answer says after a conversion to the other format and back."""
    fields = _without_details(response.fields)
    if response.completion is Completion.OK:
        fields = (*(pair for reason in response.reasons for pair in _without_details(reason.fields)), *fields)
        return Response(completion=response.completion, verb=response.verb if fields else None, fields=fields)
    reasons = [
        ResponseReason(reason_code=reason.reason_code, fields=_without_details(reason.fields))
        for reason in response.reasons or (ResponseReason(reason_code=Reason.MQRC_NONE),)
    ]
    reasons[-1] = ResponseReason(reason_code=reasons[-1].reason_code, fields=(*reasons[-1].fields, *fields))
    return Response(completion=response.completion, reasons=tuple(reasons))


def _tokens(key: str, value: str, copied: Collection[Standing]) -> tuple[str, ...]:
    """The options of a value that both formats have, and that mean something with the names that are copied."""
    if key == "PubOpt" and value == "Local":
        return (value,)
    option_class = _CLASSES[OPTION_FIELDS[key]]
    rows = option_rows(option_class(option_number(option_class, value)))
    return tuple(
        row.token
        for row in rows
        if row.formats == frozenset(Dialect) and (row.needs is None or ROWS_BY_KEY[row.needs].standing in copied)
    )


def _as_character_patterns(topics: tuple[str, ...]) -> tuple[str, ...]:
    return _once_of_each(topics, character_patterns)


def _as_topic_filters(topics: tuple[str, ...]) -> tuple[str, ...]:
    return _once_of_each(topics, lambda topic: (topic_filter_for(topic),))


def _once_of_each(topics: tuple[str, ...], translated: Callable[[str], tuple[str, ...]]) -> tuple[str, ...]:
    """What topics become; a pattern that an earlier topic has become already, which is another, is left out."""
    made_of: dict[str, str] = {}
    pairs = ((pattern, topic) for topic in topics for pattern in translated(topic))
    return tuple(pattern for pattern, topic in pairs if made_of.setdefault(pattern, topic) == topic)


def _without_details(fields: NameValues) -> NameValues:
    return tuple(pair for pair in fields if passes_between_formats(pair[0]))
