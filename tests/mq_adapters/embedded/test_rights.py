"""The rights of applications: what each call asks for, by the name that the application says."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mq_adapters.embedded.application import Application
from mq_adapters.embedded.direct import Direct
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.rights import EVERYTHING, EXPORTER, ContextRight, Right, Rights, covers
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError
from mq_adapters.system_queues import AUDIT_QUEUE


@pytest.mark.parametrize(
    ("pattern", "name", "is_covered"),
    [
        ("ORDERS", "ORDERS", True),
        ("ORDERS", "ORDERS.NEW", False),
        ("ORDERS.*", "ORDERS.NEW", True),
        ("ORDERS.*", "ORDERS", False),
        ("*", "ORDERS", True),
        ("*", "*", True),
        ("ORDERS*", "*", False),
        ("", "ORDERS", False),
    ],
)
def test_a_pattern_is_a_name_or_its_beginning(pattern: str, name: str, is_covered: bool) -> None:
    assert covers(pattern, name) is is_covered


def test_whoever_has_every_right_takes_no_audit_notes_and_the_exporter_takes_nothing_else() -> None:
    assert all(EVERYTHING.has(right, AUDIT_QUEUE) for right in Right)
    with pytest.raises(QueueManagerError, match="2035"):
        EVERYTHING.check_open(AUDIT_QUEUE, "get")
    EXPORTER.check_open(AUDIT_QUEUE, "get")
    assert not EXPORTER.has(Right.GET, "ORDERS")
    assert not EXPORTER.has(Right.ADMIN, AUDIT_QUEUE)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with queues ORDERS and SECRETS, a message on each, an alias of SECRETS, and a model."""
    with Direct(tmp_path) as owner:
        for name in ("ORDERS", "SECRETS"):
            owner.define(name)
            owner.put(name, MESSAGE)
        for command in ("DEFINE QALIAS(MINE.SECRETS) TARGET(SECRETS)", "DEFINE QMODEL(MINE.MODEL)"):
            assert owner.mqsc(command).succeeded
    return tmp_path


MESSAGE = Message(MessageDescriptor(format=b"MQSTR   "), b"words")


def _of(store: Path, **rights: str) -> Direct:
    return Direct(store, rights=Rights(**{right: (pattern,) for right, pattern in rights.items()}))


def _batch(application: Direct) -> object:
    application.begin()
    return application.take_batch("ORDERS", most_messages=1, most_bytes=1)


def _taken(application: Direct) -> object:
    cursor = application.browse("ORDERS")
    cursor.first()
    return cursor.take()


CALLS: dict[str, tuple[dict[str, str], Callable[[Direct], object]]] = {
    "put": ({"put": "ORDERS"}, lambda here: here.put("ORDERS", MESSAGE)),
    "get": ({"get": "ORD*"}, lambda here: here.get("ORDERS")),
    "take a batch": ({"get": "ORDERS"}, _batch),
    "hold": ({"get": "ORDERS"}, lambda here: here.open_exclusively("ORDERS").close()),
    "browse": ({"browse": "ORDERS"}, lambda here: next(here.browse("ORDERS"))),
    "take what was browsed": ({"browse": "ORDERS", "get": "ORDERS"}, _taken),
    "clear": ({"admin": "ORDERS"}, lambda here: here.clear("ORDERS")),
    "define": ({"admin": "MINE.*"}, lambda here: here.define("MINE.NEW")),
    "make a temporary queue": ({"get": "MINE.*"}, lambda here: here.create_dynamic("MINE.MODEL", "MINE.*")),
    "get by an alias": ({"get": "MINE.SECRETS"}, lambda here: here.get("MINE.SECRETS")),
}


@pytest.mark.parametrize(("rights", "call"), CALLS.values(), ids=CALLS)
def test_each_call_needs_its_right_and_no_other(
    store: Path, rights: dict[str, str], call: Callable[[Direct], object]
) -> None:
    with _of(store, **rights) as allowed:
        call(allowed)
    others = {str(right): "*" for right in Right} | dict.fromkeys(rights, "SECRET*")
    with _of(store, **others) as refused, pytest.raises(QueueManagerError, match="2035"):
        call(refused)


COMMANDS = [
    ("DEFINE QLOCAL(MINE.NEW)", True),
    ("DISPLAY QLOCAL(MINE.*)", True),
    ("DEFINE QALIAS(MINE.OTHER) TARGET(SECRETS)", False),
    ("DISPLAY QLOCAL(*)", False),
    ("ALTER QLOCAL(SECRETS) MAXDEPTH(0)", False),
    ("CLEAR QLOCAL(SECRETS)", False),
    ("ALTER QMGR MAXMSGL(1000)", False),
    ("STOP CHANNEL(MQTT) CHLTYPE(MQTT) CLIENTID(a)", False),
    ("DEFINE SUB(MINE.SUB) TOPICSTR(a) DEST(MINE.X)", False),
]


@pytest.fixture
def administrator(store: Path) -> Iterator[Direct]:
    with _of(store, admin="MINE.*") as administrator:
        administrator.define("MINE.X")
        yield administrator


@pytest.mark.parametrize(("command", "is_allowed"), COMMANDS, ids=[command for command, _ in COMMANDS])
def test_who_may_change_some_queues_carries_out_commands_about_those_alone(
    administrator: Direct, command: str, is_allowed: bool
) -> None:
    """An alias or a subscription would lead to queues that its own name does not say."""
    answer = administrator.mqsc(command)
    assert answer.succeeded is is_allowed, answer
    assert is_allowed or answer.lines == ("AMQ8135E: Not authorized.",)


@pytest.mark.parametrize("right", Right)
def test_an_application_knows_of_no_queue_but_those_it_has_a_right_for(store: Path, right: Right) -> None:
    with _of(store, **{right: "ORDERS"}) as application:
        assert [status.name for status in application.queues()] == ["ORDERS"]
        assert application.depth("ORDERS") == 1
        assert application.inquire("ORDERS").name == "ORDERS"
        for call in (application.depth, application.inquire):
            with pytest.raises(QueueManagerError, match="2035"):
                call("SECRETS")


@pytest.mark.parametrize(
    ("right", "user"), [(ContextRight.NONE, "billing"), (ContextRight.IDENTITY, "keeper"), (ContextRight.ALL, "keeper")]
)
def test_an_application_says_who_it_is_only_with_a_right_on_context(
    engine: Engine, right: ContextRight, user: str
) -> None:
    application = Application(engine, "program", user="billing", rights=Rights(put=("ORDERS",), context=right))
    message = Message(MessageDescriptor(user_identifier="keeper"), b"")
    application.put("ORDERS", message, lambda: None)
    assert message.descriptor.user_identifier == user
