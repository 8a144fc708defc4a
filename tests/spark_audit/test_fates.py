"""What became of messages, from records written by hand: what is found, and each end that a message may have."""

import gzip
import json

import pytest

from benchmarks.trail.made import make_trail
from spark_audit import fates as fates_module
from spark_audit.fates import Fate, Fates, State, Wanted, fates_of
from spark_audit.record import line_hashes
from spark_audit.verify.source import TrailFolder

PUMP = {"direction": "in", "client": "pump", "session_epoch": 1}
PANEL = {"direction": "out", "client": 'pan"el', "session_epoch": 2}
HOUR_US = 3_600_000_000
#: TrailBuilder's first record is one microsecond later.
SEVEN_US = 1_795_158_000_000_000
LANE, GROUP = "aa" * 24, "bb" * 24


def _id(number: int) -> str:
    return f"{number:048x}"


def _found(trail, **wanted: object) -> Fates:
    folder = trail.write()
    return fates_of(Wanted(**wanted), [TrailFolder(folder)])


def _one(trail, **wanted: object) -> Fate:
    (fate,) = _found(trail, **wanted).messages
    return fate


def _client(name: str) -> frozenset[str]:
    return frozenset({name})


class Plant:
    """A trail to which publications, copies and their ends are added as the gateway notes them."""

    def __init__(self, trail) -> None:
        self.trail = trail

    def publishes(self, number: int, topic: str = "plant/heat", qos: int = 1, **fields: object) -> None:
        exchange = {"exchange": number, "packet_type": 3, "qos": qos, "topic": topic, **PUMP, **fields}
        self.trail.add("accepted", **exchange)
        self.trail.add("put", command="Publish", conversion="packet_to_header", message_id=_id(number), **exchange)

    def copies(self, number: int, copy: int, lane: str = LANE, topic: str = "plant/heat", **fields: object) -> None:
        fields = {"command": "Publish", "queue": "RFHBRIDGE.SUBSCRIBER", "topic": topic, **fields}
        self.trail.add(
            "put",
            conversion="header_to_header",
            message_id=_id(copy),
            source_message_id=_id(number),
            correlation_id=lane,
            **fields,
        )

    def subscribes(self, client: str = PANEL["client"], lane: str = LANE) -> None:
        self.trail.add("put", command="RegSub", direction="in", client=client, session_epoch=2, correlation_id=lane)

    def delivers(self, copy: int, client: str = PANEL["client"], qos: int = 1, topic: str = "plant/heat") -> None:
        told = PANEL | {"client": client, "qos": qos, "topic": topic, "correlation_id": LANE}
        self.trail.add("delivered", message_id=_id(copy), exchange=copy, packet_type=3, **told)


@pytest.fixture
def plant(trail) -> Plant:
    return Plant(trail)


def test_publication_is_told_with_its_copies_and_the_answers_of_both_sides(plant, trail) -> None:
    plant.publishes(7)
    plant.copies(7, 100)
    plant.copies(7, 101)
    plant.copies(7, 102, queue="HISTORY")
    plant.delivers(100)
    trail.add("acknowledged", message_id=_id(100), packet_type=4, **PANEL)
    plant.delivers(101, client="wall", qos=0)
    trail.add("confirmed", exchanges=[[1, 7]], packet_type=4, **PUMP)
    fate = _one(trail, clients=_client("pump"))
    assert (fate.message_id, fate.topic, fate.client, fate.qos, fate.is_changed) == (
        _id(7),
        "plant/heat",
        "pump",
        1,
        False,
    )
    assert fate.confirmed_us == SEVEN_US + 9
    told = [(branch.client, branch.queue, branch.state) for branch in fate.branches]
    assert told == [
        ('pan"el', "RFHBRIDGE.SUBSCRIBER", State.ACKNOWLEDGED),
        ("wall", "RFHBRIDGE.SUBSCRIBER", State.DELIVERED),
        ("", "HISTORY", State.WAITS),
    ]


def test_client_is_found_as_publisher_and_as_subscriber_and_nobody_else_is(plant, trail) -> None:
    plant.subscribes()
    for number, publisher in ((7, "pump"), (8, "other"), (9, PANEL["client"])):
        plant.publishes(number, client=publisher)
        plant.copies(number, 100 + number)
        plant.copies(number, 200 + number, lane=GROUP)
        plant.delivers(200 + number, client="somebody")
    plant.delivers(107)
    found = _found(trail, clients=_client(PANEL["client"])).messages
    assert [(fate.is_delivery, fate.message_id) for fate in found] == [
        (True, _id(107)),
        (True, _id(108)),
        (False, _id(9)),
    ]
    assert [branch.state for fate in found for branch in fate.branches] == [
        *(State.DELIVERED, State.WAITS),
        *(State.WAITS, State.DELIVERED),
    ]


