"""The password file: its lines, wrong ones among them, and the change of one line."""

from pathlib import Path

import pytest

from gateway.access.text_file import MAXIMUM_FILE_BYTES
from gateway.access.users import Users, check_user_name, with_user, without_user
from gateway.config import ConfigurationError

HASH = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"


def test_users_are_read_around_comments_empty_lines_and_line_ends_of_other_systems() -> None:
    users = Users.parse(f"# ours\n\n  \nanna:{HASH}\r\nŻofia 7:{HASH}", "users")
    assert list(users.hashes) == ["anna", "Żofia 7"]
    assert users.hashes["anna"].is_of(b"password")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (f"anna:{HASH}\nanna:{HASH}\n", "line 2: user 'anna' is there a second time"),
        ("sesame\n", "line 1: has no ':' between a name and a hash"),
        ("anna:sesame\n", "line 1: is no hash"),
        (f":{HASH}", "line 1: a user name has 1 to 256 characters, not 0"),
        (f" anna:{HASH}", "line 1: ' anna' is no user name"),
        (f"an\x1bna:{HASH}", "line 1: 'an\\x1bna' is no user name"),
        (f"anna:{HASH} ", "line 1: is no hash"),
        ("x\n" * 9, "and 4 more"),
    ],
)
def test_a_wrong_line_is_named_and_its_secret_is_not(text: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Users.parse(text, "users")
    assert complaint in str(refused.value)
    assert "sesame" not in str(refused.value)
    assert "nf65EOgLrQMR" not in str(refused.value)


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    large, binary = tmp_path / "large", tmp_path / "binary"
    large.write_bytes(b"#" * (MAXIMUM_FILE_BYTES + 1))
    binary.write_bytes(b"anna:\xff")
    for path, complaint in (
        (large, "has more than"),
        (binary, "is not UTF-8 at byte 5 .*certificates and keys in PEM"),
        (tmp_path, "cannot be read: Is a directory"),
        (tmp_path / "none", "cannot be read: No such file"),
        (Path("/dev/zero"), "is not a regular file"),
    ):
        with pytest.raises(ConfigurationError, match=complaint):
            Users.read(path)


def test_a_byte_order_mark_and_ends_of_lines_of_windows_are_no_part_of_a_name(tmp_path: Path) -> None:
    (tmp_path / "users").write_bytes(b"\xef\xbb\xbf" + f"anna:{HASH}\r\n".encode())
    assert list(Users.read(tmp_path / "users").hashes) == ["anna"]


def test_a_pipe_that_nobody_writes_to_holds_up_nobody(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigurationError, match="is not a regular file"):
        Users.read(tmp_path / "pipe")


def test_an_unknown_name_is_checked_against_a_hash_of_the_file_always_the_same_one() -> None:
    text = "".join(f"user{number}:{HASH.replace('m=256', f'm={256 + number}')}\n" for number in range(4))
    users = Users.parse(text, "users")
    decoys = {name: users.decoy(name) for name in map(str, range(200))}
    assert set(decoys.values()) == set(users.hashes.values())
    assert all(users.decoy(name) is decoy for name, decoy in decoys.items())


def test_an_empty_file_has_a_decoy_of_the_usual_cost() -> None:
    assert Users.parse("", "users").decoy("anna").cost == "m=19456,t=2,p=1"


def test_a_line_is_changed_in_its_place_and_the_rest_stays() -> None:
    entry = Users.parse(f"x:{HASH}", "users").hashes["x"]
    text = "# ours\nann:old\nanna:old\n\n#end"
    assert with_user(text, "anna", entry) == f"# ours\nann:old\nanna:{HASH}\n\n#end\n"
    assert with_user("a:old", "b", entry) == f"a:old\nb:{HASH}\n"
    assert with_user("", "b", entry) == f"b:{HASH}\n"
    assert without_user(text, "ann") == "# ours\nanna:old\n\n#end"
    assert without_user(text, "an") == text


@pytest.mark.parametrize("name", ["", "a:b", "#a", "a ", "\u2028", "a\nb", "\ud800", "x" * 257])
def test_a_name_that_the_file_cannot_hold_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="user name"):
        check_user_name(name)
