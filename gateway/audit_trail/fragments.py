"""Fragments of trail lines: for each part of a record a function that reads a note and gives its JSON text.

The functions are made once from the tables in spark_audit/record; the exporter calls them for every note.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from gateway.audit_trail.disclosure import Disclosure
from gateway.audit_trail.json_text import digest_text, json_text, truth_text
from gateway.audit_trail.notes.packet_header import PUBLISH, first_byte_fields, packet_identifier, topic_bytes
from spark_audit.record.fields import FIELDS, Form
from spark_audit.record.header_contexts import Part, Rule

#: A part of a record: from the values of a note or of a header context to `,"name":value`, or to nothing.
Fragment = Callable[[Sequence[Any]], str]

#: Texts kept between batches; past it the cache is emptied.
KEPT_ENTRIES: Final = 50_000
#: What is longer (bytes) is made anew each time: it would fill the memory.
LONGEST_KEPT: Final = 4_096
_FORMS: Final = {row.name: row.form for row in FIELDS}
_NO_IDENTIFIER: Final = (b"", bytes(24))
_TYPE: Final = f',"packet_type":{PUBLISH}'


def _qos(first: int) -> str:
    return f',"qos":{first_byte_fields(first)[0]}'


def _flags(first: int) -> str:
    _, retain, duplicate = first_byte_fields(first)
    return f',"retain":{truth_text(retain)},"duplicate":{truth_text(duplicate)}'


_QOS: Final = tuple(map(_qos, range(256)))
_FLAGS: Final = tuple(map(_flags, range(256)))


class Fragments:
    """Makes fragments for the trail of one gateway."""

    def __init__(self, gateway: str, shown: Disclosure) -> None:
        self._names: dict[str | bytes, str] = {}
        self._shown = shown
        self._message_prefix = f'"52464842{gateway}'  # "RFHB" and the incarnation, see Message.msg_id
        self._texts: dict[Form, Callable[[Any], str]] = {
            Form.NUMBER: str,
            Form.FLAG: truth_text,
            Form.TEXT: json_text,
            Form.NAME: self._name,
            Form.WORDS: shown.words,
            Form.BYTES: shown.header,
            Form.HEX: lambda value: f'"{digest_text(value)}"',
            Form.MESSAGE_ID: str,
            Form.MESSAGE_IDS: self._message_ids,
            Form.CORRELATION_ID: lambda correl_id: f'"{shown.identifier(correl_id)}"',
            Form.MQ_FORMAT: lambda format: json_text(format.decode("latin-1").rstrip()),
            Form.NAMES: lambda names: f"[{','.join(map(shown.name, names))}]",
            Form.RANGES: lambda ranges: f"[{','.join(f'[{first},{last}]' for first, last in ranges)}]",
            Form.DEPTHS: self._depths,
            **self._rows(),
            Form.PAIRS: lambda pairs: f"[{','.join(f'[{json_text(one)},{json_text(two)}]' for one, two in pairs)}]",
        }

        self._rules: dict[Rule, Callable[..., Fragment]] = {
            Rule.INCOMING: partial(self._exchange, "in"),
            Rule.OUTGOING: partial(self._exchange, "out"),
            Rule.OWNER: self._owner,
            Rule.PUBLISH: _publish,
            Rule.TOPIC: self._topic,
            Rule.REQUEST: _request,
            Rule.PAYLOAD: _payload,
        }

    def of(self, part: Part, items: Sequence[str]) -> Fragment:
        """The fragment of a part; `items` are the names of the values that it will be given."""
        places = [items.index(name) for name in part.items]
        if part.rule in self._rules:
            return self._rules[part.rule](*places)
        if part.rule is Rule.MQTT_BYTES:
            return self._mqtt_bytes(part.fields, *places)
        if part.rule is Rule.TRUTH_IF_TOLD:
            told = ("", f',"{part.fields[0]}":false', f',"{part.fields[0]}":true')
            return lambda values: told[values[places[0]] or 0]  # None: a header context of an earlier version
        if part.rule is Rule.CONSTANT:
            text = f',"{part.fields[0]}":{json_text(part.text)}'
            return lambda values: text
        return self._value(part, places)

    def _value(self, part: Part, places: Sequence[int]) -> Fragment:
        name, place = part.fields[0], places[0]
        form, label = part.form or _FORMS[name], f',"{name}":'
        text = self._texts[form]
        if part.rule is Rule.FIRST:
            return lambda values: label + text(values[place][0] if values[place] else "")
        if part.rule is Rule.VALUE:
            if form is Form.NUMBER:
                return lambda values: f"{label}{values[place]}"
            return lambda values: label + text(values[place])
        if form is Form.CORRELATION_ID:
            return lambda values: "" if values[place] in _NO_IDENTIFIER else label + text(values[place])
        if form is Form.MESSAGE_ID:
            label += self._message_prefix
            return lambda values: f'{label}{values[place]:016x}"' if values[place] else ""
        needed = places[-1]  # a stream's style is told with its stream
        return lambda values: label + text(values[place]) if values[needed] else ""

    def _rows(self) -> dict[Form, Callable[[Any], str]]:
        """The forms of rows: how each of their columns is written, always as a text."""
        name, words = self._name, self._shown.words

        def correl_id(value: bytes) -> str:
            return f'"{self._shown.identifier(value)}"'

        def message_id(value: int) -> str:
            return f'{self._message_prefix}{value:016x}"'

        columns: dict[Form, tuple[Callable[[Any], str], ...]] = {
            Form.SESSIONS: (name, _number, name, _number, json_text),
            Form.FILTERS: (_number, name, _number),
            Form.REGISTRATIONS: (json_text, correl_id, json_text, name, json_text, words, _number),
            Form.RETAINED: (json_text, name, json_text, message_id, _number, _digest),
            Form.POINTS: (json_text, json_text),
        }
        return {form: partial(_rows_text, texts) for form, texts in columns.items()}

    def _message_ids(self, numbers: Sequence[int]) -> str:
        texts = [f'{self._message_prefix}{number:016x}"' for number in numbers]
        return f"[{','.join(texts)}]"

    def _depths(self, rows: Sequence[tuple[bytes, int, int]]) -> str:
        """Rows of numbers that stand as texts, for a column of lists has one type."""
        shown = self._shown.identifier
        texts = [f'["{shown(correl_id)}","{messages}","{at_us}"]' for correl_id, messages, at_us in rows]
        return f"[{','.join(texts)}]"

    def _exchange(self, direction: str, client: int, epoch: int, exchange: int = -1) -> Fragment:
        label, names = f',"direction":"{direction}","client":', self._names

        def whose(values: Sequence[Any]) -> str:
            name = values[client]
            if not name and not values[epoch]:
                return ""
            shown = names.get(name) or self._name(name)
            if exchange >= 0 and values[exchange]:
                return f'{label}{shown},"session_epoch":{values[epoch]},"exchange":{values[exchange]}'
            return f'{label}{shown},"session_epoch":{values[epoch]}'

        return whose

    def _owner(self, client: int, epoch: int, exchange: int) -> Fragment:
        incoming, outgoing = self._exchange("in", client, epoch, exchange), self._exchange("out", client, epoch)
        return lambda values: incoming(values) if values[exchange] or not values[client] else outgoing(values)

    def _topic(self, header: int, aliased: int) -> Fragment:
        return lambda values: f',"topic":{self._name(values[aliased] or topic_bytes(values[header]))}'

    def _mqtt_bytes(self, fields: tuple[str, ...], place: int) -> Fragment:
        label, text = f',"{fields[0]}":"MQTT","{fields[1]}":', self._shown.header
        return lambda values: label + text(values[place])

    def _name(self, name: str | bytes) -> str:
        """JSON string of a client, a topic or a user, as it may be shown."""
        found = self._names.get(name)
        if found is None:
            if len(self._names) >= KEPT_ENTRIES:
                self._names.clear()
            found = self._shown.name(name if isinstance(name, str) else name.decode(errors="replace"))
            if len(name) <= LONGEST_KEPT:
                self._names[name] = found
        return found


def _number(value: int) -> str:
    return f'"{value}"'


def _digest(value: bytes) -> str:
    return f'"{digest_text(value)}"'


def _rows_text(columns: Sequence[Callable[[Any], str]], rows: Sequence[Sequence[Any]]) -> str:
    texts = (",".join([text(value) for text, value in zip(columns, row, strict=True)]) for row in rows)
    return f"[{','.join([f'[{text}]' for text in texts])}]"


def _publish(header: int, level: int, published: int = -1, granted: int = -1) -> Fragment:
    def publish(values: Sequence[Any]) -> str:
        data = values[header]
        first = data[0]
        return f"{_packet(data, first)}{_level(values[level])}{_QOS[first]}{_FLAGS[first]}"

    def delivery(values: Sequence[Any]) -> str:
        data = values[header]
        first = data[0]
        both = f',"published_qos":{values[published]},"granted_qos":{values[granted]}'
        return f"{_packet(data, first)}{_level(values[level])}{_QOS[first]}{both}{_FLAGS[first]}"

    return publish if published < 0 else delivery


def _packet(header: bytes, first: int) -> str:
    return f'{_TYPE},"packet_identifier":{packet_identifier(header)}' if first & 6 else _TYPE


def _payload(length: int, digest: int) -> Fragment:
    def payload(values: Sequence[Any]) -> str:
        checksum = f',"payload_sha256":"{digest_text(values[digest])}"' if values[digest] else ""
        return f',"payload_bytes":{values[length]}{checksum}'

    return payload


def _request(packet_type: int, identifier: int, part: int, level: int) -> Fragment:
    def request(values: Sequence[Any]) -> str:
        number = f',"packet_identifier":{values[identifier]}' if values[identifier] else ""
        told = f',"packet_type":{values[packet_type]}{number}{_level(values[level])}'
        if values[packet_type] == PUBLISH:
            first = values[part][0]
            told += _QOS[first] + _FLAGS[first]
        return told

    return request


def _level(level: int) -> str:
    return f',"protocol_level":{level}' if level else ""
