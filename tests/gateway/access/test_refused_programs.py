"""Refused MQ programs: what they are told, and what the trail has of them."""

from typing import Any

from gateway.access.refused_logins import UserClass
from gateway.access.refused_programs import ROW_KEY, ProgramRefusal, ProgramRefused, RefusedPrograms
from gateway.access.tally import INTERVAL_US, KEPT_AFTER_US
from mq_adapters.embedded.unit_of_work import Note, UnitOfWork
from mq_adapters.reasons import ReasonCode

AT = 1_800_000_000_000_000


def test_a_program_is_told_2035_and_the_log_what_to_do() -> None:
    refused = ProgramRefused(ProgramRefusal.NOT_ALLOWED, "connect as 'eve'", "name the user", rule="channel#1.users")
    assert (refused.reason_code, refused.rule) == (ReasonCode.MQRC_NOT_AUTHORIZED, "channel#1.users")
    assert str(refused) == "connect as 'eve': 2035 MQRC_NOT_AUTHORIZED (name the user)"


def counted(refused: RefusedPrograms, *addresses: str, **told: Any) -> None:
    for address in addresses:
        said: dict[str, Any] = {"rule": "", "listener": "mq", "channel": "APP", "now_us": AT, "reason_code": 2035}
        refused.count(ProgramRefusal.WRONG_CREDENTIALS, address=address, **(said | told))


def written(refused: RefusedPrograms, now_us: int, *, is_last: bool = False) -> list[Note]:
    unit = UnitOfWork()
    refused.write(unit, now_us, is_last=is_last)
    return unit.notes


def test_the_first_one_of_a_network_is_told_whole_and_further_ones_are_counted() -> None:
    refused = RefusedPrograms()
    counted(refused, "192.0.2.1", "192.0.2.2", "192.0.2.1", user="anna", user_class=UserClass.KNOWN, reason="why")
    counted(refused, "198.51.100.1", reason="x" * 500)
    first, other = written(refused, AT + 1)
    where = ("192.0.2.0/24", "mq", "APP", "", 2035)
    assert first[2:] == ("wrong_credentials", "known", 1, AT, "anna", *where, "why")
    assert other[-1] == "x" * 200
    (further,) = written(refused, AT + INTERVAL_US)
    assert further[2:] == ("wrong_credentials", "known", 2, AT, "", *where, "")
    assert refused.totals == {ProgramRefusal.WRONG_CREDENTIALS: 4}


def test_many_networks_and_channels_make_few_records() -> None:
    refused = RefusedPrograms()
    counted(refused, *(f"10.{high}.{low}.1" for high in range(20) for low in range(250)))
    notes = written(refused, AT + 1) + written(refused, AT + INTERVAL_US, is_last=True)
    assert len(notes) <= 2 * 64 + 1
    assert sum(int(str(note[4])) for note in notes) == 5_000


def test_a_kill_loses_what_is_not_in_the_store_alone() -> None:
    refused, after = RefusedPrograms(), RefusedPrograms()
    counted(refused, "192.0.2.1", "192.0.2.1")
    unit = UnitOfWork()
    refused.write(unit, AT + KEPT_AFTER_US)
    ((_kind, key, row),) = unit.states
    assert key == ROW_KEY
    after.load(row)
    (further,) = written(after, AT + KEPT_AFTER_US + 1)
    assert further[4] == 1
