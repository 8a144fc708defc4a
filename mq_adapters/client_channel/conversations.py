"""The phases of a conversation, and which segments each of them takes.

AWAIT_USER -- USERID_DATA --> AWAIT_CONNECT -- MQCONN --> CONNECTING
ASKED -- open_conversation --> AWAIT_CONNECT
AWAIT_CONNECT -- CONAUTH_INFO --> AWAIT_VERDICT -- answer_authentication --> AUTHENTICATED -- MQCONN --> CONNECTING
CONNECTING -- reply --> CONNECTED -- MQDISC --> DISCONNECTING -- reply --> DISCONNECTED

A reply that refuses MQCONN leads to DISCONNECTED too. The first conversation of a socket begins with AWAIT_USER. In the
others a client (com.ibm.mq.allclient 9.4.5.0) does not say its user again; it may.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from mq_adapters.client_channel.errors import ChannelProtocolError, StatusCode
from mq_adapters.client_channel.segments import CALLS, SegmentType


class Phase(IntEnum):
    """The phase of a conversation. In those that are named after what the server owes, the client may send nothing."""

    ASKED = 0
    AWAIT_USER = 1
    AWAIT_CONNECT = 2
    AWAIT_VERDICT = 3
    AUTHENTICATED = 4
    CONNECTING = 5
    CONNECTED = 6
    DISCONNECTING = 7
    DISCONNECTED = 8


_OF_A_CONNECTION: Final = {*CALLS, SegmentType.REQUEST_MSGS, SegmentType.NOTIFICATION} - {SegmentType.MQCONN}
#: The segments that a phase takes, and the phase after each.
PHASES: Final[Mapping[Phase, Mapping[int, Phase]]] = {
    Phase.ASKED: {},
    Phase.AWAIT_USER: {SegmentType.USERID_DATA: Phase.AWAIT_CONNECT},
    Phase.AWAIT_CONNECT: {
        SegmentType.USERID_DATA: Phase.AWAIT_CONNECT,
        SegmentType.CONAUTH_INFO: Phase.AWAIT_VERDICT,
        SegmentType.MQCONN: Phase.CONNECTING,
    },
    Phase.AWAIT_VERDICT: {},
    Phase.AUTHENTICATED: {SegmentType.MQCONN: Phase.CONNECTING},
    Phase.CONNECTING: {},
    Phase.CONNECTED: {**dict.fromkeys(_OF_A_CONNECTION, Phase.CONNECTED), SegmentType.MQDISC: Phase.DISCONNECTING},
    Phase.DISCONNECTING: {},
    Phase.DISCONNECTED: {},
}


class Conversations:
    """The conversations of one socket, by their numbers, at most `most` of them."""

    __slots__ = ("_phases", "most")

    def __init__(self, most: int) -> None:
        self.most = most
        self._phases: dict[int, Phase] = {}

    def __contains__(self, conversation: int) -> bool:
        return conversation in self._phases

    def phase_of(self, conversation: int) -> Phase:
        """The phase of a conversation. ChannelProtocolError for one that does not exist."""
        phase = self._phases.get(conversation)
        if phase is None:
            raise ChannelProtocolError(StatusCode.CONV_ID_ERROR, f"conversation {conversation} does not exist")
        return phase

    def next_phase(self, conversation: int, segment_type: int) -> Phase:
        """The phase after a segment. ChannelProtocolError if the conversation's phase does not take it."""
        phase = self.phase_of(conversation)
        after = PHASES[phase].get(segment_type)
        if after is None:
            raise ChannelProtocolError(
                StatusCode.PROTOCOL_SEGMENT_TYPE,
                f"a segment of type {segment_type:02X} came in phase {phase.name} of conversation {conversation}",
            )
        return after

    def begin(self, conversation: int) -> None:
        """A client asks for a conversation. ChannelProtocolError for a number in use, or for one too many."""
        if conversation <= 0 or conversation in self._phases:
            raise ChannelProtocolError(StatusCode.CONV_ID_ERROR, f"{conversation} is no new conversation")
        if len(self._phases) >= self.most:
            raise ChannelProtocolError(StatusCode.CONV_ID_ERROR, f"more than {self.most} conversations were asked for")
        self._phases[conversation] = Phase.ASKED

    def move(self, conversation: int, phase: Phase) -> None:
        """The conversation is in another phase now."""
        self._phases[conversation] = phase

    def end(self, conversation: int) -> bool:
        """Forget a conversation; False if it did not exist."""
        return self._phases.pop(conversation, None) is not None
