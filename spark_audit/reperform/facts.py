"""The facts of one conversion in a record: all that re-performance may use."""

from dataclasses import dataclass

from spark_audit.reperform.header import Surroundings


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The fields of a record that has a `conversion`, with the bytes decoded; -1 and "" for a missing field.

    `client` and `exchange` are set if the header carries them: in a put for a target, with a `destination`.
    `correlation_id` (hex) is set if the command may make it a part of the client's identity. `protocol_level` is set
    for a PUBLISH or will from level 5 on, because such packets have properties. `at_us` is the record's time.
    `sent_bytes` is set for a PUBLISH with a MapMessage's JSON.
    """

    conversion: str
    command: str
    topic: str
    queue: str
    packet_type: int
    granted_qos: int
    published_qos: int
    is_retained: bool
    payload_bytes: int
    dropped_fields: tuple[tuple[str, str], ...]
    input: bytes
    input_format: str
    input_ccsid: int
    input_encoding: int
    output: bytes
    output_format: str
    output_ccsid: int
    output_encoding: int
    target: str = ""
    mode: str = ""
    destination: str = ""
    stream: str = ""
    stream_style: str = ""
    topic_filters: tuple[str, ...] = ()
    user: str = ""
    client: str = ""
    exchange: int = -1
    correlation_id: str = ""
    protocol_level: int = -1
    at_us: int = -1
    sent_bytes: int = -1

    @property
    def input_described(self) -> Surroundings:
        return Surroundings(format=self.input_format, coded_char_set_id=self.input_ccsid, encoding=self.input_encoding)

    @property
    def output_described(self) -> Surroundings:
        return Surroundings(
            format=self.output_format, coded_char_set_id=self.output_ccsid, encoding=self.output_encoding
        )