def test_copy_that_waits_is_found_though_its_client_subscribed_long_before_the_time(plant, trail) -> None:
    plant.subscribes()
    folder = trail.write("000000000001-20261120T03.jsonl")
    trail.lines.clear()
    plant.publishes(7)
    plant.copies(7, 100)
    trail.write("000000000002-20261120T07.jsonl")
    wanted = Wanted(clients=_client(PANEL["client"]), since_us=SEVEN_US)
    (fate,) = fates_of(wanted, [TrailFolder(folder)]).messages
    assert (fate.is_delivery, fate.branches[0].state) == (True, State.WAITS)


def test_copy_for_a_group_is_of_the_member_that_got_it(plant, trail) -> None:
    plant.subscribes("$share/crew/plant/#", GROUP)
    plant.publishes(7)
    plant.copies(7, 100, lane=GROUP)
    plant.copies(7, 101, lane=GROUP)
    plant.delivers(100)
    (fate,) = _found(trail, clients=_client(PANEL["client"])).messages
    assert fate.message_id == _id(100)
    assert [branch.client for branch in _one(trail).branches] == [PANEL["client"], "$share/crew/plant/#"]


def test_lane_of_a_group_stays_the_groups_after_a_delivery_to_a_member(plant, trail) -> None:
    plant.subscribes("$share/crew/plant/#", LANE)
    plant.delivers(99)
    plant.publishes(7)
    plant.copies(7, 100)
    waiting = next(fate for fate in _found(trail).messages if fate.message_id == _id(7))
    assert [branch.client for branch in waiting.branches] == ["$share/crew/plant/#"]


def test_topic_and_time_hold_for_the_same_record(plant, trail) -> None:
    plant.publishes(7)
    plant.publishes(8, topic="plant/cold")
    plant.publishes(9)
    plant.publishes(10)
    wanted = {"matches": lambda topic: topic == "plant/heat", "since_us": SEVEN_US + 3, "until_us": SEVEN_US + 7}
    assert [fate.message_id for fate in _found(trail, **wanted).messages] == [_id(9)]
    assert [fate.message_id for fate in _found(trail, matches=wanted["matches"]).messages] == [_id(7), _id(9), _id(10)]


def test_qos_2_without_its_pubrel_has_no_message_identifier(plant, trail) -> None:
    trail.add("accepted", exchange=7, packet_type=3, qos=2, topic="plant/heat", **PUMP)
    assert (_one(trail).message_id, _one(trail).branches) == ("", [])


ENDS = {
    "dropped": ({"reason": "the session ended"}, State.DROPPED, "the session ended"),
    "dead_lettered": ({"reason_code": 2053, "dead_letter_id": _id(300)}, State.DEAD_LETTER, "2053"),
    "refused": ({"reason_code": 3073, "reason": "no such stream"}, State.REFUSED, "no such stream"),
}


@pytest.mark.parametrize("kind", ENDS)
@pytest.mark.parametrize("message", [100, 7], ids=["of a copy", "of the publication"])
def test_each_end_is_told_with_its_reason(plant, trail, kind: str, message: int) -> None:
    fields, state, reason = ENDS[kind]
    plant.publishes(7)
    plant.copies(7, 100)
    trail.add(kind, message_id=_id(message), **fields)
    branch = next(each for each in _one(trail).branches if each.message_id == _id(message))
    assert (branch.state, branch.reason, branch.ended_us) == (state, reason, SEVEN_US + 4)


def test_dead_letter_that_was_put_back_is_followed_to_its_delivery(plant, trail) -> None:
    plant.publishes(7)
    plant.copies(7, 100)
    trail.add("dead_lettered", message_id=_id(100), dead_letter_id=_id(300), reason_code=2053)
    trail.add("redriven", message_id=_id(301), dead_letter_id=_id(300))
    assert _one(trail).branches[0].state is State.WAITS
    plant.delivers(301)
    assert [(each.state, each.client) for each in _one(trail).branches] == [(State.DELIVERED, PANEL["client"])]


def test_message_for_a_target_waits_until_a_channel_has_handed_it_over(plant, trail) -> None:
    plant.publishes(7, destination="PLANT", queue="PLANT.INPUT")
    assert [(each.target, each.state) for each in _one(trail).branches] == [("PLANT", State.WAITS)]
    trail.add("forwarded", message_id=_id(7), queue="PLANT.INPUT", queue_manager="CENTRAL_1")
    assert [(each.state, each.reason) for each in _one(trail).branches] == [(State.FORWARDED, "CENTRAL_1")]


def test_copy_that_an_application_got_is_told_with_its_name(plant, trail) -> None:
    plant.publishes(7)
    plant.copies(7, 100, queue="HISTORY")
    trail.add("mqget", message_id=_id(100), queue="HISTORY", payload_sha256="00" * 32, application="archive")
    branch = _one(trail).branches[0]
    assert (branch.state, branch.reason, branch.ended_us) == (State.TAKEN, "archive", SEVEN_US + 4)


