"""What IBM's client really sent (captured.toml) is read, and written again as it came."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

from mq_adapters.client_channel.asynchronous import RequestMsgs
from mq_adapters.client_channel.fields import BodyReader
from mq_adapters.client_channel.identification import ConAuthInfo, UserIdData
from mq_adapters.client_channel.initial_data import InitialData
from mq_adapters.client_channel.parameters import Content
from mq_adapters.client_channel.segments import CALLS, Segment, SegmentReader, SegmentType, write_segment
from mq_adapters.client_channel.status import Notification, SocketAction
from mq_adapters.client_channel.verbs import ApiHeader, read_request
from tests.every_case import for_every

_SEGMENTS = tomllib.loads(Path(__file__).with_name("captured.toml").read_text())["segment"]
_OTHERS: Mapping[int, type[Content]] = {
    SegmentType.INITIAL_DATA: InitialData,
    SegmentType.USERID_DATA: UserIdData,
    SegmentType.CONAUTH_INFO: ConAuthInfo,
    SegmentType.SOCKET_ACTION: SocketAction,
    SegmentType.REQUEST_MSGS: RequestMsgs,
    SegmentType.NOTIFICATION: Notification,
}


def _contents(segment: Segment) -> list[Content]:
    """What a segment holds, in its order."""
    body = BodyReader(segment.body, segment.byte_order)
    if segment.type in CALLS:
        return [ApiHeader.read(body), read_request(segment.type, body)]
    return [_OTHERS[segment.type].read(body)] if segment.type in _OTHERS else []


@for_every({segment["name"]: segment for segment in _SEGMENTS})
def test_a_captured_segment_is_read_and_written_as_it_came(captured: dict[str, str]) -> None:
    data = bytes.fromhex(captured["bytes"])
    (segment,) = SegmentReader().feed(data)
    assert write_segment(segment) == data
    assert SegmentType(segment.type).name == captured["type"]
    contents = _contents(segment)
    names = {type(each).__name__ for content in contents for each in (content, getattr(content, "content", None))}
    assert {captured["call"]} <= names if "call" in captured else segment.type not in CALLS
    written = b"".join(content.write(segment.byte_order) for content in contents)
    assert len(segment.body) - len(written) < 4, "only bytes that fill up are left out"
    assert _without_filling(written) == _without_filling(segment.body[: len(written)])


def _without_filling(data: bytes) -> bytes:
    """A text that is empty may be zeros when it comes, and is written as blanks."""
    return data.replace(b" ", b"\0")


def test_both_kinds_of_client_and_every_usual_call_are_there() -> None:
    types = {segment["type"] for segment in _SEGMENTS}
    assert {"MQCONN", "MQOPEN", "MQPUT", "MQGET", "MQINQ", "MQSUB", "SPI", "REQUEST_MSGS", "CONAUTH_INFO"} <= types
    assert {segment["name"].split(", ")[1] for segment in _SEGMENTS} == {"classes for Java", "classes for JMS"}
