"""What waits for a session is bounded, and nothing of it is lost: by number, by bytes and by age."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from gateway.audit_trail.notes.notes import NoteKind
from gateway.bridge.deliver.outgoing_messages import bytes_in_flight
from gateway.bridge.sessions.queue_limits import QueueLimits
from gateway.config.limits import Limit
from gateway.config.mqtt_limits import MqttLimits
from gateway.limits.budgets import Account, Amount
from gateway.limits.refusals import Refusals
from gateway.mqtt.reason_codes import ReasonCode
from gateway.operations.redrive import opened
from mq_adapters.embedded.unit_of_work import Departure
from mq_adapters.system_queues import DEAD_LETTER_QUEUE
from tests.gateway.bridge.conftest import LIMITS, SUBSCRIBER_QUEUE, FakeLink, NewWorld, World, publish_packet, written

SECOND_US = 1_000_000
CONNECT = "10 10 0004 'MQTT' 04 00 0000 0004 'away'"


class Backlog:
    """A session that is away, its publisher, and the limits of what waits for it."""

    def __init__(self, world: World, **limits: int) -> None:
        self.world = world
        self.refusals = Refusals()
        queue = world.engine.queue(SUBSCRIBER_QUEUE)
        self.limits = QueueLimits(
            world.engine,
            queue,
            MqttLimits.model_validate(limits),
            self.refusals,
            is_connected=self._is_connected,
            in_flight_bytes=self._in_flight_bytes,
            account_of=self._account_of,
            budgets=world.sessions.budgets,
        )
        away = world.connect("away", flags="00")
        world.receive(away, "82 08 0001 0003 't/#' 01")
        assert away.taken() == written("90 03 0001 01")
        world.lose(away)
        self.publisher = world.connect("tell")

    def publish(self, *payloads: bytes, first_byte: int = 0x32) -> None:
        for payload in payloads:
            packet = publish_packet(first_byte, b"t/1", payload)
            self.world.bridge.receive(self.publisher, packet)
            self.world.run()
            answer = written("40 02 0001") if first_byte & 2 else b""
            assert self.publisher.taken() == answer, "a publisher never waits for a subscriber"

    def tick(self, times: int = 3) -> None:
        for _ in range(times):
            self.limits.tick(self.world.now_us)
            self.world.run()

    def waiting(self) -> list[bytes]:
        return [message.body[-1:] for message in self.world.messages(SUBSCRIBER_QUEUE)]

    def dead_letters(self) -> list[bytes]:
        return [message.body[-1:] for message in self.world.messages(DEAD_LETTER_QUEUE)]

    def come_back(self) -> FakeLink:
        link = FakeLink()
        self.world.receive(link, CONNECT)
        return link

    def _is_connected(self, correl_id: bytes) -> bool:
        session = self.world.sessions.of_correl_id(correl_id)
        return session is not None and session.link is not None

    def _account_of(self, correl_id: bytes) -> Account | None:
        session = self.world.sessions.of_correl_id(correl_id)
        return None if session is None else session.account

    def _in_flight_bytes(self, correl_id: bytes) -> int:
        session = self.world.sessions.of_correl_id(correl_id)
        return 0 if session is None else bytes_in_flight(session, correl_id)


Made = Callable[..., Backlog]


@pytest.fixture
def backlog(world: World) -> Made:
    return lambda **limits: Backlog(world, **limits)


def test_a_session_that_has_filled_its_share_of_the_dead_letter_queue_keeps_the_rest(backlog: Made) -> None:
    made = backlog(maximum_queued_messages=1)
    made.world.engine.dead_letters.share = 2
    made.publish(b"1", b"2", b"3", b"4", b"5")
    made.tick()
    assert (made.waiting(), made.dead_letters()) == ([b"1", b"4", b"5"], [b"2", b"3"])
    made.world.now_us += 11 * SECOND_US
    made.tick()
    assert made.waiting() == [b"1", b"4", b"5"], "in its order, and nothing of it is held elsewhere"
    assert made.world.messages("SYSTEM.RFHBRIDGE.HELD") == []
    assert made.world.admission.refusals.totals[Limit.DEAD_LETTERS, ReasonCode.QUOTA_EXCEEDED] > 0


def test_a_user_that_has_filled_its_share_of_the_dead_letter_queue_keeps_the_rest_too(new_world: NewWorld) -> None:
    world = new_world(limits=LIMITS.model_copy(update={"maximum_dead_letters_per_address": 2}))
    made = Backlog(world, maximum_queued_messages=1)
    made.publish(b"1", b"2", b"3", b"4", b"5")
    made.tick()
    assert (made.waiting(), made.dead_letters()) == ([b"1", b"4", b"5"], [b"2", b"3"])
    assert world.sessions.budgets.everybody.amounts[Amount.DEAD_LETTERS] == 2
    assert world.admission.refusals.totals[Limit.DEAD_LETTERS_PER_ADDRESS, ReasonCode.QUOTA_EXCEEDED] > 0


@pytest.mark.parametrize("scope", ["address", "prefix"])
def test_what_waits_for_many_sessions_is_bounded_and_who_has_little_keeps_it(new_world: NewWorld, scope: str) -> None:
    key = f"maximum_queued_bytes_per_{scope}"
    world = new_world(limits=LIMITS.model_copy(update={key: 5_000}))
    made = Backlog(world, **{key: 5_000})
    modest = world.connect("litl", flags="00")
    world.receive(modest, "82 08 0001 0003 's/#' 01")
    world.lose(modest)
    made.publish(*(bytes(1_000) + b"%d" % number for number in range(8)))
    world.bridge.receive(made.publisher, publish_packet(0x32, b"s/1", b"s"))
    world.run()
    made.publisher.taken()
    made.tick(30)
    lanes = world.engine.queue(SUBSCRIBER_QUEUE).lane_bytes or {}
    assert 3_500 < sum(lanes.values()) <= 5_000
    assert made.waiting()[-1] == b"s", "that session has less than the average"
    assert made.dead_letters() == [b"4", b"5", b"6", b"7"], "the newest, in their order"
    assert {limit.key for limit, _ in made.refusals.totals} == {key}
    amounts = world.sessions.budgets.everybody.amounts
    assert amounts[Amount.QUEUED_BYTES] == sum(lanes.values())
    unit, queue = world.engine.begin(), world.engine.queue(SUBSCRIBER_QUEUE)
    while (message := world.engine.take(queue)) is not None:
        unit.remove(queue, message, Departure.TAKEN)
    world.engine.submit(unit)
    world.run()
    made.tick(30)
    assert amounts[Amount.QUEUED_BYTES] == 0


def test_the_newest_past_the_number_become_dead_letters_in_order(backlog: Made) -> None:
    made = backlog(maximum_queued_messages=3)
    made.publish(b"1", b"2", b"3")
    made.tick()
    assert made.dead_letters() == []
    made.publish(b"4", b"5")
    made.tick()
    made.publish(b"6")
    made.tick()
    assert made.waiting() == [b"1", b"2", b"3"]
    assert made.dead_letters() == [b"4", b"5", b"6"]
    assert made.refusals.totals == {(Limit.QUEUED_MESSAGES, ReasonCode.QUOTA_EXCEEDED): 3}
    link = made.come_back()
    assert [link.sent.count(payload) for payload in (b"t/1\x00\x011", b"t/1\x00\x033", b"4")] == [1, 1, 0]


def test_a_dead_letter_says_why_and_can_go_back_to_the_session(backlog: Made) -> None:
    made = backlog(maximum_queued_messages=1)
    made.publish(b"1", b"2")
    made.tick()
    letter = opened(made.world.messages(DEAD_LETTER_QUEUE)[0])
    assert (letter.header.reason, letter.header.dest_q_name) == (2053, SUBSCRIBER_QUEUE)
    session = made.world.sessions.get("away")
    assert session is not None
    assert letter.message.descriptor.correl_id == session.correl_id
    assert letter.topics == ("t/1",)


def test_the_audit_hears_of_each_copy_that_becomes_a_dead_letter(backlog: Made) -> None:
    made = backlog(maximum_queued_messages=1)
    made.publish(b"1", b"2")
    copies = [message.sequence for message in made.world.messages(SUBSCRIBER_QUEUE)]
    made.tick()
    made.world.engine.tick()
    made.world.run()
    told = [note for note in made.world.notes if note[0] == NoteKind.DEAD_LETTERED]
    letter = made.world.messages(DEAD_LETTER_QUEUE)[0]
    assert [(note[2], note[5], note[6], note[7], note[8]) for note in told] == [
        ("tell", SUBSCRIBER_QUEUE, copies[1], letter.sequence, 2053)
    ]


def test_bytes_are_bounded_with_the_headers_that_are_kept(backlog: Made) -> None:
    made = backlog(maximum_queued_bytes=10_000)
    made.publish(*(b"x" * 3_000 + bytes((number,)) for number in b"1234567"))
    made.tick()
    assert made.waiting() == [b"1", b"2", b"3"]
    assert made.dead_letters() == [b"4", b"5", b"6", b"7"]
    assert made.refusals.totals == {(Limit.QUEUED_BYTES, ReasonCode.QUOTA_EXCEEDED): 4}
    assert sum((made.world.engine.queue(SUBSCRIBER_QUEUE).lane_bytes or {}).values()) <= 10_000


def test_what_is_on_its_way_to_a_client_waits_no_more(backlog: Made) -> None:
    """Ten messages fill the client's window and have more bytes than may wait; what comes then waits as it may."""
    made = backlog(maximum_queued_bytes=10_000)
    link = made.come_back()
    made.publish(*(b"x" * 3_000 + bytes((number,)) for number in b"ABCDEFGHIJ"))
    assert link.sent.count(b"x" * 3_000) == 10
    made.publish(*(b"x" * 3_000 + bytes((number,)) for number in b"123"))
    made.tick()
    assert made.dead_letters() == []
    made.publish(*(b"x" * 3_000 + bytes((number,)) for number in b"45"))
    made.tick()
    assert made.dead_letters() == [b"4", b"5"]
    assert made.waiting()[-3:] == [b"1", b"2", b"3"]


