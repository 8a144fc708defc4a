"""`rfhbridge audit explain` without a MsgId: what is shown of the messages found, and when nothing can be found."""

import hashlib
import json

import pytest

from spark_audit.personal import PersonalKey

SEVEN_US = 1_795_158_000_000_000
PUMP = {"gateway": "01" * 12, "direction": "in", "client": "pump\x1b[2J", "session_epoch": 1}
KEY = bytes(range(32))


def _id(number: int) -> str:
    return f"{number:048x}"


def _published(number: int, **fields: object) -> list[dict[str, object]]:
    exchange = {**PUMP, "exchange": number, "packet_type": 3, "qos": 1, "topic": "plant/heat", **fields}
    put = {"kind": "put", "command": "Publish", "conversion": "packet_to_header", "message_id": _id(number)}
    return [{"kind": "accepted", **exchange}, {**put, **exchange}]


def _copied(number: int, copy: int) -> dict[str, object]:
    return {
        "kind": "put",
        "command": "Publish",
        "conversion": "header_to_header",
        "topic": "plant/heat",
        "queue": "HISTORY",
        "message_id": _id(copy),
        "source_message_id": _id(number),
    }


@pytest.fixture
def write(tmp_path):
    """Writes records as a trail of one segment, and returns its folder."""
    folder = tmp_path / "trail"
    folder.mkdir()

    def written(*records: dict[str, object]):
        lines = []
        for sequence, record in enumerate(records, start=1):
            text = json.dumps(
                {"version": 1, "sequence": sequence, "at_us": SEVEN_US + sequence * 1_000, **record},
                separators=(",", ":"),
            ).encode()
            lines.append(text[:-1] + b',"hash":"' + hashlib.sha256(text).hexdigest().encode() + b'"}\n')
        (folder / "000000000001-20261120T07.jsonl").write_bytes(b"".join(lines))
        return folder

    return written


def test_each_message_has_a_line(rfhbridge, write) -> None:
    dead = {"kind": "dead_lettered", "message_id": _id(101), "reason_code": 2053}
    confirmed = {**PUMP, "kind": "confirmed", "exchanges": [[7, 7]], "packet_type": 4}
    trail = write(*_published(7), _copied(7, 100), _copied(7, 101), dead, *_published(8), confirmed)
    ended = rfhbridge("audit", "explain", "--topic", "plant/#", "--trail", trail)
    assert (ended.exit_code, ended.stderr) == (0, "")
    start = "2026-11-20 07:00:00.00{}Z  pump\\x1b[2J  plant/heat  {}  {}"
    assert ended.text.splitlines() == [
        "time                      client       topic       MsgId" + " " * 45 + "what became of it",
        start.format(
            1,
            _id(7),
            "put on queue HISTORY; dead letter 07:00:00.005 for queue HISTORY: 2053 MQRC_Q_FULL; PUBACK 07:00:00.008",
        ),
        start.format(6, _id(8), "nobody had subscribed; no PUBACK yet"),
        "",
        "2 messages (8 lines in 1 segment)",
    ]


def test_copy_that_an_application_took_is_told_with_who_took_it(rfhbridge, write) -> None:
    got = {"kind": "mqget", "message_id": _id(100), "queue": "HISTORY", "operator": "root"}
    trail = write(*_published(7), _copied(7, 100), got)
    told = rfhbridge("audit", "explain", "--topic", "plant/heat", "--trail", trail).text
    assert "  taken from queue HISTORY 07:00:00.004 by root; no PUBACK yet" in told


def test_many_copies_are_counted_by_what_became_of_them(rfhbridge, write) -> None:
    trail = write(*_published(7), *(_copied(7, 100 + number) for number in range(5)))
    assert "; 5 copies" not in rfhbridge("audit", "explain", "--topic", "plant/heat", "--trail", trail).text
    assert "5 copies: 5 waits" in rfhbridge("audit", "explain", "--topic", "plant/heat", "--trail", trail).text


def test_json_has_every_copy(rfhbridge, write) -> None:
    trail = write(*_published(7), _copied(7, 100))
    told = json.loads(rfhbridge("audit", "explain", "--since", "2026-11-20", "--trail", trail, "--json").stdout)
    assert (told["segments"], told["lines"], told["is_cut"]) == (1, 3, False)
    (message,) = told["messages"]
    assert [branch["state"] for branch in message["branches"]] == ["waits"]


