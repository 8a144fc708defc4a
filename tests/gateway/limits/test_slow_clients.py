"""Clients that do not take what waits for them, and clients that do not finish what they send."""

from gateway.config.limits import Limit
from gateway.config.mqtt_limits import MqttLimits
from gateway.limits.refusals import Refusals
from gateway.limits.slow_clients import SlowReaders, SlowSenders
from gateway.mqtt.reason_codes import ReasonCode


class Reader:
    """A connection whose peer takes what a test says."""

    def __init__(self) -> None:
        self.is_open = True
        self.sent_bytes = self.unsent_bytes = self.taken_bytes = 0
        self.taken_s = 1_000.0
        self.reason_code: ReasonCode | None = None

    def send(self, size: int) -> None:
        self.sent_bytes += size
        self.unsent_bytes += size

    def take(self, size: int) -> None:
        self.unsent_bytes -= size

    def close(self, reason: str, reason_code: ReasonCode, told: str) -> None:
        assert reason
        assert told
        self.is_open = False
        self.reason_code = reason_code


def _look(looked: SlowReaders, readers: list[Reader], first_s: int, last_s: int) -> None:
    for now_s in range(first_s, last_s + 1):
        list(looked.look(readers, float(now_s)))


def test_who_takes_nothing_for_so_long_is_disconnected_and_who_takes_a_byte_is_not() -> None:
    refusals = Refusals()
    looked = SlowReaders(MqttLimits(slow_reader_timeout_s=10.0), refusals)
    dead, slow, idle = Reader(), Reader(), Reader()
    dead.send(100)
    slow.send(100)
    for now_s in range(1_000, 1_030):
        if now_s % 9 == 0:
            slow.take(1)
        dead.send(1)  # what is sent meanwhile does not make it look alive
        list(looked.look([dead, slow, idle], float(now_s)))
        assert dead.is_open == (now_s <= 1_010), now_s
    assert slow.is_open
    assert idle.is_open
    assert dead.reason_code is ReasonCode.QUOTA_EXCEEDED
    assert refusals.totals == {(Limit.SLOW_READER, ReasonCode.QUOTA_EXCEEDED): 1}


def test_time_without_anything_to_take_does_not_count() -> None:
    looked = SlowReaders(MqttLimits(slow_reader_timeout_s=10.0), Refusals())
    reader = Reader()
    _look(looked, [reader], 1_000, 1_100)
    reader.send(1)
    _look(looked, [reader], 1_101, 1_110)
    assert reader.is_open
    _look(looked, [reader], 1_111, 1_111)
    assert not reader.is_open


def test_where_too_much_waits_for_all_who_takes_nothing_goes_and_the_largest_first() -> None:
    refusals = Refusals()
    looked = SlowReaders(MqttLimits(maximum_unsent_bytes_in_all=1_000), refusals)
    small, middle, large, alive = Reader(), Reader(), Reader(), Reader()
    readers = [small, middle, large, alive]
    for reader, size in zip(readers, (300, 400, 500, 600), strict=True):
        reader.send(size)
    alive.take(1)
    list(looked.look(readers, 1_001.0))
    assert [reader.is_open for reader in readers] == [True, False, False, True]
    assert refusals.totals == {(Limit.UNSENT_BYTES_IN_ALL, ReasonCode.QUOTA_EXCEEDED): 2}


# -- senders ---------------------------------------------------------------------------------------------------------


class Sender:
    """A connection in the middle of a packet."""

    def __init__(self, unfinished_bytes: int) -> None:
        self.is_open = True
        self.unfinished_bytes = unfinished_bytes
        self.reason_code: ReasonCode | None = None

    def close(self, reason: str, reason_code: ReasonCode, told: str) -> None:
        assert reason
        assert told
        self.is_open = False
        self.reason_code = reason_code


def test_the_largest_are_dropped_until_the_rest_has_room() -> None:
    refusals = Refusals()
    senders = [Sender(size) for size in (10, 400, 0, 300, 90)]
    packets = SlowSenders(MqttLimits(maximum_unfinished_bytes_in_all=100), refusals)
    list(packets.look(senders))
    assert [sender.is_open for sender in senders] == [True, False, True, False, True]
    assert {sender.reason_code for sender in senders if not sender.is_open} == {ReasonCode.QUOTA_EXCEEDED}
    assert refusals.totals == {(Limit.UNFINISHED_BYTES_IN_ALL, ReasonCode.QUOTA_EXCEEDED): 2}
    list(packets.look(senders))
    assert sum(refusals.totals.values()) == 2


def test_what_fits_is_waited_for() -> None:
    refusals = Refusals()
    senders = [Sender(50), Sender(50)]
    list(SlowSenders(MqttLimits(maximum_unfinished_bytes_in_all=100), refusals).look(senders))
    assert all(sender.is_open for sender in senders)
    assert not refusals.totals