def test_what_is_too_old_goes_first_while_nobody_takes_it(backlog: Made) -> None:
    made = backlog(maximum_queued_age_s=60)
    made.publish(b"1", b"2")
    made.world.now_us += 59 * SECOND_US
    made.publish(b"3")
    made.tick()
    assert made.dead_letters() == []
    made.world.now_us += SECOND_US
    made.tick()
    assert made.waiting() == [b"3"]
    assert made.dead_letters() == [b"1", b"2"]
    assert opened(made.world.messages(DEAD_LETTER_QUEUE)[0]).header.reason == 258  # MQFB_EXPIRATION
    assert made.refusals.totals == {(Limit.QUEUED_AGE, ReasonCode.QUOTA_EXCEEDED): 2}


def test_what_waits_for_a_connected_client_has_no_age(backlog: Made) -> None:
    made = backlog(maximum_queued_age_s=60)
    link = made.come_back()
    link.can_send = False
    made.publish(b"1")
    made.world.now_us += 3_600 * SECOND_US
    made.tick()
    assert made.dead_letters() == []
    link.can_send = True
    made.world.bridge.resumed(link)
    made.world.run()
    assert link.sent.endswith(b"t/1\x00\x011")


def test_qos_0_past_the_number_is_dropped_and_the_audit_hears_of_it(backlog: Made) -> None:
    made = backlog(maximum_queued_messages=2)
    made.publish(b"1")
    made.publish(b"2", b"3", first_byte=0x30)
    made.tick()
    made.world.engine.tick()
    made.world.run()
    assert made.waiting() == [b"1", b"2"]
    assert made.dead_letters() == []
    assert [note[-1] for note in made.world.notes if note[0] == NoteKind.DROPPED] == [
        "the session's limit of queued_messages was reached"
    ]