def test_whole_shows_the_life_of_each_message(rfhbridge, write) -> None:
    trail = write(*_published(7), *_published(8), *_published(9, topic="other"))
    ended = rfhbridge("audit", "explain", "--topic", "plant/heat", "--whole", "--trail", trail)
    told = [line for line in ended.text.splitlines() if line.startswith("message ")]
    assert told == [f"message {_id(number)}: 2 records" for number in (7, 8)]
    lives = json.loads(
        rfhbridge("audit", "explain", "--topic", "plant/heat", "--whole", "--trail", trail, "--json").stdout
    )
    assert [life["message_id"] for life in lives] == [_id(7), _id(8)]


def test_whole_refuses_more_lives_than_it_can_show(rfhbridge, write) -> None:
    trail = write(*(record for number in range(1, 23) for record in _published(number)))
    ended = rfhbridge("audit", "explain", "--topic", "plant/heat", "--whole", "--trail", trail)
    assert (ended.exit_code, ended.stdout) == (2, b"")
    assert "at most 20 lives, and 22 messages fit" in ended.stderr


def test_search_beside_a_message_identifier_leaves_other_clients_out(rfhbridge, write) -> None:
    delivered = [
        {"kind": "delivered", "direction": "out", "client": client, "session_epoch": 2, "message_id": _id(7)}
        for client in ("panel", "wall")
    ]
    trail = write(*_published(7), *delivered)
    ended = rfhbridge("audit", "explain", _id(7), "--client", "panel", "--trail", trail)
    assert f"message {_id(7)}: 1 record" in ended.text
    assert "wall" not in ended.text
    nothing = rfhbridge("audit", "explain", _id(7), "--since", "2027-01-01", "--trail", trail)
    assert (nothing.exit_code, "fits (4 records of it)" in nothing.stderr) == (2, True)


def test_changed_record_ends_with_1(rfhbridge, write) -> None:
    trail = write(*_published(7))
    (segment,) = trail.iterdir()
    segment.write_bytes(segment.read_bytes().replace(b'"qos":1', b'"qos":0'))
    ended = rfhbridge("audit", "explain", "--topic", "plant/heat", "--trail", trail)
    assert ended.exit_code == 1
    assert ended.text.count("CHANGED") == 2


def test_keyed_names_are_found_with_the_key_and_the_command_says_so_without(rfhbridge, write, tmp_path) -> None:
    key, key_file = PersonalKey(KEY), tmp_path / "personal.key"
    key_file.write_bytes(KEY)
    trail = write(*_published(7, client=key.name("pump"), topic=key.name("plant/heat")))
    asked = ("audit", "explain", "--trail", trail)
    for names in (("--client", "pump"), ("--topic", "plant/heat"), ("--client", "pump", "--topic", "plant/heat")):
        without = rfhbridge(*asked, *names)
        assert (without.exit_code, "give the key with --personal-key" in without.stderr) == (2, True)
        found = rfhbridge(*asked, *names, "--personal-key", key_file)
        assert (found.exit_code, names[1] in found.text, _id(7) in found.text) == (0, True, True)
    wildcard = rfhbridge(*asked, "--topic", "plant/#", "--personal-key", key_file)
    assert (wildcard.exit_code, "which no wildcard can match" in wildcard.stderr) == (2, True)


WRONG = {
    "nothing to look for": (),
    "an end before the beginning": ("--since", "2026-11-21", "--until", "2026-11-20"),
    "no time": ("--since", "ten o'clock"),
    "no topic filter": ("--topic", "plant/#/heat"),
    "an empty topic": ("--topic", ""),
    "no message identifier": ("52", "--client", "pump"),
    "a whole life twice": (_id(7), "--client", "pump", "--whole"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_use_ends_with_3_in_one_line(rfhbridge, write, wrong: str) -> None:
    ended = rfhbridge("audit", "explain", *WRONG[wrong], "--trail", write(*_published(7)))
    assert (ended.exit_code, ended.stdout, ended.stderr.count("\n")) == (3, b"", 1)


def test_damaged_segment_is_not_evaluable(rfhbridge, write) -> None:
    trail = write(*_published(7))
    (trail / "000000000002-20261120T08.jsonl.gz").write_bytes(b"\x1f\x8b damaged")
    ended = rfhbridge("audit", "explain", "--topic", "plant/heat", "--trail", trail)
    assert (ended.exit_code, ended.stdout) == (2, b"")
