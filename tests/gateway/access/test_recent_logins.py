"""Who logged in lately: what is known, for how long, within which bounds, and what the file says of it."""

import hashlib
import os
from pathlib import Path

import pytest

from gateway.access.recent_logins import (
    FILE_NAME,
    MAXIMUM_NETWORKS,
    MAXIMUM_USERS,
    RECENT_DAYS,
    DamagedLogins,
    LoginsFile,
    RecentLogins,
    read_logins,
)
from gateway.limits.addresses import network_of

SITE, NEXT_DOOR, ELSEWHERE = map(network_of, ("198.51.100.7", "198.51.3.4", "203.0.113.9"))
TODAY = 20_780
#: Written by the first version: user `pump` of the password file from SITE on day 20,780, and `CN=panel`, a
#: certificate's, from the IPv6 network 2001:db8:1::/48 on day 20,779. The salt is 00 01 02 ... 0F.
VERSION_1 = Path(__file__).with_name("recent-logins-1")


def known() -> RecentLogins:
    logins = RecentLogins(bytes(range(16)))
    logins.add("CN=panel", network_of("2001:db8:1::7"), TODAY - 1, is_external=True)
    logins.add("pump", SITE, TODAY)
    return logins


def test_a_user_is_known_where_it_logged_in_and_in_the_same_prefix() -> None:
    logins = known()
    assert logins.knows("pump", SITE, TODAY)
    assert logins.knows("pump", NEXT_DOOR, TODAY), "198.51.0.0/16"
    assert not logins.knows("pump", ELSEWHERE, TODAY)
    assert not logins.knows("pumps", SITE, TODAY)


def test_a_login_is_recent_for_thirty_days() -> None:
    logins = known()
    assert logins.knows("pump", SITE, TODAY + RECENT_DAYS)
    assert not logins.knows("pump", SITE, TODAY + RECENT_DAYS + 1)
    assert logins.knows_external("CN=panel", TODAY)
    assert not logins.knows_external("CN=panel", TODAY + RECENT_DAYS)
    logins.add("pump", SITE, TODAY + RECENT_DAYS + 1)
    assert logins.knows("pump", SITE, TODAY + RECENT_DAYS + 1)


def test_a_user_of_the_password_file_is_no_external_one_and_the_other_way_round() -> None:
    logins = known()
    assert not logins.knows_external("pump", TODAY)
    assert not logins.knows("CN=panel", network_of("2001:db8:1::7"), TODAY)


def test_one_user_with_many_networks_makes_nobody_else_forgotten() -> None:
    logins = known()
    for number in range(1_000):
        logins.add("roamer", number.to_bytes(2) + b"\0\1", TODAY)
    assert len(logins) == 3
    assert logins.knows("pump", SITE, TODAY)
    assert logins.knows("roamer", (999).to_bytes(2) + b"\0\1", TODAY)
    assert not logins.knows("roamer", (999 - MAXIMUM_NETWORKS).to_bytes(2) + b"\0\1", TODAY)


def test_past_the_most_users_the_one_that_was_away_for_longest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAXIMUM_USERS == 65_536
    monkeypatch.setattr("gateway.access.recent_logins.MAXIMUM_USERS", 3)
    logins = RecentLogins()
    for day, user in enumerate(("a", "b", "c", "a", "d")):
        logins.add(user, SITE, day)
    assert [user for user in "abcd" if logins.knows(user, SITE, 5)] == ["a", "c", "d"]


def test_a_second_login_on_one_day_changes_nothing() -> None:
    logins = known()
    logins.is_changed = False
    logins.add("pump", SITE, TODAY)
    assert not logins.is_changed
    logins.add("pump", SITE, TODAY + 1)
    assert logins.is_changed


# -- the file ----------------------------------------------------------------------------------------------------------


def test_the_file_of_version_1_is_read_and_written() -> None:
    logins = RecentLogins.unpack(VERSION_1.read_bytes())
    assert logins.knows("pump", SITE, TODAY)
    assert logins.knows_external("CN=panel", TODAY)
    assert known().pack() == VERSION_1.read_bytes()


