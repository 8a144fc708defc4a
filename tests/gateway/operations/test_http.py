"""Conversion over HTTP: a real client on loopback, and every answer held against the description that is served."""

import asyncio
import base64
import json
import zlib
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any

import aiohttp
import pytest

from gateway.operations.http import INLINE_BYTES, HttpServer
from mappings.table import TABLE_VERSION
from tests.headers import mqrfh, mqrfh2

BODY = b"\x00\xff 21.5 \xe9"
MAXIMUM_BYTES = 200_000
OPENAPI = json.loads(files("gateway.operations").joinpath("openapi.json").read_text())


PUBLISH = mqrfh("MQPSCommand Publish MQPSStreamName STOCK MQPSTopic a/b")
PUBLISH_2 = mqrfh2("<psc><Command>Publish</Command><Topic>a/b</Topic></psc>")
NAMED = mqrfh("MQPSCommand RegSub MQPSTopic a MQPSSubName pump")


def no_metrics(accept: str) -> tuple[bytes, str]:
    """The page of a gateway that counts nothing; its own test is tests/gateway/test_metrics.py."""
    return b"# " + accept.encode() + b"\n", "text/plain; charset=utf-8"


class Answer:
    """A response, held against the OpenAPI document before a test sees it."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self) -> dict[str, Any]:
        found = json.loads(self.body)
        assert isinstance(found, dict)
        return found


Request = Callable[..., Answer]


@pytest.fixture
def ask() -> Request:
    """One request to a server of its own: `ask("POST", "/convert?to=mqrfh2", body)`."""

    def send(method: str, path: str, data: bytes | None = None, *, is_ready: bool = True, **headers: str) -> Answer:
        async def once(session: aiohttp.ClientSession, url: str) -> Answer:
            async with session.request(method, url + path, data=data, headers=headers) as response:
                return Answer(response.status, dict(response.headers), await response.read())

        answer = _with_server(once, is_ready=is_ready)
        _check_description(method, path, answer)
        return answer

    return send


def _server(maximum_request_bytes: int, *, is_ready: bool = True) -> HttpServer:
    return HttpServer(
        maximum_request_bytes=maximum_request_bytes,
        maximum_connections=10,
        request_timeout_s=60,
        is_ready=lambda: is_ready,
        metrics=no_metrics,
    )


def _with_server(use: Callable[[aiohttp.ClientSession, str], Awaitable[Answer]], *, is_ready: bool = True) -> Answer:
    async def run() -> Answer:
        server = _server(MAXIMUM_BYTES, is_ready=is_ready)
        port = await server.start("127.0.0.1", 0)
        try:
            async with aiohttp.ClientSession() as session:
                return await use(session, f"http://127.0.0.1:{port}")
        finally:
            await server.stop()

    return asyncio.run(run())


# -- the description -------------------------------------------------------------------------------------------------


def _check_description(method: str, path: str, answer: Answer) -> None:
    """The answer is one that the OpenAPI document has for that operation; other paths have none."""
    operation = OPENAPI["paths"].get(path.partition("?")[0], {}).get(method.lower())
    if operation is None:
        assert answer.status in (404, 405)
        _check(answer.json, {"$ref": "#/components/schemas/Problem"})
        return
    described = _resolved(operation["responses"][str(answer.status)])
    media_type = answer.headers["Content-Type"].partition(";")[0]
    schema = described["content"][media_type]["schema"]
    for name, header in described.get("headers", {}).items():
        assert not header.get("required") or name in answer.headers
    if media_type == "application/json":
        _check(answer.json, schema)


def _resolved(part: dict[str, Any]) -> dict[str, Any]:
    found: Any = part
    while "$ref" in found:
        names = found["$ref"].removeprefix("#/").split("/")
        found = OPENAPI
        for name in names:
            found = found[name]
    assert isinstance(found, dict)
    return found


TYPES = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "null": type(None)}


def _check(value: Any, schema: dict[str, Any]) -> None:
    """The parts of JSON Schema that the document uses."""
    schema = _resolved(schema)
    names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    assert isinstance(value, tuple(TYPES[name] for name in names)), (value, schema)
    assert value in schema.get("enum", [value])
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        assert set(schema.get("required", [])) <= set(value)
        assert set(value) <= set(properties) or schema.get("additionalProperties") is not False, value
        for name in set(value) & set(properties):
            _check(value[name], properties[name])
    if isinstance(value, list):
        for item in value:
            _check(item, schema["items"])


def test_description_is_served_as_it_stands_in_the_repository(ask: Request) -> None:
    answer = ask("GET", "/openapi.json")
    assert answer.json == OPENAPI
    assert answer.json["openapi"].startswith("3.1.")


def test_description_names_each_parameter_that_the_server_reads(ask: Request) -> None:
    parameters = OPENAPI["paths"]["/convert"]["post"]["parameters"]
    hint = ask("POST", "/convert?nonsense=1", b"").json["hint"]
    assert [name.strip() for name in hint.partition("there are ")[2].split(",")] == [one["name"] for one in parameters]


# -- converting ------------------------------------------------------------------------------------------------------


def test_bytes_in_are_bytes_out_with_format_and_table_version(ask: Request) -> None:
    answer = ask("POST", "/convert?to=mqrfh2", PUBLISH + BODY)
    assert (answer.status, answer.body) == (200, PUBLISH_2 + BODY)
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert (answer.headers["X-RFH-Format"], answer.headers["X-RFH-Table-Version"]) == ("MQHRF2", TABLE_VERSION)


def test_json_has_the_message_its_format_and_the_report(ask: Request) -> None:
    answer = ask("POST", "/convert?to=mqrfh2&mode=strict", PUBLISH + BODY, Accept="application/json")
    told = answer.json
    assert told["format"] == "MQHRF2"
    assert base64.b64decode(told["body"]) == PUBLISH_2 + BODY
    outcomes = {field["name"]: field["outcome"] for field in told["report"]["fields"]}
    assert outcomes == {"MQPSCommand": "renamed", "MQPSStreamName": "dropped", "MQPSTopic": "renamed"}
    assert (told["report"]["mode"], told["report"]["table_version"]) == ("strict", TABLE_VERSION)


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("*/*", "application/octet-stream"),
        ("text/html", "application/octet-stream"),
        ("text/plain, application/json;q=0.9", "application/json"),
        ("application/octet-stream, application/json", "application/octet-stream"),
        ("APPLICATION/JSON", "application/json"),
    ],
)
def test_accept_chooses_between_bytes_and_json(ask: Request, accept: str, media_type: str) -> None:
    answer = ask("POST", "/convert?to=mqrfh2", PUBLISH, Accept=accept)
    assert answer.headers["Content-Type"].partition(";")[0] == media_type


def test_mode_extended_copies_what_strict_drops(ask: Request) -> None:
    strict = ask("POST", "/convert?to=mqrfh2", NAMED)
    extended = ask("POST", "/convert?to=mqrfh2&mode=extended", NAMED)
    assert b"SubName" not in strict.body
    assert b"<SubName>pump</SubName>" in extended.body


def test_message_in_the_wanted_format_comes_back_unchanged(ask: Request) -> None:
    assert ask("POST", "/convert?to=mqrfh", PUBLISH + BODY).body == PUBLISH + BODY


def test_what_the_client_says_of_the_first_header_goes_before_what_is_found(ask: Request) -> None:
    known = ask("POST", "/convert?to=mqrfh2&format=MQHRF&ccsid=1208&encoding=546", PUBLISH + BODY)
    assert known.body == PUBLISH_2 + BODY
    wrong = ask("POST", "/convert?to=mqrfh2&encoding=273", PUBLISH + BODY)
    assert (wrong.status, wrong.json["reason_name"]) == (422, "MQRC_RFH_ERROR")


def test_large_message_is_converted_beside_the_event_loop(ask: Request) -> None:
    body = bytes(INLINE_BYTES + 1)
    assert ask("POST", "/convert?to=mqrfh2", PUBLISH + body).body == PUBLISH_2 + body


# -- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "reason_code", "reason_name"),
    [
        (b"", 2334, "MQRC_RFH_ERROR"),
        (b"hello world", 2334, "MQRC_RFH_ERROR"),
        (mqrfh('MQPSCommand Publish MQPSTopic "a'), 2335, "MQRC_RFH_STRING_ERROR"),
        (mqrfh("MQPSCommand RegPub MQPSTopic a"), 2336, "MQRC_RFH_COMMAND_ERROR"),
    ],
)
@pytest.mark.parametrize("accept", ["*/*", "application/json"])
def test_message_that_cannot_be_converted_is_422_with_the_reason(
    ask: Request, data: bytes, reason_code: int, reason_name: str, accept: str
) -> None:
    answer = ask("POST", "/convert?to=mqrfh2", data, Accept=accept)
    assert answer.status == 422
    assert (answer.json["reason_code"], answer.json["reason_name"]) == (reason_code, reason_name)
    assert answer.json["hint"]


def test_error_in_a_structure_tells_its_offset(ask: Request) -> None:
    assert ask("POST", "/convert?to=mqrfh2", PUBLISH[:20]).json["offset"] is not None


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("", "to"),
        ("?to=", "to"),
        ("?to=mqrfh3", "to"),
        ("?to=mqrfh2&mode=loose", "mode"),
        ("?to=mqrfh2&format=MQHRF2MQHRF2", "format"),
        ("?to=mqrfh2&format=%C3%A9", "format"),
        ("?to=mqrfh2&ccsid=utf8", "ccsid"),
        ("?to=mqrfh2&ccsid=99999999999", "ccsid"),
        ("?to=mqrfh2&encoding=9999999999", "encoding"),
        ("?to=mqrfh2&encoding=1.5", "encoding"),
        ("?to=mqrfh2&tp=x", "tp"),
    ],
)
def test_wrong_parameter_is_400_and_named(ask: Request, query: str, parameter: str) -> None:
    answer = ask("POST", f"/convert{query}", PUBLISH)
    assert (answer.status, answer.json["parameter"], answer.json["reason_code"]) == (400, parameter, None)


def test_longer_message_than_the_limit_is_413_and_the_limit_itself_is_not(ask: Request) -> None:
    room = bytes(MAXIMUM_BYTES - len(PUBLISH))
    assert ask("POST", "/convert?to=mqrfh2", PUBLISH + room).status == 200
    answer = ask("POST", "/convert?to=mqrfh2", PUBLISH + room + b"\0")
    assert (answer.status, answer.json["reason_name"]) == (413, "request_too_large")
    assert "http.maximum_request_bytes" in answer.json["hint"]


@pytest.mark.parametrize("encoding", ["deflate", "gzip", "br", "gzip, deflate"])
def test_compressed_message_is_415_and_nothing_is_unpacked(ask: Request, encoding: str) -> None:
    """One megabyte of zeros that were compressed is a gigabyte, which took the event loop seven seconds."""
    answer = ask("POST", "/convert?to=mqrfh2", zlib.compress(PUBLISH), **{"Content-Encoding": encoding})
    assert (answer.status, answer.json["reason_name"]) == (415, "unsupported_content_encoding")


def test_message_that_is_said_to_be_as_it_is_is_converted(ask: Request) -> None:
    assert ask("POST", "/convert?to=mqrfh2", PUBLISH, **{"Content-Encoding": "identity"}).status == 200


def test_length_that_is_not_told_does_not_get_round_the_limit() -> None:
    async def chunks() -> Any:
        for _ in range(5):
            yield bytes(MAXIMUM_BYTES // 4)

    async def once(session: aiohttp.ClientSession, url: str) -> Answer:
        async with session.post(url + "/convert?to=mqrfh2", data=chunks()) as response:
            return Answer(response.status, dict(response.headers), await response.read())

    assert _with_server(once).status == 413


@pytest.mark.parametrize("body", [b"zz\r\n", b"5\r\nhelloXX0\r\n", b"-1\r\n", b"5\r\nhel"])
def test_a_malformed_body_in_chunks_is_one_line_in_the_log(body: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """It comes behind the headers, when the handler reads it already."""

    async def once(_session: aiohttp.ClientSession, url: str) -> Answer:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        writer.write(b"POST /convert?to=mqrfh2 HTTP/1.1\r\nHost: a\r\n")
        writer.write(b"Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 100")
        writer.write(b"5\r\nhello\r\n" + body)
        writer.write_eof()
        await reader.read()
        writer.close()
        return Answer(0, {}, b"")

    with caplog.at_level("INFO"):
        _with_server(once)
    assert [record for record in caplog.records if record.levelname == "ERROR" or record.exc_info] == []
    assert caplog.text.count("request refused listener=http peer=127.0.0.1") == 1


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/convert", 405), ("GET", "/", 404), ("POST", "/health", 405)]
)
def test_what_is_not_there_is_an_error_in_json(ask: Request, method: str, path: str, status: int) -> None:
    answer = ask(method, path)
    assert answer.status == status
    assert "/openapi.json" in answer.json["hint"]


def test_fault_of_the_program_is_500_in_json(ask: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.conversion.message.convert", lambda *_, **__: 1 // 0)
    answer = ask("POST", "/convert?to=mqrfh2", PUBLISH)
    assert (answer.status, answer.json["reason_name"]) == (500, "internal_error")


# -- health ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("is_ready", "status"), [(True, 200), (False, 503)])
def test_health_says_whether_the_gateway_serves(ask: Request, is_ready: bool, status: int) -> None:
    answer = ask("GET", "/health", is_ready=is_ready)
    assert (answer.status, answer.json) == (status, {"live": True, "ready": is_ready})


def test_port_that_is_taken_is_an_error_and_leaves_nothing_behind() -> None:
    async def run() -> None:
        first, second = _server(1), _server(1)
        port = await first.start("127.0.0.1", 0)
        try:
            with pytest.raises(OSError, match="in use"):
                await second.start("127.0.0.1", port)
        finally:
            await second.stop()
            await first.stop()

    asyncio.run(run())
