"""TLS on a real socket of the loopback, against OpenSSL's own client side."""

import asyncio
import contextlib
import gc
import logging
import shutil
import socket
import ssl
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.config.limits import Limit
from gateway.listener.tls_transport import TlsTransport
from tests.certificate_authority import Authority
from tests.gateway.listener.running import Running, Table, run

PATIENCE_S = 60.0
CONNECT = bytes.fromhex("10 0E 0004 4D515454 04 02 003C 0002 6331")
VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def _server(pair: tuple[Path, Path], **more: object) -> Table:
    return {"tls": {"certificate": str(pair[0]), "key": str(pair[1]), **more}}


def _client(authority: Authority, *, version: str = "TLSv1.3", pair: tuple[Path, Path] | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority.certificate))
    context.minimum_version = context.maximum_version = VERSIONS[version]
    context.set_alpn_protocols(["mqtt"])
    if pair is not None:
        context.load_cert_chain(*pair)
    return context


class Visit:
    """What a client found."""

    def __init__(self, tls: ssl.SSLSocket) -> None:
        self.version = tls.version()
        self.alpn = tls.selected_alpn_protocol()
        self.compression = tls.compression()
        certificate = tls.getpeercert()
        assert certificate is not None
        subject = {key: value for ((key, value),) in certificate["subject"]}
        self.server = subject["commonName"]