def test_the_file_names_nobody_and_proves_nothing() -> None:
    packed = known().pack()
    assert len(packed) == 37 + 2 * (8 + 1 + 8)
    assert b"pump" not in packed
    assert SITE[:2] not in packed[37:]


@pytest.mark.parametrize("length", range(37 + 34))
def test_a_file_that_is_cut_anywhere_is_damaged(length: int) -> None:
    with pytest.raises(DamagedLogins):
        RecentLogins.unpack(VERSION_1.read_bytes()[:length])


def test_each_changed_byte_is_found() -> None:
    whole = VERSION_1.read_bytes()
    for at in range(len(whole)):
        with pytest.raises(DamagedLogins):
            RecentLogins.unpack(whole[:at] + bytes((whole[at] ^ 1,)) + whole[at + 1 :])


@pytest.mark.parametrize("body", [b"x", bytes(8), bytes(8) + b"\x01", bytes(8) + b"\xff" + bytes(100)])
def test_a_body_that_ends_within_a_user_is_damaged_also_with_a_right_checksum(body: bytes) -> None:
    head = b"RFHL\x01" + bytes(16)
    digest = hashlib.blake2b(head + body, digest_size=16).digest()
    with pytest.raises(DamagedLogins, match="within a user"):
        RecentLogins.unpack(head + digest + body)


def test_a_later_version_is_not_read() -> None:
    with pytest.raises(DamagedLogins, match="version 2"):
        RecentLogins.unpack(b"RFHL\x02" + VERSION_1.read_bytes()[5:])


def test_what_is_written_is_there_after_a_restart_for_the_owners_eyes_alone(tmp_path: Path) -> None:
    file = LoginsFile(tmp_path)
    file.write()
    assert not (tmp_path / FILE_NAME).exists(), "nobody logged in"
    file.logins.add("pump", SITE, TODAY)
    file.write()
    assert (tmp_path / FILE_NAME).stat().st_mode & 0o777 == 0o600
    assert LoginsFile(tmp_path).logins.knows("pump", SITE, TODAY)


@pytest.mark.parametrize("content", [b"", b"rubbish", b"RFHL", os.urandom(200)])
def test_a_damaged_file_means_that_nobody_is_known_and_is_replaced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    file = LoginsFile(tmp_path)
    assert len(file.logins) == 0
    assert "recent logins forgotten" in caplog.text
    file.logins.add("pump", SITE, TODAY)
    file.write()
    assert LoginsFile(tmp_path).logins.knows("pump", SITE, TODAY)


def test_a_folder_that_is_gone_is_told_once_and_is_no_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = LoginsFile(tmp_path / "gone")
    for day in range(3):
        file.logins.add("pump", SITE, day)
        file.write()
    assert caplog.text.count("recent logins not written") == 1


@pytest.mark.parametrize("call", ["open", "write", "fsync", "rename"])
@pytest.mark.parametrize("is_behind", [False, True])
def test_a_kill_between_any_two_writes_leaves_the_old_file_or_the_new_one(
    tmp_path: Path, call: str, is_behind: bool
) -> None:
    file = LoginsFile(tmp_path)
    file.logins.add("ann", SITE, TODAY)
    file.write()
    file.logins.add("bob", SITE, TODAY)
    child = os.fork()
    if not child:
        place = Path if call == "rename" else os
        real = getattr(place, call)

        def cut(*arguments: object, **named: object) -> None:
            if is_behind:
                if call == "write":
                    os.truncate(arguments[0], 0)  # type: ignore[arg-type]
                    real(arguments[0], arguments[1][:30])  # type: ignore[index]
                else:
                    real(*arguments, **named)
            os._exit(9)

        setattr(place, call, cut)
        file.write()
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    after = read_logins(tmp_path)
    assert after.knows("ann", SITE, TODAY)
    assert after.knows("bob", SITE, TODAY) == (call == "rename" and is_behind)
    again = LoginsFile(tmp_path)
    again.logins.add("eve", SITE, TODAY)
    again.write()
    assert len(read_logins(tmp_path)) == len(after) + 1
