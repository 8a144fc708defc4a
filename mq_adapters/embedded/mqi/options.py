"""Options of the MQI's calls, and which of them this queue manager does not carry out.

Names and numbers are those of cmqc.h. Source: IBM MQ, "MQOPEN", "MQCLOSE", "MQPUT", "MQGET".
"""

from enum import IntEnum, IntFlag
from typing import Final

from mq_adapters.embedded.rights import MissingRight, RightMissing
from mq_adapters.reasons import QueueManagerError, ReasonCode
from mq_adapters.subscribed_queue import SubscriptionOption

SubOption = SubscriptionOption


class ObjectKind(IntEnum):
    """MQOT_*: what MQOPEN opens."""

    Q = 1
    NAMELIST = 2
    PROCESS = 3
    Q_MGR = 5
    TOPIC = 8


class OpenOption(IntFlag):
    """MQOO_*."""

    INPUT_AS_Q_DEF = 0x0000_0001
    INPUT_SHARED = 0x0000_0002
    INPUT_EXCLUSIVE = 0x0000_0004
    BROWSE = 0x0000_0008
    OUTPUT = 0x0000_0010
    INQUIRE = 0x0000_0020
    SET = 0x0000_0040
    SAVE_ALL_CONTEXT = 0x0000_0080
    PASS_IDENTITY_CONTEXT = 0x0000_0100
    PASS_ALL_CONTEXT = 0x0000_0200
    SET_IDENTITY_CONTEXT = 0x0000_0400
    SET_ALL_CONTEXT = 0x0000_0800
    ALTERNATE_USER_AUTHORITY = 0x0000_1000
    FAIL_IF_QUIESCING = 0x0000_2000
    BIND_ON_OPEN = 0x0000_4000
    BIND_NOT_FIXED = 0x0000_8000
    RESOLVE_NAMES = 0x0001_0000
    CO_OP = 0x0002_0000
    RESOLVE_LOCAL_Q = 0x0004_0000
    NO_READ_AHEAD = 0x0008_0000
    READ_AHEAD = 0x0010_0000
    NO_MULTICAST = 0x0020_0000
    BIND_ON_GROUP = 0x0040_0000


class CloseOption(IntFlag):
    """MQCO_*."""

    DELETE = 0x1
    DELETE_PURGE = 0x2
    KEEP_SUB = 0x4
    REMOVE_SUB = 0x8
    QUIESCE = 0x20


class PutOption(IntFlag):
    """MQPMO_*."""

    SYNCPOINT = 0x0000_0002
    NO_SYNCPOINT = 0x0000_0004
    DEFAULT_CONTEXT = 0x0000_0020
    NEW_MSG_ID = 0x0000_0040
    NEW_CORREL_ID = 0x0000_0080
    PASS_IDENTITY_CONTEXT = 0x0000_0100
    PASS_ALL_CONTEXT = 0x0000_0200
    SET_IDENTITY_CONTEXT = 0x0000_0400
    SET_ALL_CONTEXT = 0x0000_0800
    ALTERNATE_USER_AUTHORITY = 0x0000_1000
    FAIL_IF_QUIESCING = 0x0000_2000
    NO_CONTEXT = 0x0000_4000
    LOGICAL_ORDER = 0x0000_8000
    ASYNC_RESPONSE = 0x0001_0000
    SYNC_RESPONSE = 0x0002_0000
    RESOLVE_LOCAL_Q = 0x0004_0000
    RETAIN = 0x0020_0000
    MD_FOR_OUTPUT_ONLY = 0x0080_0000


class GetOption(IntFlag):
    """MQGMO_*."""

    WAIT = 0x0000_0001
    SYNCPOINT = 0x0000_0002
    NO_SYNCPOINT = 0x0000_0004
    SET_SIGNAL = 0x0000_0008
    BROWSE_FIRST = 0x0000_0010
    BROWSE_NEXT = 0x0000_0020
    ACCEPT_TRUNCATED_MSG = 0x0000_0040
    MARK_SKIP_BACKOUT = 0x0000_0080
    MSG_UNDER_CURSOR = 0x0000_0100
    LOCK = 0x0000_0200
    UNLOCK = 0x0000_0400
    BROWSE_MSG_UNDER_CURSOR = 0x0000_0800
    SYNCPOINT_IF_PERSISTENT = 0x0000_1000
    FAIL_IF_QUIESCING = 0x0000_2000
    CONVERT = 0x0000_4000
    LOGICAL_ORDER = 0x0000_8000
    COMPLETE_MSG = 0x0001_0000
    ALL_MSGS_AVAILABLE = 0x0002_0000
    ALL_SEGMENTS_AVAILABLE = 0x0004_0000
    MARK_BROWSE_HANDLE = 0x0010_0000
    MARK_BROWSE_CO_OP = 0x0020_0000
    UNMARK_BROWSE_CO_OP = 0x0040_0000
    UNMARK_BROWSE_HANDLE = 0x0080_0000
    UNMARKED_BROWSE_MSG = 0x0100_0000
    PROPERTIES_FORCE_MQRFH2 = 0x0200_0000
    NO_PROPERTIES = 0x0400_0000
    PROPERTIES_IN_HANDLE = 0x0800_0000
    PROPERTIES_COMPATIBILITY = 0x1000_0000