def test_nothing_is_lost_while_the_dead_letter_queue_takes_nothing(
    backlog: Made, caplog: pytest.LogCaptureFixture
) -> None:
    made = backlog(maximum_queued_messages=1)
    made.world.engine.queue(DEAD_LETTER_QUEUE).maximum_depth = 1
    made.publish(b"1", b"2", b"3", b"4")
    made.tick()
    assert sorted(made.waiting() + made.dead_letters()) == [b"1", b"2", b"3", b"4"]
    assert len(made.dead_letters()) == 1
    assert [record.message.partition(" ")[0] for record in caplog.records].count("dead-letter") == 1
    made.world.engine.queue(DEAD_LETTER_QUEUE).maximum_depth = 100
    made.world.now_us += 11 * SECOND_US
    made.tick()
    assert made.waiting() == [b"1"]
    assert sorted(made.dead_letters()) == [b"2", b"3", b"4"]


def test_many_messages_go_a_few_in_each_turn_and_in_their_order(backlog: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, number in (("TAKEN", 3), ("MOVED", 2)):
        monkeypatch.setattr(f"gateway.bridge.sessions.queue_limits._{name}_AT_ONCE", number)
    made = backlog(maximum_queued_messages=2)
    made.publish(*(bytes((number,)) for number in b"123456789"))
    made.limits.tick(made.world.now_us)
    letters = [0]
    while letters[-1] < 7 and len(letters) < 100:
        made.world.turn()
        letters.append(len(made.dead_letters()))
    assert max(after - before for before, after in pairwise(letters)) == 2
    assert made.waiting() == [b"1", b"2"]
    assert b"".join(made.dead_letters()) == b"3456789"


def test_lanes_past_their_limits_take_turns(backlog: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.bridge.sessions.queue_limits._MOVED_AT_ONCE", 1)
    made = backlog(maximum_queued_messages=1)
    for name in ("far1", "far2"):
        far = made.world.connect(name, flags="00")
        made.world.receive(far, "82 08 0001 0003 't/#' 01")
        made.world.lose(far)
    made.publish(*(bytes((number,)) for number in b"1234"))
    made.tick(2)
    assert made.waiting() == [b"1"] * 3
    assert sorted(made.dead_letters()) == sorted([b"2", b"3", b"4"] * 3)


def test_a_crash_while_messages_move_leaves_each_where_it_was_or_is_a_dead_letter(
    backlog: Made, new_world: NewWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.bridge.sessions.queue_limits._MOVED_AT_ONCE", 1)
    made = backlog(maximum_queued_messages=2)
    made.publish(*(bytes((number,)) for number in b"123456789"))
    made.limits.tick(made.world.now_us)
    while len(made.dead_letters()) < 3:
        made.world.turn()
    world = new_world(made.world.kill(tmp_path / "killed"))
    letters = [message.body[-1:] for message in world.messages(DEAD_LETTER_QUEUE)]
    waiting = [message.body[-1:] for message in world.messages(SUBSCRIBER_QUEUE)]
    assert len(letters) >= 3
    assert sorted(letters + waiting) == [bytes((number,)) for number in b"123456789"]


def test_without_limits_nothing_is_looked_at(backlog: Made) -> None:
    made = backlog(maximum_queued_messages=0, maximum_queued_bytes=0)
    made.publish(b"1", b"2")
    made.tick()
    assert made.waiting() == [b"1", b"2"]
