"""Parts of a record: for each a function that reads a note or a header context, and puts its fields into the record.

The functions are made once from the tables (header_contexts.py, notes.py) and called for every note.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from spark_audit.record.disclosure import Disclosure
from spark_audit.record.fields import FIELDS, Form
from spark_audit.record.header_contexts import Part, Rule
from spark_audit.record.packet_header import PUBLISH, first_byte_fields, packet_identifier, topic_bytes

Record = dict[str, Any]
#: Puts a part into a record: from the values of a note or of a header context.
Setter = Callable[[Sequence[Any], Record], None]

#: Names and contexts kept between batches; past it the cache is emptied.
KEPT_ENTRIES: Final = 50_000
#: What is longer (bytes) is made anew each time: it would fill the memory.
LONGEST_KEPT: Final = 4_096
_FORMS: Final = {row.name: row.form for row in FIELDS}
_NO_IDENTIFIER: Final = (b"", bytes(24))
_FIRST_BYTES: Final = tuple(map(first_byte_fields, range(256)))


class RecordParts:
    """Makes the functions for the records of one gateway."""

    def __init__(self, gateway: str, shown: Disclosure) -> None:
        self._names: dict[str | bytes, str] = {}
        self._shown = shown
        self._message_prefix = f"52464842{gateway}"  # "RFHB" and the incarnation, see Message.msg_id
        self._forms: dict[Form, Callable[[Any], Any]] = {
            Form.NUMBER: _as_it_is,
            Form.FLAG: bool,
            Form.TEXT: _as_it_is,
            Form.NAME: self._name,
            Form.WORDS: shown.words,
            Form.BYTES: shown.header,
            Form.HEX: _digits,
            Form.MESSAGE_ID: self._message_id,
            Form.MESSAGE_IDS: self._message_ids,
            Form.CORRELATION_ID: shown.identifier,
            Form.MQ_FORMAT: _mq_format,
            Form.NAMES: self._all_names,
            Form.RANGES: _lists,
            Form.DEPTHS: self._depths,
            Form.PAIRS: _lists,
            **self._rows(),
        }
        self._rules: dict[Rule, Callable[..., Setter]] = {
            Rule.INCOMING: partial(self._exchange, "in"),
            Rule.OUTGOING: partial(self._exchange, "out"),
            Rule.OWNER: self._owner,
            Rule.PUBLISH: _publish,
            Rule.TOPIC: self._topic,
            Rule.REQUEST: _request,
            Rule.PAYLOAD: _payload,
        }

    def of(self, part: Part, items: Sequence[str]) -> Setter:
        """The function of a part; `items` are the names of the values that it will be given."""
        places = [items.index(name) for name in part.items]
        if part.rule in self._rules:
            return self._rules[part.rule](*places)
        if part.rule is Rule.MQTT_BYTES:
            return self._mqtt_bytes(part.fields, *places)
        if part.rule is Rule.TRUTH_IF_TOLD:
            return _truth_if_told(part.fields[0], places[0])
        if part.rule is Rule.CONSTANT:
            return _constant(part.fields[0], str(part.text))  # no member of an enumeration
        return self._value(part, places)

    def _value(self, part: Part, places: Sequence[int]) -> Setter:
        field, place, needed = part.fields[0], places[0], places[-1]  # a stream's style is told with its stream
        form = part.form or _FORMS[field]
        shown = self._forms[form]

        def first(values: Sequence[Any], record: Record) -> None:
            record[field] = shown(values[place][0] if values[place] else "")

        def number(values: Sequence[Any], record: Record) -> None:
            record[field] = values[place]

        def value(values: Sequence[Any], record: Record) -> None:
            record[field] = shown(values[place])

        def identifier_if_any(values: Sequence[Any], record: Record) -> None:
            if values[place] not in _NO_IDENTIFIER:
                record[field] = shown(values[place])

        def if_any(values: Sequence[Any], record: Record) -> None:
            if values[needed]:
                record[field] = shown(values[place])

        if part.rule is Rule.FIRST:
            return first
        if part.rule is Rule.VALUE:
            return number if form is Form.NUMBER else value
        return identifier_if_any if form is Form.CORRELATION_ID else if_any

    def _exchange(self, direction: str, client: int, epoch: int, exchange: int = -1) -> Setter:
        names, name_of = self._names, self._name

        def whose(values: Sequence[Any], record: Record) -> None:
            name = values[client]
            if not name and not values[epoch]:
                return
            record["direction"] = direction
            record["client"] = names.get(name) or name_of(name)
            record["session_epoch"] = values[epoch]
            if exchange >= 0 and values[exchange]:
                record["exchange"] = values[exchange]

        return whose

    def _owner(self, client: int, epoch: int, exchange: int) -> Setter:
        incoming, outgoing = self._exchange("in", client, epoch, exchange), self._exchange("out", client, epoch)

        def owner(values: Sequence[Any], record: Record) -> None:
            if values[exchange] or not values[client]:
                incoming(values, record)
            else:
                outgoing(values, record)

        return owner

    def _topic(self, header: int, aliased: int) -> Setter:
        names, name_of = self._names, self._name

        def topic(values: Sequence[Any], record: Record) -> None:
            name = values[aliased] or topic_bytes(values[header])
            record["topic"] = names.get(name) or name_of(name)

        return topic

    def _mqtt_bytes(self, fields: tuple[str, ...], place: int) -> Setter:
        format, data = fields
        header = self._shown.header

        def mqtt_bytes(values: Sequence[Any], record: Record) -> None:
            record[format] = "MQTT"
            record[data] = header(values[place])

        return mqtt_bytes

    # -- forms ---------------------------------------------------------------------------------------------------------

    def _name(self, name: str | bytes) -> str:
        """A client, a topic or a user, as it may be shown."""
        found = self._names.get(name)
        if found is None:
            if len(self._names) >= KEPT_ENTRIES:
                self._names.clear()
            found = self._shown.name(name if isinstance(name, str) else name.decode(errors="replace"))
            if len(name) <= LONGEST_KEPT:
                self._names[name] = found
        return found

    def _all_names(self, names: Sequence[str | bytes]) -> list[str]:
        return [self._name(name) for name in names]

    def _message_id(self, number: int) -> str:
        return f"{self._message_prefix}{number:016x}"

    def _message_ids(self, numbers: Sequence[int]) -> list[str]:
        return [self._message_id(number) for number in numbers]

    def _depths(self, rows: Sequence[Sequence[Any]]) -> list[list[str]]:
        """Rows of numbers that stand as texts, for a column of lists has one type."""
        return [[self._shown.identifier(correl_id), str(messages), str(at_us)] for correl_id, messages, at_us in rows]

    def _rows(self) -> dict[Form, Callable[[Any], Any]]:
        """The forms of rows: how each of their columns is shown, always as a text."""
        name, words, correl_id = self._name, self._shown.words, self._shown.identifier
        columns: dict[Form, tuple[Callable[[Any], str], ...]] = {
            Form.SESSIONS: (name, str, name, str, _text),
            Form.FILTERS: (str, name, str),
            Form.REGISTRATIONS: (_text, correl_id, _text, name, _text, words, str),
            Form.RETAINED: (_text, name, _text, self._message_id, str, _digits),
            Form.POINTS: (_text, _text),
        }
        return {form: partial(_table, shown) for form, shown in columns.items()}


def _as_it_is(value: Any) -> Any:
    return value


def _text(value: Any) -> str:
    return str(value)


def _digits(value: bytes | str) -> str:
    return value if isinstance(value, str) else value.hex()


def _mq_format(format: bytes) -> str:
    return format.decode("latin-1").rstrip()


def _lists(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    return [list(row) for row in rows]


def _table(columns: Sequence[Callable[[Any], str]], rows: Sequence[Sequence[Any]]) -> list[list[str]]:
    return [[shown(value) for shown, value in zip(columns, row, strict=True)] for row in rows]


def _constant(field: str, text: str) -> Setter:
    def constant(_values: Sequence[Any], record: Record) -> None:
        record[field] = text

    return constant


def _truth_if_told(field: str, place: int) -> Setter:
    def truth_if_told(values: Sequence[Any], record: Record) -> None:
        if told := values[place]:  # None: a header context of an earlier version
            record[field] = (False, True)[told - 1]

    return truth_if_told


def _publish(header: int, level: int, published: int = -1, granted: int = -1) -> Setter:
    def publish(values: Sequence[Any], record: Record) -> None:
        data = values[header]
        first = data[0]
        record["packet_type"] = PUBLISH
        if first & 6:
            record["packet_identifier"] = packet_identifier(data)
        if values[level]:
            record["protocol_level"] = values[level]
        record["qos"], record["retain"], record["duplicate"] = _FIRST_BYTES[first]
        if published >= 0:
            record["published_qos"], record["granted_qos"] = values[published], values[granted]

    return publish


def _payload(length: int, digest: int) -> Setter:
    def payload(values: Sequence[Any], record: Record) -> None:
        record["payload_bytes"] = values[length]
        if values[digest]:
            record["payload_sha256"] = _digits(values[digest])

    return payload


def _request(packet_type: int, identifier: int, part: int, level: int) -> Setter:
    def request(values: Sequence[Any], record: Record) -> None:
        record["packet_type"] = values[packet_type]
        if values[identifier]:
            record["packet_identifier"] = values[identifier]
        if values[level]:
            record["protocol_level"] = values[level]
        if values[packet_type] == PUBLISH:
            record["qos"], record["retain"], record["duplicate"] = _FIRST_BYTES[values[part][0]]

    return request
