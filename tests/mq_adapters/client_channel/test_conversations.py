"""The phases of a conversation: what each takes, and what it refuses."""

import pytest

from mq_adapters.client_channel.conversations import PHASES, Conversations, Phase
from mq_adapters.client_channel.errors import ChannelProtocolError, StatusCode
from mq_adapters.client_channel.segments import SegmentType

#: For each phase the segments that it takes; every other one is refused.
TAKEN = {
    Phase.ASKED: set(),
    Phase.AWAIT_USER: {"USERID_DATA"},
    Phase.AWAIT_CONNECT: {"USERID_DATA", "CONAUTH_INFO", "MQCONN"},
    Phase.AWAIT_VERDICT: set(),
    Phase.AUTHENTICATED: {"MQCONN"},
    Phase.CONNECTING: set(),
    Phase.CONNECTED: {each.name for each in SegmentType if each >= SegmentType.MQDISC}
    | {"REQUEST_MSGS", "NOTIFICATION"},
    Phase.DISCONNECTING: set(),
    Phase.DISCONNECTED: set(),
}


@pytest.mark.parametrize("phase", Phase)
def test_a_phase_takes_its_segments_and_refuses_all_others(phase: Phase) -> None:
    conversations = Conversations(1)
    conversations.move(1, phase)
    for segment_type in range(256):
        if segment_type in PHASES[phase]:
            assert conversations.next_phase(1, segment_type) is PHASES[phase][segment_type]
            continue
        with pytest.raises(ChannelProtocolError) as refused:
            conversations.next_phase(1, segment_type)
        assert refused.value.status_code is StatusCode.PROTOCOL_SEGMENT_TYPE
    assert {SegmentType(each).name for each in PHASES[phase]} == TAKEN[phase]


@pytest.mark.parametrize("conversation", [0, -1, 1])
def test_a_number_that_is_none_or_in_use_is_refused(conversation: int) -> None:
    conversations = Conversations(9)
    conversations.begin(1)
    with pytest.raises(ChannelProtocolError) as refused:
        conversations.begin(conversation)
    assert refused.value.status_code is StatusCode.CONV_ID_ERROR


def test_conversations_have_a_limit_and_make_room_when_they_end() -> None:
    conversations = Conversations(2)
    conversations.begin(1)
    conversations.begin(3)
    with pytest.raises(ChannelProtocolError, match="more than 2"):
        conversations.begin(5)
    assert conversations.end(3)
    assert not conversations.end(3)
    conversations.begin(5)
    assert (1 in conversations, 3 in conversations, 5 in conversations) == (True, False, True)


def test_a_conversation_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ChannelProtocolError) as refused:
        Conversations(2).next_phase(7, SegmentType.MQCMIT)
    assert refused.value.status_code is StatusCode.CONV_ID_ERROR
