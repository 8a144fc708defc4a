"""The user that an application acts as: told by the kernel, never cut."""

import os
import pwd
import socket
from types import SimpleNamespace

import pytest

from mq_adapters.embedded.direct import Direct
from mq_adapters.embedded.socket.peer import own_user, peer_uid, user_identifier
from mq_adapters.message import Message, MessageDescriptor

UNUSED_UID = 3_999_999_999


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch):
    """Gives every user one name, for user identifiers that were not asked for before."""
    user_identifier.cache_clear()
    yield lambda name: monkeypatch.setattr(pwd, "getpwuid", lambda _uid: SimpleNamespace(pw_name=name))
    user_identifier.cache_clear()


@pytest.mark.parametrize(
    ("name", "identifier"),
    [("ann", "ann"), ("twelve-chars", "twelve-chars"), ("thirteen-long", "UNKNOWN"), ("jürgen", "UNKNOWN")],
)
def test_name_is_the_user_identifier_where_it_fits_and_else_unknown(named, name: str, identifier: str) -> None:
    named(name)
    assert user_identifier(1000) == identifier


def test_user_without_a_name_is_its_number() -> None:
    assert user_identifier(UNUSED_UID) == str(UNUSED_UID)


def test_kernel_tells_who_is_at_the_other_end() -> None:
    here, there = socket.socketpair()
    with here, there:
        assert user_identifier(peer_uid(here)) == own_user() == user_identifier(os.geteuid())


def test_message_without_a_user_is_put_by_that_of_the_process_and_another_keeps_its_own(tmp_path) -> None:
    with Direct(tmp_path) as queue_manager:
        queue_manager.define("ORDERS")
        for given in ("", "ann"):
            queue_manager.put("ORDERS", Message(MessageDescriptor(user_identifier=given), b""))
        put_by = [queue_manager.get("ORDERS").descriptor.user_identifier for _ in range(2)]
    assert put_by == [own_user(), "ann"]