class MatchOption(IntFlag):
    """MQMO_*."""

    MSG_ID = 0x01
    CORREL_ID = 0x02
    GROUP_ID = 0x04
    MSG_SEQ_NUMBER = 0x08
    OFFSET = 0x10
    MSG_TOKEN = 0x20


INPUT: Final = OpenOption.INPUT_AS_Q_DEF | OpenOption.INPUT_SHARED | OpenOption.INPUT_EXCLUSIVE
BROWSING: Final = GetOption.BROWSE_FIRST | GetOption.BROWSE_NEXT | GetOption.BROWSE_MSG_UNDER_CURSOR

#: Options that would need another right or another feature. They are refused, because to ignore them would be wrong.
_NEEDS_RIGHT: Final = {
    OpenOption: OpenOption.PASS_IDENTITY_CONTEXT
    | OpenOption.PASS_ALL_CONTEXT
    | OpenOption.SET_IDENTITY_CONTEXT
    | OpenOption.SET_ALL_CONTEXT
    | OpenOption.ALTERNATE_USER_AUTHORITY,
    PutOption: PutOption.PASS_IDENTITY_CONTEXT
    | PutOption.PASS_ALL_CONTEXT
    | PutOption.SET_IDENTITY_CONTEXT
    | PutOption.SET_ALL_CONTEXT
    | PutOption.ALTERNATE_USER_AUTHORITY,
    SubOption: SubOption.SET_IDENTITY_CONTEXT | SubOption.ALTERNATE_USER_AUTHORITY,
}
_NOT_HERE: Final = {
    OpenOption: OpenOption.SET | OpenOption.CO_OP,
    PutOption: PutOption.LOGICAL_ORDER | PutOption.ASYNC_RESPONSE | PutOption.RETAIN,
    GetOption: GetOption.SET_SIGNAL
    | GetOption.MARK_SKIP_BACKOUT
    | GetOption.UNLOCK
    | GetOption.LOGICAL_ORDER
    | GetOption.COMPLETE_MSG
    | GetOption.ALL_MSGS_AVAILABLE
    | GetOption.ALL_SEGMENTS_AVAILABLE
    | GetOption.MARK_BROWSE_HANDLE
    | GetOption.MARK_BROWSE_CO_OP
    | GetOption.UNMARK_BROWSE_CO_OP
    | GetOption.UNMARK_BROWSE_HANDLE
    | GetOption.UNMARKED_BROWSE_MSG
    | GetOption.PROPERTIES_IN_HANDLE,
    MatchOption: MatchOption.GROUP_ID | MatchOption.MSG_SEQ_NUMBER | MatchOption.OFFSET,
    SubOption: SubOption.READ_AHEAD,  # no answer tells the client that there is none, and it would wait for ever
}
#: Options of which a call may have one.
_ALTERNATIVES: Final = {
    OpenOption: (INPUT,),
    PutOption: (
        PutOption.SYNCPOINT | PutOption.NO_SYNCPOINT,
        PutOption.ASYNC_RESPONSE | PutOption.SYNC_RESPONSE,
        PutOption.DEFAULT_CONTEXT | PutOption.NO_CONTEXT | PutOption.SET_IDENTITY_CONTEXT | PutOption.SET_ALL_CONTEXT,
    ),
    GetOption: (
        GetOption.SYNCPOINT | GetOption.NO_SYNCPOINT | GetOption.SYNCPOINT_IF_PERSISTENT,
        BROWSING | GetOption.MSG_UNDER_CURSOR,
        GetOption.PROPERTIES_FORCE_MQRFH2
        | GetOption.NO_PROPERTIES
        | GetOption.PROPERTIES_IN_HANDLE
        | GetOption.PROPERTIES_COMPATIBILITY,
    ),
    MatchOption: (),
    SubOption: (SubOption.FIXED_USERID | SubOption.ANY_USERID, SubOption.WILDCARD_CHAR | SubOption.WILDCARD_TOPIC),
}
#: The bits of all options of a call.
_KNOWN: Final[dict[type[IntFlag], int]] = {kind: sum(kind) for kind in _NOT_HERE}


def check_options(kind: type[IntFlag], options: int, operation: str, *, granted: int = 0) -> None:
    """Refuses options that nobody knows or that exclude each other (2046), and those that need a right (2035).

    `granted` are options of the program's rights.
    """
    for alternatives in _ALTERNATIVES[kind]:
        if (options & alternatives).bit_count() > 1:
            raise QueueManagerError(ReasonCode.MQRC_OPTIONS_ERROR, f"{operation}: options exclude each other")
    if options & _NEEDS_RIGHT.get(kind, 0) & ~granted:
        why = f"{operation}: the application may not set the context of messages so"
        raise RightMissing(MissingRight.CONTEXT, "", why)
    refused = options & ~_KNOWN[kind] | options & _NOT_HERE[kind]
    if refused:
        complaint = f"{operation}: options {refused:#x} are not supported"
        reason_code = ReasonCode.MQRC_MATCH_OPTIONS_ERROR if kind is MatchOption else ReasonCode.MQRC_OPTIONS_ERROR
        raise QueueManagerError(reason_code, complaint)
