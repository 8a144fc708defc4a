"""State messages, as texts that are typed out here, and whatever else may be on their queue."""

import json
from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mq_adapters.channel.state_message import (
    Batch,
    LocalState,
    MalformedState,
    RemoteState,
    read_local_state,
    read_remote_state,
    state_correl_id,
)
from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor

GATEWAY = bytes.fromhex("000102030405060708090a0b")
OWN = b"RFHB" + GATEWAY
FOREIGN = b"f" * 24
REMOTE_TEXT = (
    b'{"version":1,"channel":"PLANT.OUT.0","gateway":"000102030405060708090a0b","queue_manager":"PLANT_2026",'
    b'"batch":7,"last_sequence":4711,"messages":[4709,4711,"' + b"66" * 24 + b'"]}'
)
REMOTE = RemoteState(
    channel="PLANT.OUT.0",
    gateway=GATEWAY,
    queue_manager="PLANT_2026",
    batch=Batch(number=7, messages=(OWN + (4709).to_bytes(8, "big"), OWN + (4711).to_bytes(8, "big"), FOREIGN)),
    last_sequence=4711,
)
LOCAL_TEXT = (
    b'{"version":1,"channel":"PLANT.OUT.0","gateway":"000102030405060708090a0b","queue_manager":"PLANT_2026",'
    b'"batch":6,"last_sequence":4708,"settled":{"OLD_2025":2,"PLANT_2026":6},'
    b'"doubtful":{"batch":7,"messages":[4709]},"reset":false}'
)
LOCAL = LocalState(
    channel="PLANT.OUT.0",
    gateway=GATEWAY,
    queue_manager="PLANT_2026",
    batch=6,
    last_sequence=4708,
    settled={"OLD_2025": 2, "PLANT_2026": 6},
    doubtful=Batch(number=7, messages=(OWN + (4709).to_bytes(8, "big"),)),
)


def message(body: bytes) -> Message:
    return Message(MessageDescriptor(), body)


def test_both_states_are_written_as_typed():
    assert REMOTE.to_message().body == REMOTE_TEXT
    assert LOCAL.to_message().body == LOCAL_TEXT


def test_the_time_of_what_was_delivered_may_be_left_out():
    """Programs before this one do not write it."""
    timed = replace(REMOTE, newest_us=1_700_000_000_000_000)
    assert timed.to_message().body == REMOTE_TEXT[:-1] + b',"newest_us":1700000000000000}'
    assert read_remote_state(timed.to_message()) == timed


def test_both_states_are_read_as_typed():
    assert read_remote_state(message(REMOTE_TEXT)) == REMOTE
    assert read_local_state(message(LOCAL_TEXT)) == LOCAL


def test_a_state_message_is_text_and_persistent_and_never_expires():
    descriptor = REMOTE.to_message().descriptor
    assert (descriptor.format, descriptor.persistence, descriptor.expiry) == (b"MQSTR   ", MQPER_PERSISTENT, -1)
    # printf %s PLANT.OUT.0 | sha256sum
    assert descriptor.correl_id == b"RFHC" + bytes.fromhex("88674931359c51c1255326623eb30c88e3dd77d6")
    assert state_correl_id("PLANT.OUT.1") != descriptor.correl_id


@pytest.mark.parametrize(("text", "read"), [(REMOTE_TEXT, read_remote_state), (LOCAL_TEXT, read_local_state)])
def test_a_text_that_is_cut_is_malformed(text, read):
    for length in range(len(text)):
        with pytest.raises(MalformedState):
            read(message(text[:length]))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("version", 2),
        ("version", None),
        ("channel", "x" * 49),
        ("channel", "line\nbreak"),
        ("channel", 7),
        ("gateway", "00"),
        ("gateway", "0001 02030405060708090a0b"),
        ("gateway", "000102030405060708090A0B"),
        ("queue_manager", "größe"),
        ("batch", -1),
        ("batch", 2**63),
        ("batch", 1.0),
        ("batch", True),
        ("last_sequence", "7"),
        ("messages", {}),
        ("messages", [0]),
        ("messages", ["66" * 23]),
        ("messages", [None]),
    ],
)
def test_a_field_that_is_wrong_is_malformed(key, value):
    fields = {**json.loads(REMOTE_TEXT), key: value}
    with pytest.raises(MalformedState):
        read_remote_state(message(json.dumps(fields).encode()))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("settled", []),
        ("settled", {str(number): 1 for number in range(17)}),
        ("settled", {"PLANT": "6"}),
        ("doubtful", {}),
        ("doubtful", {"batch": 7, "messages": "4709"}),
        ("doubtful", 7),
        ("reset", 0),
    ],
)
def test_a_field_of_the_local_state_that_is_wrong_is_malformed(key, value):
    fields = {**json.loads(LOCAL_TEXT), key: value}
    with pytest.raises(MalformedState):
        read_local_state(message(json.dumps(fields).encode()))


def test_a_key_more_or_less_is_malformed():
    fields = json.loads(REMOTE_TEXT)
    with pytest.raises(MalformedState, match="keys"):
        read_remote_state(message(orjson.dumps({**fields, "note": ""})))
    del fields["batch"]
    with pytest.raises(MalformedState, match="keys"):
        read_remote_state(message(orjson.dumps(fields)))


def test_a_message_that_no_state_queue_could_hold_is_not_even_parsed():
    with pytest.raises(MalformedState, match="bytes"):
        read_remote_state(message(b" " * (4 * 1024 * 1024 + 1)))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
)


@given(st.binary(max_size=200) | json_values.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_malformed(body: bytes):
    for read in (read_remote_state, read_local_state):
        with pytest.raises(MalformedState):
            read(message(body))


@given(st.sampled_from(sorted(json.loads(LOCAL_TEXT))), json_values)
def test_any_value_of_a_field_is_read_or_malformed(key: str, value: object):
    fields = {**json.loads(LOCAL_TEXT), key: value}
    try:
        state = read_local_state(message(json.dumps(fields).encode()))
    except MalformedState:
        return
    assert read_local_state(state.to_message()) == state


def test_batch_numbers_rise_over_all_queue_managers():
    state = LocalState(channel="C", gateway=GATEWAY).pinned_to("A").doubting((FOREIGN,))
    assert state.doubtful == Batch(number=1, messages=(FOREIGN,))
    state = state.settling(last_sequence=5).pinned_to("B").doubting(()).settling()
    assert (state.batch, state.last_sequence) == (2, 5)
    assert (state.settled_at("A"), state.settled_at("B"), state.settled_at("C")) == (1, 2, 0)


def test_the_queue_manager_that_was_left_longest_ago_is_forgotten():
    state = LocalState(channel="C", gateway=GATEWAY)
    for number in range(20):
        state = state.pinned_to(f"QM{number}").doubting(()).settling()
    assert list(state.settled) == [f"QM{number}" for number in range(4, 20)]
