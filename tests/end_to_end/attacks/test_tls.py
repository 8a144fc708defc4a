"""Handshakes that are begun, broken or repeated."""

import contextlib
import os
import shutil
import socket
import ssl
import subprocess
import threading

import pytest

from tests.end_to_end.attacks.attacker import PATIENCE_S, Attacker, Crowd, connect
from tests.end_to_end.attacks.bystander import watched
from tests.end_to_end.attacks.conftest import Scale
from tests.end_to_end.gateway_process import Gateway

pytestmark = pytest.mark.proof

#: The aim is some 20 KB for each that is on its way.
KIB_A_HANDSHAKE = 80


def _client_hello() -> bytes:
    """What a client of Python's ssl says first."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = _trusting().wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def _trusting(version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version = context.maximum_version = version
    return context


@pytest.mark.parametrize("begun", ["nothing", "half a ClientHello", "a ClientHello"])
def test_handshakes_that_are_not_finished_end_in_time(
    attacked: Gateway, tls_port: int, scale: Scale, begun: str
) -> None:
    hello = _client_hello()
    sent = {"nothing": b"", "half a ClientHello": hello[: len(hello) // 2], "a ClientHello": hello}[begun]
    count = scale(200, 3_000)
    with (
        watched(attacked, memory_mib=60 + count * KIB_A_HANDSHAKE / 1_024) as watch,
        Crowd(tls_port, count) as crowd,
    ):
        crowd.send(lambda _: sent)
        watch.others_are_served()
        crowd.read_until(lambda _: False)
        assert crowd.ended == count


def test_what_is_no_tls_is_closed_at_once(attacked: Gateway, tls_port: int, scale: Scale) -> None:
    with watched(attacked, memory_mib=60):
        for _ in range(scale(50, 1_000)):
            with Attacker(tls_port) as attacker:
                attacker.send(connect("without-tls"))
                answer = attacker.read_to_end()
                assert answer == b"" or answer[0] == 21  # an alert (RFC 8446 section 5.1)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_flood_of_whole_handshakes_leaves_nothing_behind(
    attacked: Gateway, tls_port: int, scale: Scale, version: ssl.TLSVersion
) -> None:
    context = _trusting(version)
    with watched(attacked, memory_mib=80):
        for _ in range(scale(60, 2_000)):
            with socket.create_connection(("127.0.0.1", tls_port), PATIENCE_S) as plain, context.wrap_socket(plain):
                pass


@pytest.mark.parametrize(
    ("version", "command", "answer"),
    [("-tls1_2", b"R\n", b"no renegotiation"), ("-tls1_3", b"K\n", b"")],
    ids=["renegotiation of TLS 1.2", "key updates of TLS 1.3"],
)
def test_a_connection_does_not_negotiate_again_and_again(
    attacked: Gateway, tls_port: int, version: str, command: bytes, answer: bytes
) -> None:
    """`openssl s_client` renegotiates at R, and changes keys at K; without CONNECT it has two seconds."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("the command openssl is not installed (apt-get install openssl)")
    with watched(attacked, memory_mib=60) as watch:
        process = subprocess.Popen(
            [openssl, "s_client", "-connect", f"127.0.0.1:{tls_port}", version],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        output = bytearray()
        reader = threading.Thread(target=_gather, args=(process, output), daemon=True)
        reader.start()
        try:
            _ask_until_it_ends(process, command)
        finally:
            process.kill()
            assert process.stdin is not None
            with contextlib.suppress(OSError):
                process.stdin.close()
            process.wait(PATIENCE_S)
            reader.join(PATIENCE_S)
        watch.others_are_served()
    assert answer in output, bytes(output[-2_000:])


def test_a_flood_of_key_updates_ends_its_connection(attacked: Gateway, tls_port: int) -> None:
    """Thousands a second: `openssl s_client` sends one for each K that comes in a read of its own (O_DIRECT)."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("the command openssl is not installed (apt-get install openssl)")
    read_end, write_end = os.pipe2(os.O_DIRECT)
    with watched(attacked, memory_mib=60) as watch, os.fdopen(write_end, "wb", buffering=0) as commands:
        process = subprocess.Popen(
            [openssl, "s_client", "-connect", f"127.0.0.1:{tls_port}", "-tls1_3"],
            stdin=read_end,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_end)
        try:
            with contextlib.suppress(BrokenPipeError):
                commands.write(connect("key-updates"))
                for _ in range(1_000_000):
                    commands.write(b"k\n")
            process.wait(PATIENCE_S)
        finally:
            process.kill()
        watch.others_are_served()
    closed = attacked.wait_for_log("connection closed", client="^key-updates$")
    assert closed["reason"] == "its TLS records have almost no content"


def _ask_until_it_ends(process: subprocess.Popen[bytes], command: bytes) -> None:
    """A command a line, until the connection has ended and with it the process."""
    assert process.stdin is not None
    pause = threading.Event()
    for _ in range(600):
        try:
            process.stdin.write(command)
            process.stdin.flush()
        except OSError:
            return
        if process.poll() is not None:
            return
        pause.wait(0.02)  # s_client takes one command a read


def _gather(process: subprocess.Popen[bytes], output: bytearray) -> None:
    assert process.stdout is not None
    with process.stdout as stream:
        while data := stream.read1(4_096):
            output.extend(data)
