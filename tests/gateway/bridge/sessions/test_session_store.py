"""Rows of a later program: whoever reads them says so, as an operator can use it."""

from collections.abc import Callable
from pathlib import Path

import ormsgpack
import pytest

from gateway.bridge.sessions.session_store import HeldPublish, SessionRow, SubscriptionRow, read_row
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import StateKind
from mq_adapters.reasons import StoreError
from tests.gateway.bridge.conftest import NewWorld
from tests.processes.forked import rfhbridge

EPOCH = (77).to_bytes(8, "big")
#: Rows of versions that no program has written yet, by their place in the store.
NEWER = {
    "a session": (StateKind.SESSION, b"self", [7, 77, 5, False]),
    "a held PUBLISH": (StateKind.SESSION_INCOMING, EPOCH + b"\0\7", [4, 1, "a"]),
    "a subscription": (StateKind.SESSION_SUBSCRIPTION, EPOCH + b"a/#", [2, 1, False]),
    "a group": (StateKind.SHARED_SUBSCRIPTION, EPOCH, [2, "$share/g/a", {}]),
}


def _plant(data: Path, kind: StateKind, key: bytes, row: list[object]) -> None:
    engine = Engine.open(data)
    unit = engine.begin()
    unit.set_state(StateKind.SESSION, b"kept", ormsgpack.packb([3, 77, 4, False, False, None, {}, None, {}]))
    unit.set_state(kind, key, ormsgpack.packb(row))
    engine.submit(unit)
    engine.close()


@pytest.mark.parametrize("case", NEWER)
def test_gateway_that_meets_a_row_of_a_later_program_says_that_the_file_is_newer(
    new_world: NewWorld, tmp_path: Path, case: str
) -> None:
    data = tmp_path / "newer"
    data.mkdir()
    _plant(data, *NEWER[case])
    with pytest.raises(StoreError, match=r"this is a newer file: version \d of the row, and this program reads up to"):
        new_world(data)


def test_row_of_version_4_has_no_network() -> None:
    """What a gateway wrote before sessions had one."""
    row = ormsgpack.packb([4, 77, 5, False, True, None, {"a/#": 1}, "ann", {}, 60, 0, 0, {"a/#": [True, False, 7]}])
    found = SessionRow.unpack(row)
    assert (found.user, found.expiry_s, found.options, found.network) == ("ann", 60, {"a/#": (True, False, 7)}, b"")
    assert SessionRow.unpack(found._replace(network=b"\xc0\0\2\7").pack()).network == b"\xc0\0\2\7"


def test_a_row_of_version_5_is_read_and_written_as_rows_of_subscriptions(new_world: NewWorld, tmp_path: Path) -> None:
    data = tmp_path / "old"
    data.mkdir()
    engine = Engine.open(data)
    unit = engine.begin()
    # What a gateway wrote before subscriptions had rows of their own.
    row = [5, 77, 5, False, False, None, {"a/#": 1, "b/+": 2}, None, {}, 60, 0, 0, {"a/#": [True, False, 7]}, b"", 0]
    unit.set_state(StateKind.SESSION, b"kept", ormsgpack.packb(row))
    engine.submit(unit)
    engine.close()
    for _ in range(2):
        world = new_world(data)
        session = world.sessions.get("kept")
        assert session is not None
        assert session.subscriptions == {"a/#": 1, "b/+": 2}
        assert session.options == {"a/#": (True, False, 7)}
        stored = world.engine.states(StateKind.SESSION_SUBSCRIPTION)
        assert [(key, SubscriptionRow.unpack(value)) for key, value in stored] == [
            (EPOCH + b"a/#", SubscriptionRow(1, True, False, 7)),
            (EPOCH + b"b/+", SubscriptionRow(2)),
        ]
        packed = world.engine.state(StateKind.SESSION, b"kept")
        assert packed is not None
        assert ormsgpack.unpackb(packed)[0] == 6
        assert b"a/#" not in packed


@pytest.mark.parametrize("row", [b"\xc1", b"\x01", b"\x90", b"\x91\xa1a", b"\x91\x00"])
def test_row_that_cannot_be_read_is_no_fault_of_this_program(row: bytes) -> None:
    for unpack in (
        SessionRow.unpack,
        SubscriptionRow.unpack,
        HeldPublish.unpack,
        lambda packed: read_row("a row", packed, 1),
    ):
        with pytest.raises(StoreError):
            unpack(row)


SESSION = [6, 77, 5, False, True, ["t", b"", 1, True, None], None, {"QM": [1, ["t/#"]]}, 60, 0, 0, b"", 0]


@pytest.mark.parametrize(
    ("unpack", "row"),
    [
        (SessionRow.unpack, SESSION[:-1]),
        (SessionRow.unpack, [*SESSION, 0]),
        (SessionRow.unpack, [5, *SESSION[1:3]]),
        *((SessionRow.unpack, [*SESSION[:place], 1.5, *SESSION[place + 1 :]]) for place in range(1, len(SESSION))),
        (SessionRow.unpack, [*SESSION[:1], True, *SESSION[2:]]),
        (SessionRow.unpack, [*SESSION[:5], ["t", b"", 1], *SESSION[6:]]),
        (SessionRow.unpack, [*SESSION[:5], ["t", b"", 1, True, [0] * 9], *SESSION[6:]]),
        (SessionRow.unpack, [*SESSION[:7], {"QM": 1}, *SESSION[8:]]),
        (SessionRow.unpack, [*SESSION[:7], {"QM": ["1", []]}, *SESSION[8:]]),
        (SubscriptionRow.unpack, [1, 2, True, False]),
        (SubscriptionRow.unpack, [1, 2, True, False, True]),
        (HeldPublish.unpack, [3, 1, "t", False, b"", b"", 0]),
        (HeldPublish.unpack, [3, 1, "t", False, b"", "x", 0, 5]),
        (HeldPublish.unpack, [1, 1, "t", False, b"", b"", 0]),
    ],
)
def test_a_row_with_other_fields_is_damaged(unpack: Callable[[bytes], object], row: list[object]) -> None:
    with pytest.raises(StoreError, match="its row is damaged"):
        unpack(ormsgpack.packb(row))


def test_the_rows_that_were_changed_above_are_read_otherwise() -> None:
    assert SessionRow.unpack(ormsgpack.packb(SESSION)).pack() == ormsgpack.packb(SESSION)
    for row in ([1, 1, "t", False, b"", b""], [2, 1, "t", False, b"", b"", 0], [3, 1, "t", False, b"", b"", 0, 5]):
        assert HeldPublish.unpack(ormsgpack.packb(row)).topic == "t"


@pytest.mark.parametrize(
    "command",
    [("run", "--listen", "127.0.0.1:0"), ("sessions", "sweep", "--target", "QM1", "--registrations", "-"), ("check",)],
)
def test_command_that_meets_a_newer_session_row_names_no_fault_of_its_own(tmp_path: Path, command: tuple[str]) -> None:
    data = tmp_path / "data"
    data.mkdir()
    _plant(data, *NEWER["a session"])
    config = tmp_path / "rfhbridge.toml"
    config.write_text(f'data = "{data}"\n[[target]]\nname = "QM1"\n', encoding="utf-8")
    ended = rfhbridge(*command, "--config", config)
    told = ended.stdout + ended.stderr
    assert (ended.returncode == 0) == (command[0] == "check"), told  # which is about the configuration
    assert "this is a newer file: version 7 of the row, and this program reads up to 6" in told, told
    assert "use the program that wrote it" in told
    assert "fault of this program" not in told
