"""Parts of a record, and header contexts: what many notes say of one header, and how records tell it.

A part says by which rule some fields of a record are made of the items of a note (notes.py) or of a header context.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from spark_audit.record.fields import ConversionKind, Form


class Rule(Enum):
    """How a part of a record is made from items of the note."""

    #: The value of one item.
    VALUE = auto()
    #: The same, left out where the item (of two items the second) is empty, zero, or an identifier of zeros.
    IF_ANY = auto()
    #: The first of a list.
    FIRST = auto()
    #: A text that is always the same.
    CONSTANT = auto()
    #: Whose exchange it is: from the client, to the client. Left out for a message that came from no MQTT client.
    INCOMING = auto()
    OUTGOING = auto()
    #: The incoming exchange that a message came from; without an exchange, the client that should have got it.
    OWNER = auto()
    #: Of a PUBLISH's header: type, packet identifier, level and flags, for a delivery with both QoS; the topic.
    PUBLISH = auto()
    TOPIC = auto()
    #: The packet that asked for a command; of a PUBLISH also QoS, RETAIN and DUP.
    REQUEST = auto()
    #: Bytes of a packet, with 'MQTT' as their format.
    MQTT_BYTES = auto()
    #: A truth value that may not be told: 0 is left out, 1 is no, 2 is yes.
    TRUTH_IF_TOLD = auto()
    #: Length of the payload and, where the note has it, its SHA-256.
    PAYLOAD = auto()


@dataclass(frozen=True, slots=True)
class Part:
    """One field of a record, or neighbours that belong together, and the items of which a rule makes them."""

    rule: Rule
    fields: tuple[str, ...]
    items: tuple[str, ...]
    #: Instead of the field's own form.
    form: Form | None = None
    text: str = ""


def values(*names: str) -> tuple[Part, ...]:
    return tuple(Part(Rule.VALUE, (name,), (name,)) for name in names)


def if_any(name: str, item: str = "") -> Part:
    return Part(Rule.IF_ANY, (name,), (item or name,))


def _side(side: str, *, format: str, header: str) -> tuple[Part, ...]:
    """Header chain before or after a translation."""
    names = {f"{side}_format": format, f"{side}_ccsid": "coded_char_set_id", f"{side}_encoding": "encoding"}
    return tuple(Part(Rule.VALUE, (name,), (item,)) for name, item in (names | {side: header}).items())


def _translated(kind: ConversionKind) -> Part:
    return Part(Rule.CONSTANT, ("conversion",), (), text=kind)


@dataclass(frozen=True, slots=True)
class HeaderContext:
    """What many notes say of one header: its facts in the order in which they are packed, and what records say of it.

    `required` facts are in every batch; a batch of an earlier version may end before the others, which then are empty.
    `before_level_5` names the fact that stands for another in a packet of an earlier level.
    """

    name: str
    facts: tuple[str, ...]
    parts: tuple[Part, ...]
    required: int
    before_level_5: tuple[str, str] = ("", "")


_CORRELATION: Final = if_any("correlation_id", "correl_id")
_DROPPED: Final = if_any("dropped_fields", "dropped")
_STREAM: Final = (if_any("stream"), Part(Rule.IF_ANY, ("stream_style",), ("stream_style", "stream")))

TRANSLATION: Final = HeaderContext(
    "translation",
    (
        *("command", "topic", "queue", "correl_id", "persistent", "format", "coded_char_set_id", "encoding", "header"),
        *("destination", "stream", "stream_style", "user", "topic_filters", "dropped"),
    ),
    (
        *values("topic", "command", "queue", "persistent"),
        _CORRELATION,
        _translated(ConversionKind.PACKET_TO_HEADER),
        *(if_any("destination"), *_STREAM, if_any("topic_filters"), if_any("user")),
        *_side("output", format="format", header="header"),
        _DROPPED,
    ),
    required=9,
)
ARRIVAL: Final = HeaderContext(
    "arrival",
    (
        *("queue", "correl_id", "topic", "is_retained", "format", "coded_char_set_id", "encoding", "header"),
        *("stream", "stream_style", "source_client", "source_exchange", "dropped", "dropped_before_5"),
    ),
    (
        *values("queue", "is_retained"),
        _CORRELATION,
        _translated(ConversionKind.HEADER_TO_PACKET),
        *(*_STREAM, if_any("source_client"), if_any("source_exchange")),
        *_side("input", format="format", header="header"),
        _DROPPED,
    ),
    required=8,
    before_level_5=("dropped", "dropped_before_5"),
)
DELIVERY: Final = HeaderContext(
    "delivery",
    (
        *("queue_name", "correl_id", "topics", "is_retained"),
        *("input_format", "input_coded_char_set_id", "input_encoding", "input_header"),
        *("output_format", "output_coded_char_set_id", "output_encoding", "output_header", "dropped"),
        "default_persistence",
    ),
    (
        Part(Rule.FIRST, ("topic",), ("topics",)),
        Part(Rule.CONSTANT, ("command",), (), text="Publish"),
        Part(Rule.VALUE, ("queue",), ("queue_name",)),
        _CORRELATION,
        _translated(ConversionKind.HEADER_TO_HEADER),
        *(
            Part(Rule.VALUE, (f"{side}{name}",), (f"{side}_{fact}",))
            for side in ("input", "output")
            for name, fact in (
                ("_format", "format"),
                ("_ccsid", "coded_char_set_id"),
                ("_encoding", "encoding"),
                ("", "header"),
            )
        ),
        _DROPPED,
        *values("is_retained"),
        Part(Rule.TRUTH_IF_TOLD, ("default_persistent",), ("default_persistence",)),
    ),
    required=13,
)
SERVICE: Final = HeaderContext(
    "service",
    (
        *("queue", "target", "mode", "table_version", "coded_char_set_id", "encoding"),
        *("input_format", "input_header", "output_format", "output_header", "dropped"),
    ),
    (
        *values("queue", "target", "mode", "table_version"),
        _translated(ConversionKind.SERVICE),
        *_side("input", format="input_format", header="input_header"),
        *_side("output", format="output_format", header="output_header"),
        _DROPPED,
    ),
    required=11,
)
PASSAGE: Final = HeaderContext(
    "passage",
    ("queue", "queue_manager", "channel", "batch"),
    (*values("queue", "queue_manager", "channel"), Part(Rule.VALUE, ("channel_batch",), ("batch",))),
    required=4,
)
TAKEN_COMMAND: Final = HeaderContext(
    "taken_command",
    ("verb", "queue_name", "topics", "filter", "format", "coded_char_set_id", "encoding", "header"),
    (
        *(if_any("command", "verb"), Part(Rule.VALUE, ("queue",), ("queue_name",)), if_any("topics")),
        *(if_any("filter"), *_side("input", format="format", header="header")[:-1], if_any("input", "header")),
    ),
    required=8,
)
HEADER_CONTEXTS: Final = {row.name: row for row in (TRANSLATION, ARRIVAL, DELIVERY, SERVICE, PASSAGE, TAKEN_COMMAND)}