def _visit(context: ssl.SSLContext, port: int, host: str | None = "localhost") -> Visit:
    """Connects, has bytes sent back, and goes."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as plain:
        context.check_hostname = host is not None
        with context.wrap_socket(plain, server_hostname=host) as tls:
            tls.sendall(b"there")
            received = b""
            while len(received) < 5:
                more = tls.recv(5)
                if not more:
                    raise ConnectionResetError
                received += more
            assert received == b"there"
            return Visit(tls)


async def _logged(caplog: pytest.LogCaptureFixture, text: str) -> None:
    async def wait() -> None:
        while text not in caplog.text:
            await asyncio.sleep(0.01)

    await asyncio.wait_for(wait(), PATIENCE_S)


@pytest.mark.parametrize("version", VERSIONS)
def test_bytes_come_and_go_by_both_versions_of_tls(authority: Authority, version: str) -> None:
    async def scenario(running: Running) -> None:
        visit = await asyncio.to_thread(_visit, _client(authority, version=version), running.port)
        assert (visit.version, visit.alpn, visit.compression) == (version, "mqtt", None)
        link = await running.only_link()
        assert link.certificate_user == ""
        assert link.peer.startswith("127.0.0.1:")
        await running.bridge.until(lambda: running.bridge.lost_links == [link])

    run(scenario, _server(authority.issue("gateway")))


def test_a_client_that_names_no_protocol_is_let_in(authority: Authority) -> None:
    async def scenario(running: Running) -> None:
        context = ssl.create_default_context(cafile=str(authority.certificate))
        assert (await asyncio.to_thread(_visit, context, running.port)).alpn is None

    run(scenario, _server(authority.issue("gateway")))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_that_names_foreign_protocols_alone_is_refused_with_the_alert_for_that(
    authority: Authority, caplog: pytest.LogCaptureFixture, version: str
) -> None:
    async def scenario(running: Running) -> None:
        context = _client(authority, version=version)
        context.set_alpn_protocols(["http/1.1", "h2"])
        with pytest.raises(ssl.SSLError, match=r"(?i)no.application.protocol"):
            await asyncio.to_thread(_visit, context, running.port)
        await _logged(caplog, "it offers to speak http/1.1, h2, and not mqtt")
        context.set_alpn_protocols(["h2", "mqtt"])
        assert (await asyncio.to_thread(_visit, context, running.port)).alpn == "mqtt"

    run(scenario, _server(authority.issue("gateway")))


def test_a_client_of_an_older_version_than_the_listener_takes_is_refused_in_one_line(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(running: Running) -> None:
        with pytest.raises(ssl.SSLError):
            await asyncio.to_thread(_visit, _client(authority, version="TLSv1.2"), running.port)
        await _logged(caplog, "reason=unsupported protocol")
        assert (await asyncio.to_thread(_visit, _client(authority), running.port)).version == "TLSv1.3"

    run(scenario, _server(authority.issue("gateway"), minimum_version="1.3"))


@pytest.mark.parametrize(
    ("host", "server"),
    [
        ("mqtt.example.com", "exact"),
        ("MQTT.Example.COM", "exact"),
        ("a.example.org", "wildcard"),
        ("a.b.example.org", "gateway"),
        ("other.example.com", "gateway"),
        (None, "gateway"),
    ],
)
def test_a_client_gets_the_certificate_of_the_host_that_it_asks_for(
    authority: Authority, host: str | None, server: str
) -> None:
    hosts = ("localhost", "other.example.com", "a.b.example.org")
    named = [
        {"name": name, "certificate": str(pair[0]), "key": str(pair[1])}
        for name, pair in (
            ("mqtt.example.com", authority.issue("exact", hosts=("mqtt.example.com",))),
            ("*.example.org", authority.issue("wildcard", hosts=("*.example.org",))),
        )
    ]

    async def scenario(running: Running) -> None:
        assert (await asyncio.to_thread(_visit, _client(authority), running.port, host)).server == server

    run(scenario, _server(authority.issue("gateway", hosts=hosts), server_name=named))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("kind", "user"), [("common_name", "pump-7"), ("subject", "CN=pump-7,O=Plant"), ("", "")])
def test_a_clients_certificate_names_its_user(authority: Authority, version: str, kind: str, user: str) -> None:
    async def scenario(running: Running) -> None:
        context = _client(authority, version=version, pair=authority.issue("pump-7"))
        await asyncio.to_thread(_visit, context, running.port)
        link = await running.only_link()
        assert link.certificate_user == user

    rules = {"client_authority": str(authority.certificate), "client_certificate": "required"}
    run(scenario, _server(authority.issue("gateway"), user_from_certificate=kind, **rules))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("shows", ["nothing", "one of another authority", "one that has expired"])
def test_a_client_without_a_valid_certificate_is_refused_where_one_is_required(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture, version: str, shows: str
) -> None:
    pair, reason = {
        "nothing": (None, "peer did not return a certificate"),
        "one of another authority": (Authority(tmp_path, "other").issue("pump-8"), "the client's certificate: "),
        "one that has expired": (authority.issue("pump-9", days=-1), "certificate has expired"),
    }[shows]

    async def scenario(running: Running) -> None:
        with pytest.raises((ssl.SSLError, ConnectionError)):  # with TLS 1.3 it learns of it when it reads
            await asyncio.to_thread(_visit, _client(authority, version=version, pair=pair), running.port)
        await _logged(caplog, reason)
        assert running.bridge.links == []
        good = _client(authority, version=version, pair=authority.issue("pump-7"))
        await asyncio.to_thread(_visit, good, running.port)

    rules = {"client_authority": str(authority.certificate), "client_certificate": "required"}
    run(scenario, _server(authority.issue("gateway"), **rules))
    assert "Traceback" not in caplog.text


def test_a_certificate_that_is_optional_may_be_left_out(authority: Authority) -> None:
    async def scenario(running: Running) -> None:
        await asyncio.to_thread(_visit, _client(authority), running.port)
        assert (await running.only_link()).certificate_user == ""

    rules = {"client_authority": str(authority.certificate), "client_certificate": "optional"}
    run(scenario, _server(authority.issue("gateway"), user_from_certificate="common_name", **rules))


def test_what_was_sent_before_a_close_arrives(authority: Authority) -> None:
    async def scenario(running: Running) -> None:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", running.port, ssl=_client(authority), server_hostname="localhost"
        )
        writer.write(b"x")
        link = await running.only_link()
        link.send(b"last ")
        link.send(b"words")
        link.close("because")
        assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b"last words"
        writer.close()
        await running.bridge.until(lambda: running.bridge.lost_links == [link])

    run(scenario, _server(authority.issue("gateway")), answers=False)


def test_a_peer_that_does_not_read_cannot_be_sent_more_until_it_does(authority: Authority) -> None:
    async def scenario(running: Running) -> None:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", running.port, ssl=_client(authority), server_hostname="localhost"
        )
        writer.write(b"x")
        link = await running.only_link()
        sent = 0
        while link.can_send:
            link.send(bytes(65_536))
            sent += 65_536
            await asyncio.sleep(0)
        assert running.bridge.resumed_links == []
        assert len(await reader.readexactly(sent)) == sent
        await running.bridge.until(lambda: running.bridge.resumed_links == [link])
        assert link.can_send
        writer.close()

    run(scenario, _server(authority.issue("gateway")), answers=False, maximum_unsent_bytes=65_536)


def test_a_paused_link_is_not_read(authority: Authority) -> None:
    async def scenario(running: Running) -> None:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", running.port, ssl=_client(authority), server_hostname="localhost"
        )
        writer.write(b"x")
        link = await running.only_link()
        link.pause_reading()
        writer.write(b"later")
        await writer.drain()
        link.send(b"still here")
        await reader.readexactly(10)
        assert running.bridge.received == b"x"
        link.resume_reading()
        await running.bridge.until(lambda: running.bridge.received == b"xlater")
        writer.close()

    run(scenario, _server(authority.issue("gateway")), answers=False)


# -- what is no TLS ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("beginning", "reason"),
    [
        (CONNECT, "wrong version number: the client sent no TLS, as to a port without it"),
        (b"GET /mqtt HTTP/1.1\r\n\r\n", "http request"),
        (bytes(300), "wrong version number"),
        (bytes.fromhex("16 0301 0005 0102030405"), "excessive message size"),
        (bytes.fromhex("16 0301 FFFF") + b"\x01" * 100, "packet length too long"),
    ],
    ids=["mqtt", "http", "zeros", "a record of garbage", "a record too long"],
)
def test_what_is_no_handshake_is_refused_in_one_line_and_others_feel_nothing(
    authority: Authority, caplog: pytest.LogCaptureFixture, beginning: bytes, reason: str
) -> None:
    async def scenario(running: Running) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(beginning)
        with contextlib.suppress(ConnectionError):  # an alert of TLS, and the end
            await asyncio.wait_for(reader.read(), PATIENCE_S)
        writer.close()
        await _logged(caplog, "connection refused listener=tested peer=127.0.0.1:")
        await asyncio.to_thread(_visit, _client(authority), running.port)

    run(scenario, _server(authority.issue("gateway")))
    (refusal,) = [each for each in caplog.records if each.getMessage().startswith("connection refused ")]
    assert reason in refusal.getMessage()
    assert refusal.exc_info is None


def test_what_is_no_handshake_is_not_kept(authority: Authority, caplog: pytest.LogCaptureFixture) -> None:
    """An error that knew the call in which it came would keep all that was read, until Python looks for cycles."""

    async def scenario(running: Running) -> None:
        for _ in range(5):
            reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
            with contextlib.suppress(ConnectionError):
                writer.write(bytes(200_000))
                await asyncio.wait_for(reader.read(), PATIENCE_S)
            writer.transport.abort()
        await _logged(caplog, "connection refused listener=tested peer=127.0.0.1:")
        async with asyncio.timeout(PATIENCE_S):
            while any(isinstance(each, TlsTransport) for each in gc.get_objects()):
                await asyncio.sleep(0.05)

    gc.collect()
    gc.disable()
    try:
        run(scenario, _server(authority.issue("gateway")))
    finally:
        gc.enable()


@pytest.mark.parametrize("beginning", [b"", bytes.fromhex("16 0301 0200 01")], ids=["nothing", "half a record"])
def test_a_handshake_that_takes_too_long_is_ended(
    authority: Authority, caplog: pytest.LogCaptureFixture, beginning: bytes
) -> None:
    async def scenario(running: Running) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(beginning)
        assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
        writer.close()
        await _logged(caplog, "in=TLS handshake reason=it took too long")
        assert running.refused(Limit.CONNECT_TIMEOUT) == 1

    run(scenario, _server(authority.issue("gateway")), connect_timeout_s=0.2)


def test_garbage_behind_the_handshake_loses_that_connection_alone(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    def hostile(port: int) -> None:
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as plain:
            tls = _client(authority).wrap_socket(plain, server_hostname="localhost")
            tls.sendall(b"there")
            assert tls.recv(5) == b"there"
            with socket.socket(fileno=tls.detach()) as raw, contextlib.suppress(ConnectionError):
                raw.settimeout(PATIENCE_S)
                raw.sendall(b"no record of TLS at all")
                while raw.recv(1_000):
                    pass

    async def scenario(running: Running) -> None:
        await asyncio.to_thread(hostile, running.port)
        link = await running.only_link()
        await running.bridge.until(lambda: running.bridge.lost_links == [link])
        await asyncio.to_thread(_visit, _client(authority), running.port)

    run(scenario, _server(authority.issue("gateway")))
    assert "Traceback" not in caplog.text


def test_where_too_many_handshakes_wait_the_oldest_is_ended(
    authority: Authority,
) -> None:
    async def scenario(running: Running) -> None:
        silent = [await asyncio.open_connection("127.0.0.1", running.port) for _ in range(3)]
        assert await asyncio.wait_for(silent[0][0].read(), PATIENCE_S) == b""
        await asyncio.to_thread(_visit, _client(authority), running.port)
        assert await asyncio.wait_for(silent[1][0].read(), PATIENCE_S) == b""
        assert running.refused(Limit.WAITING_CONNECTIONS) == 2
        for _, writer in silent:
            writer.close()

    run(scenario, _server(authority.issue("gateway")), maximum_waiting_connections=2)


@pytest.mark.parametrize("is_balanced", [False, True], ids=["directly", "behind a balancer"])
def test_past_the_connection_rate_of_an_address_there_is_no_handshake(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, is_balanced: bool
) -> None:
    header = bytes.fromhex("0D0A0D0A000D0A515549540A 21 11 000C C0000201 C6336402 DC04 075B") if is_balanced else b""

    def is_served(port: int) -> bool:
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as plain:
            plain.sendall(header)
            try:
                with _client(authority).wrap_socket(plain, server_hostname="localhost") as tls:
                    tls.sendall(b"there")
                    return tls.recv(5) == b"there"
            except (ssl.SSLError, ConnectionError):
                return False

    async def scenario(running: Running) -> None:
        monkeypatch.setattr(running.bridge.admission, "_now_s", lambda: 1_000.0)  # ten at once, and none comes back
        served = [await asyncio.to_thread(is_served, running.port) for _ in range(12)]
        assert served == [True] * 10 + [False] * 2
        assert running.refused(Limit.CONNECTION_RATE_PER_ADDRESS) == 2
        assert len(running.bridge.links) == 10

    run(
        scenario,
        {**_server(authority.issue("gateway")), "proxy_protocol": is_balanced},
        connection_rate_per_address=1,
    )


def test_a_client_may_not_renegotiate(authority: Authority) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("the command openssl is not installed: no other client here can ask for it")

    async def scenario(running: Running) -> None:
        client = await asyncio.create_subprocess_exec(
            *(openssl, "s_client", "-tls1_2", "-connect", f"127.0.0.1:{running.port}"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        assert client.stdin is not None
        client.stdin.write(b"there\n")
        await client.stdin.drain()
        await running.only_link()
        client.stdin.write(b"R\n")  # a command to it
        output, _ = await asyncio.wait_for(client.communicate(), PATIENCE_S)
        assert b"RENEGOTIATING" in output
        assert b"no renegotiation" in output

    run(scenario, _server(authority.issue("gateway")))


# -- other files -------------------------------------------------------------------------------------------------------


def _replace(files: tuple[Path, Path], others: tuple[Path, Path]) -> None:
    for file, other in zip(files, others, strict=True):
        other.replace(file)


def _is_asked(running: Running) -> None:
    running.listeners.ask()


@pytest.mark.parametrize("asked", [_is_asked, lambda _running: None], ids=["SIGHUP", "by itself"])
def test_a_new_certificate_is_taken_up_and_open_connections_stay(
    authority: Authority, caplog: pytest.LogCaptureFixture, asked: Callable[[Running], None]
) -> None:
    caplog.set_level(logging.INFO)
    files = authority.issue("first")

    async def scenario(running: Running) -> None:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", running.port, ssl=_client(authority), server_hostname="localhost"
        )
        _replace(files, authority.issue("second"))
        asked(running)
        await _logged(caplog, "file read again")
        assert (await asyncio.to_thread(_visit, _client(authority), running.port)).server == "second"
        writer.write(b"still")
        assert await reader.readexactly(5) == b"still"
        writer.close()

    run(scenario, _server(files))


def _certified(listener_pair: tuple[Path, Path], authorities: Path) -> Table:
    return _server(
        listener_pair,
        client_authority=str(authorities),
        client_certificate="required",
        user_from_certificate="common_name",
    )


async def _connected(
    running: Running, authority: Authority, pair: tuple[Path, Path]
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", running.port, ssl=_client(authority, pair=pair), server_hostname="localhost"
    )
    writer.write(b"here")
    assert await asyncio.wait_for(reader.readexactly(4), PATIENCE_S) == b"here"
    return reader, writer


def test_whom_only_an_authority_vouched_for_that_is_taken_out_is_disconnected(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = Authority(tmp_path, "other")
    both = tmp_path / "both.pem"
    both.write_bytes(authority.certificate.read_bytes() + other.certificate.read_bytes())

    async def scenario(running: Running) -> None:
        stays = await _connected(running, authority, authority.issue("pump-7"))
        goes = await _connected(running, authority, other.issue("pump-8"))
        both.write_bytes(authority.certificate.read_bytes())
        running.listeners.ask()
        assert await asyncio.wait_for(goes[0].read(), PATIENCE_S) == b""
        stays[1].write(b"still")
        assert await asyncio.wait_for(stays[0].readexactly(5), PATIENCE_S) == b"still"
        assert [link.certificate_subject for link in running.bridge.links if link.is_open] == ["CN=pump-7,O=Plant"]
        assert [link.certificate_user for link in running.bridge.links if link.is_open] == ["pump-7"]
        for _, writer in (stays, goes):
            writer.close()

    run(scenario, _certified(authority.issue("gateway"), both))
    assert "reason=the authority of its certificate is no longer trusted" in caplog.text


def test_a_connection_ends_with_the_certificate_of_its_client(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(running: Running) -> None:
        reader, writer = await _connected(running, authority, authority.issue("pump-7", days=1))
        link = await running.only_link()
        ends_s = link.certificate_ends_s
        monkeypatch.setattr(time, "time", lambda: ends_s)
        await running.listeners.tick()
        assert link.is_open
        monkeypatch.setattr(time, "time", lambda: ends_s + 1)
        await running.listeners.tick()
        monkeypatch.undo()
        assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
        writer.close()

    run(scenario, _certified(authority.issue("gateway"), authority.certificate))
    assert "reason=its certificate has expired" in caplog.text


def test_files_that_do_not_fit_change_nothing_and_are_logged(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    files = authority.issue("first")

    async def scenario(running: Running) -> None:
        certificate, _ = authority.issue("second")
        certificate.replace(files[0])
        running.listeners.ask()
        await _logged(caplog, "is not the key of the certificate")
        assert (await asyncio.to_thread(_visit, _client(authority), running.port)).server == "first"
        _replace(files, authority.issue("late", days=-1))
        running.listeners.ask()
        await _logged(caplog, "reason=expired on")
        assert (await asyncio.to_thread(_visit, _client(authority), running.port)).server == "first"

    run(scenario, _server(files))
