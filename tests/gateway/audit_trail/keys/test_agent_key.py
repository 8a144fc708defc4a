"""A real ssh-agent signs, and whatever another one answers costs bounded time and is no signature."""

import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gateway.audit_trail.keys.agent_key import AgentKey
from gateway.audit_trail.keys.remote_key import KeyAway, KeyPlace, remote_key
from spark_audit.trail.signature import is_signature_of, public_key_of
from tests.ssh_agent import SshAgent, running_agent


@pytest.fixture
def key() -> Ed25519PrivateKey:
    return Ed25519PrivateKey.generate()


@pytest.fixture
def place(key, tmp_path_factory) -> KeyPlace:
    folder = tmp_path_factory.mktemp("agent")
    return KeyPlace(type="ssh-agent", public_key=public_key_of(key), socket=str(folder / "socket"), timeout_s=10)


@pytest.fixture
def agent(tmp_path_factory) -> Iterator[SshAgent]:
    with running_agent(tmp_path_factory.mktemp("agent")) as running:
        yield running


def test_an_agent_signs_by_the_key_that_was_added(agent, place, key) -> None:
    there = remote_key(replace(place, socket=str(agent.socket)))
    assert there.public_keys() == ()
    with pytest.raises(KeyAway, match="does not have the key"):
        there.sign(b"digest")
    other = Ed25519PrivateKey.generate()
    agent.add(other)
    agent.add(key)
    assert there.public_keys() == (public_key_of(other), public_key_of(key))
    assert is_signature_of(public_key_of(key), there.sign(b"digest"), b"digest")
    assert not is_signature_of(public_key_of(key), there.sign(b"digest"), b"another")


def test_an_agent_that_is_not_there_is_away(place) -> None:
    with pytest.raises(KeyAway, match="does not answer"):
        AgentKey(place).sign(b"digest")


def _text(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


ANSWERS = {
    "nothing": (b"", "hangs up"),
    "half a length": (b"\0\0", "hangs up"),
    "no bytes": (_text(b""), "has 0 bytes"),
    "too many bytes": (struct.pack(">I", 2**31), "has 2147483648 bytes"),
    "fewer than it says": (struct.pack(">I", 99) + b"\x0e", "hangs up"),
    "a refusal": (_text(b"\x05"), "refuses"),
    "a cut signature": (_text(b"\x0e" + struct.pack(">I", 99) + b"?"), "is cut"),
    "no signature": (_text(b"\x0e"), "no signature of Ed25519"),
    "a signature of another kind": (_text(b"\x0e" + _text(_text(b"ssh-rsa") + _text(b"?" * 64))), "no signature of"),
    "a short signature": (_text(b"\x0e" + _text(_text(b"ssh-ed25519") + _text(b"?" * 63))), "no signature of"),
    "silence": (None, "does not answer"),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_what_is_no_answer_of_an_agent_is_no_signature(place, case: str) -> None:
    answer, words = ANSWERS[case]
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(place.socket)
        listening.listen()
        done = threading.Event()

        def serve() -> None:
            connected, _ = listening.accept()
            with connected:
                connected.recv(4_096)
                if answer is None:
                    done.wait(30)
                else:
                    connected.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(KeyAway, match=words):
            AgentKey(replace(place, timeout_s=0.3 if answer is None else 10)).sign(b"digest")
        done.set()
        thread.join()
    Path(place.socket).unlink()
