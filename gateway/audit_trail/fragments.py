"""Fragments of trail lines: values of notes as JSON text, and what a fact sheet says, written once for many records."""

from collections.abc import Sequence
from typing import Any, Final

from gateway.audit_trail.disclosure import Disclosure
from gateway.audit_trail.json_text import json_text, truth_text
from gateway.audit_trail.packet_header import first_byte_fields
from spark_audit.record import ConversionKind

_NO_IDENTIFIER: Final = bytes(24)
#: What the names begin with under which a header carries what is of one message (gateway/bridge/usr_folder.py).
_CARRIED: Final = b"rfhb"


def _format_name(format: bytes) -> str:
    """MQHRF, MQHRF2: the Format without its blanks, as a JSON string."""
    return json_text(format.decode("latin-1").rstrip())


def _publish_flags(first: int) -> str:
    qos, retain, duplicate = first_byte_fields(first)
    return f',"qos":{qos},"retain":{truth_text(retain)},"duplicate":{truth_text(duplicate)}'


PUBLISH_FLAGS: Final = tuple(_publish_flags(first) for first in range(256))


class Sheet:
    """The fragments of one fact sheet: `head` stands before the message identifiers, the others behind them.

    `is_of_one_message`: its header carries what only one message has, so no other batch will bring it again.
    """

    __slots__ = (
        "_shown",
        "conversion",
        "correlation",
        "dropped",
        "dropped_before_5",
        "head",
        "input",
        "is_of_one_message",
        "is_retained",
        "output",
        "passage",
        "persistent",
        "table_version",
    )

    def __init__(self, facts: list[Any], shown: Disclosure) -> None:
        kind, *values = facts
        self._shown = shown
        self.is_of_one_message = False
        self.head = self.correlation = self.input = self.output = ""
        self.persistent = self.is_retained = self.table_version = self.passage = ""
        self.dropped = self.dropped_before_5 = ""
        if kind == "translation":
            self._translation(*values)
        elif kind == "arrival":
            self._arrival(*values)
        elif kind == "delivery":
            self._delivery(*values)
        elif kind == "service":
            self._service(*values)
        elif kind == "passage":
            self._passage(*values)
        else:
            raise ValueError(f"fact sheet {kind!r} is not known")

    def _translation(
        self,
        command: str,
        topic: str,
        queue: str,
        correl_id: bytes,
        persistent: bool,
        format: bytes,
        ccsid: int,
        encoding: int,
        header: bytes,
        destination: str = "",  # a batch of an earlier version ends before it
        stream: str = "",
        stream_style: str = "",
        user: str | None = None,
        topic_filters: Sequence[str] = (),
        dropped: Sequence[Sequence[str]] = (),
    ) -> None:
        name = self._shown.name
        self.head = f',"topic":{name(topic)},"command":{json_text(command)},"queue":{json_text(queue)}'
        self.correlation = self._correlation(correl_id)
        self.persistent = f',"persistent":{truth_text(persistent)}'
        self.conversion = f',"conversion":"{ConversionKind.PACKET_TO_HEADER}"'
        self.is_of_one_message = command == "Publish" and (bool(destination) or _CARRIED in header)
        if destination:
            self.conversion += f',"destination":{json_text(destination)}{_stream(stream, stream_style)}'
            self.conversion += f',"topic_filters":[{",".join(map(name, topic_filters))}]' if topic_filters else ""
            self.conversion += f',"user":{name(user)}' if user else ""
        self.output = self._side("output", format, ccsid, encoding, header) + _dropped(dropped)

    def _arrival(
        self,
        queue: str,
        correl_id: bytes,
        _first_topic: str,
        is_retained: bool,
        format: bytes,
        ccsid: int,
        encoding: int,
        header: bytes,
        stream: str = "",  # a batch of an earlier version ends before it
        stream_style: str = "",
        source_client: str = "",
        source_exchange: int = 0,
        dropped: Sequence[Sequence[str]] = (),
        dropped_before_5: Sequence[Sequence[str]] = (),
    ) -> None:
        self.head = f',"queue":{json_text(queue)}'
        self.correlation = self._correlation(correl_id)
        self.conversion = f',"conversion":"{ConversionKind.HEADER_TO_PACKET}"{_stream(stream, stream_style)}'
        self.is_of_one_message = source_exchange > 0 or _CARRIED in header
        self.conversion += f',"source_client":{self._shown.name(source_client)}' if source_client else ""
        self.conversion += f',"source_exchange":{source_exchange}' if source_exchange else ""
        self.input = self._side("input", format, ccsid, encoding, header)
        self.dropped, self.dropped_before_5 = _dropped(dropped), _dropped(dropped_before_5)
        self.is_retained = f',"is_retained":{truth_text(is_retained)}'

    def _delivery(
        self,
        queue: str,
        correl_id: bytes,
        topics: list[str],
        is_retained: bool,
        input_format: bytes,
        input_ccsid: int,
        input_encoding: int,
        input_header: bytes,
        output_format: bytes,
        output_ccsid: int,
        output_encoding: int,
        output_header: bytes,
        dropped: list[list[str]],
    ) -> None:
        self.is_of_one_message = _CARRIED in input_header
        topic = self._shown.name(topics[0] if topics else "")
        self.head = f',"topic":{topic},"command":"Publish","queue":{json_text(queue)}'
        self.correlation = self._correlation(correl_id)
        self.conversion = f',"conversion":"{ConversionKind.HEADER_TO_HEADER}"'
        self.input = self._side("input", input_format, input_ccsid, input_encoding, input_header)
        self.output = self._side("output", output_format, output_ccsid, output_encoding, output_header)
        self.output += _dropped(dropped)
        self.is_retained = f',"is_retained":{truth_text(is_retained)}'

    def _service(
        self,
        queue: str,
        target: str,
        mode: str,
        table_version: str,
        ccsid: int,
        encoding: int,
        input_format: bytes,
        input_header: bytes,
        output_format: bytes,
        output_header: bytes,
        dropped: list[list[str]],
    ) -> None:
        self.head = f',"queue":{json_text(queue)}'
        self.conversion = (
            f',"conversion":"{ConversionKind.SERVICE}","target":{json_text(target)},"mode":{json_text(mode)}'
        )
        self.input = self._side("input", input_format, ccsid, encoding, input_header)
        self.output = self._side("output", output_format, ccsid, encoding, output_header) + _dropped(dropped)
        self.table_version = f',"table_version":{json_text(table_version)}'

    def _passage(self, queue: str, queue_manager: str, channel: str, batch: int) -> None:
        self.head = f',"queue":{json_text(queue)}'
        names = f',"queue_manager":{json_text(queue_manager)},"channel":{json_text(channel)}'
        self.passage = f'{names},"channel_batch":{batch}'

    def _correlation(self, correl_id: bytes) -> str:
        known = correl_id not in (b"", _NO_IDENTIFIER)
        return f',"correlation_id":"{self._shown.identifier(correl_id)}"' if known else ""

    def _side(self, side: str, format: bytes, ccsid: int, encoding: int, header: bytes) -> str:
        return (
            f',"{side}_format":{_format_name(format)},"{side}_ccsid":{ccsid},"{side}_encoding":{encoding}'
            f',"{side}":{self._shown.header(header)}'
        )


def _stream(stream: str, style: str) -> str:
    return f',"stream":{json_text(stream)},"stream_style":{json_text(style)}' if stream else ""


def _dropped(fields: Sequence[Sequence[str]]) -> str:
    if not fields:
        return ""
    pairs = ",".join(f"[{json_text(name)},{json_text(reason)}]" for name, reason in fields)
    return f',"dropped_fields":[{pairs}]'