def test_publication_of_an_application_has_no_client(plant, trail) -> None:
    trail.add("commanded", command="Publish", message_id=_id(7), queue="STREAM", completion="ok", topics=["plant/heat"])
    plant.copies(7, 100)
    plant.delivers(100)
    fate = _one(trail)
    assert (fate.client, fate.topic, len(fate.branches)) == ("", "plant/heat", 1)
    assert [each.is_delivery for each in _found(trail, clients=_client(PANEL["client"])).messages] == [True]


def test_segments_of_another_time_are_not_read_and_later_ones_only_while_something_waits(plant, trail) -> None:
    trail.add("stock", messages=0)
    folder = trail.write("000000000001-20261120T04.jsonl")
    trail.lines.clear()
    plant.publishes(7)
    plant.copies(7, 100)
    trail.write("000000000002-20261120T07.jsonl")
    trail.lines.clear()
    plant.delivers(100)
    trail.add("acknowledged", message_id=_id(100), packet_type=4, **PANEL)
    trail.add("confirmed", exchanges=[[7, 7]], packet_type=4, **PUMP)
    trail.write("000000000003-20261120T09.jsonl")
    trail.lines.clear()
    trail.add("stock", messages=0, at_us=SEVEN_US + 3 * HOUR_US)
    (folder / "000000000004-20261120T10.jsonl.gz").write_bytes(gzip.compress(trail.lines[0]))
    found = fates_of(Wanted(since_us=SEVEN_US, until_us=SEVEN_US + HOUR_US), [TrailFolder(folder)])
    assert (found.segments, found.skipped, found.lines) == (2, 2, 6)
    assert [branch.state for fate in found.messages for branch in fate.branches] == [State.ACKNOWLEDGED]


def test_what_an_exporter_wrote_hours_too_late_is_found(plant, trail) -> None:
    plant.publishes(7)
    trail.add("confirmed", exchanges=[[7, 7]], packet_type=4, **PUMP)
    folder = trail.write("000000000001-20261120T07.jsonl")
    trail.lines.clear()
    plant.publishes(8)
    trail.write("000000000002-20261120T11.jsonl")
    found = fates_of(Wanted(since_us=SEVEN_US, until_us=SEVEN_US + HOUR_US), [TrailFolder(folder)])
    assert ([each.message_id for each in found.messages], found.skipped) == ([_id(7), _id(8)], 0)


def test_more_messages_or_copies_than_can_be_held_are_cut_and_it_says_so(plant, trail, monkeypatch) -> None:
    monkeypatch.setattr(fates_module, "MOST_MESSAGES", 3)
    monkeypatch.setattr(fates_module, "MOST_BRANCHES", 2)
    for number in range(1, 4):
        plant.publishes(number)
        plant.copies(number, 100 + number)
    found = _found(trail)
    assert (len(found.messages), [len(fate.branches) for fate in found.messages], found.is_cut) == (3, [1, 1, 0], True)
    plant.publishes(5)
    assert len(_found(trail).messages) == 3


def test_changed_record_marks_its_message_alone(plant, trail) -> None:
    plant.publishes(7)
    plant.publishes(8)
    trail.lines[3] = trail.lines[3].replace(b'"qos":1', b'"qos":2')
    assert [fate.is_changed for fate in _found(trail).messages] == [False, True]


def test_keyed_names_are_noticed(plant, trail) -> None:
    assert not _found(trail).has_keyed_clients
    plant.publishes(7, topic="k:" + "0" * 32, client="k:" + "1" * 32)
    found = _found(trail)
    assert (found.has_keyed_clients, found.has_keyed_topics) == (True, True)


HOSTILE = [
    b"{}",
    b"[1]",
    b"\xff",
    b'{"kind":["put"]}',
    *(
        json.dumps({"kind": kind, "command": "Publish", "at_us": 1, **dict.fromkeys(names, value)}).encode()
        for kind in ("accepted", "put", "commanded", "delivered", "confirmed", "dead_lettered", "redriven")
        for names in (("message_id", "dead_letter_id"), ("client", "exchange", "exchanges"), ("topic", "topics"))
        for value in (None, 7, [], ["x"], {"a": 1}, "x" * 50)
    ),
]


def test_hostile_records_stop_no_search(plant, trail) -> None:
    plant.publishes(7)
    trail.lines += [line + b"\n" for line in HOSTILE]
    trail.add("confirmed", exchanges=[[1, 7]], packet_type=4, **PUMP)
    fates = [fate for fate in _found(trail).messages if fate.message_id == _id(7)]
    assert [fate.confirmed_us > 0 for fate in fates] == [True]


def test_the_hash_of_a_line_is_made_once_for_all_records_of_its_batch(tmp_path, monkeypatch) -> None:
    make_trail(tmp_path / "trail", 2_000)
    hashed: list[bytes] = []
    monkeypatch.setattr(fates_module, "line_hashes", lambda line: hashed.append(line) or line_hashes(line))
    found = fates_of(Wanted(), [TrailFolder(tmp_path / "trail")])
    assert len(found.messages) > 10 * len(hashed)
    assert len(set(hashed)) == len(hashed) == found.lines
