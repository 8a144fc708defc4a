"""Completion and reason codes of the MQI that the adapters raise, with what an operator may do about each.

Numbers and names: IBM MQ, "API completion and reason codes".
"""

from collections.abc import Mapping
from enum import Enum, IntEnum
from typing import Final


class ReasonCode(IntEnum):
    """MQRC_* values, named as IBM names them."""

    MQRC_NONE = 0
    MQRC_ALIAS_BASE_Q_TYPE_ERROR = 2001
    MQRC_ALREADY_CONNECTED = 2002
    MQRC_BACKED_OUT = 2003
    MQRC_BUFFER_LENGTH_ERROR = 2005
    MQRC_CONNECTION_BROKEN = 2009
    MQRC_DYNAMIC_Q_NAME_ERROR = 2011
    MQRC_EXPIRY_ERROR = 2013
    MQRC_FEEDBACK_ERROR = 2014
    MQRC_GET_INHIBITED = 2016
    MQRC_HANDLE_NOT_AVAILABLE = 2017
    MQRC_HCONN_ERROR = 2018
    MQRC_HOBJ_ERROR = 2019
    MQRC_SYNCPOINT_LIMIT_REACHED = 2024
    MQRC_MAX_CONNS_LIMIT_REACHED = 2025
    MQRC_MD_ERROR = 2026
    MQRC_MISSING_REPLY_TO_Q = 2027
    MQRC_MSG_TYPE_ERROR = 2029
    MQRC_MSG_TOO_BIG_FOR_Q = 2030
    MQRC_MSG_TOO_BIG_FOR_Q_MGR = 2031
    MQRC_NO_MSG_AVAILABLE = 2033
    MQRC_NO_MSG_UNDER_CURSOR = 2034
    MQRC_NOT_AUTHORIZED = 2035
    MQRC_NOT_OPEN_FOR_BROWSE = 2036
    MQRC_NOT_OPEN_FOR_INPUT = 2037
    MQRC_NOT_OPEN_FOR_INQUIRE = 2038
    MQRC_NOT_OPEN_FOR_OUTPUT = 2039
    MQRC_OBJECT_CHANGED = 2041
    MQRC_OBJECT_IN_USE = 2042
    MQRC_OBJECT_TYPE_ERROR = 2043
    MQRC_OD_ERROR = 2044
    MQRC_OPTION_NOT_VALID_FOR_TYPE = 2045
    MQRC_OPTIONS_ERROR = 2046
    MQRC_PERSISTENCE_ERROR = 2047
    MQRC_PERSISTENT_NOT_ALLOWED = 2048
    MQRC_PRIORITY_EXCEEDS_MAXIMUM = 2049
    MQRC_PRIORITY_ERROR = 2050
    MQRC_PUT_INHIBITED = 2051
    MQRC_Q_DELETED = 2052
    MQRC_Q_FULL = 2053
    MQRC_Q_NOT_EMPTY = 2055
    MQRC_Q_SPACE_NOT_AVAILABLE = 2056
    MQRC_Q_TYPE_ERROR = 2057
    MQRC_Q_MGR_NAME_ERROR = 2058
    MQRC_Q_MGR_NOT_AVAILABLE = 2059
    MQRC_REPORT_OPTIONS_ERROR = 2061
    MQRC_SECURITY_ERROR = 2063
    MQRC_SELECTOR_COUNT_ERROR = 2065
    MQRC_SELECTOR_ERROR = 2067
    MQRC_SELECTOR_NOT_FOR_TYPE = 2068
    MQRC_STORAGE_NOT_AVAILABLE = 2071
    MQRC_TRUNCATED_MSG_ACCEPTED = 2079
    MQRC_TRUNCATED_MSG_FAILED = 2080
    MQRC_UNKNOWN_ALIAS_BASE_Q = 2082
    MQRC_UNKNOWN_OBJECT_NAME = 2085
    MQRC_UNKNOWN_OBJECT_Q_MGR = 2086
    MQRC_UNKNOWN_REMOTE_Q_MGR = 2087
    MQRC_WAIT_INTERVAL_ERROR = 2090
    MQRC_XMIT_Q_TYPE_ERROR = 2091
    MQRC_XMIT_Q_USAGE_ERROR = 2092
    MQRC_NOT_OPEN_FOR_SET_ALL = 2095
    MQRC_NOT_OPEN_FOR_SET_IDENT = 2096
    MQRC_OBJECT_ALREADY_EXISTS = 2100
    MQRC_OBJECT_DAMAGED = 2101
    MQRC_RESOURCE_PROBLEM = 2102
    MQRC_SUPPRESSED_BY_EXIT = 2109
    MQRC_FORMAT_ERROR = 2110
    MQRC_SOURCE_CCSID_ERROR = 2111
    MQRC_TARGET_CCSID_ERROR = 2115
    MQRC_NOT_CONVERTED = 2119
    MQRC_CONVERTED_MSG_TOO_BIG = 2120
    MQRC_OUTCOME_MIXED = 2123
    MQRC_OUTCOME_PENDING = 2124
    MQRC_UOW_IN_PROGRESS = 2128
    MQRC_CNO_ERROR = 2139
    MQRC_DLH_ERROR = 2141
    MQRC_HEADER_ERROR = 2142
    MQRC_OBJECT_NAME_ERROR = 2152
    MQRC_Q_MGR_QUIESCING = 2161
    MQRC_Q_MGR_STOPPING = 2162
    MQRC_PMO_ERROR = 2173
    MQRC_REMOTE_Q_NAME_ERROR = 2184
    MQRC_GMO_ERROR = 2186
    MQRC_CLUSTER_RESOLUTION_ERROR = 2189
    MQRC_UNEXPECTED_ERROR = 2195
    MQRC_UNKNOWN_XMIT_Q = 2196
    MQRC_CONNECTION_QUIESCING = 2202
    MQRC_CONNECTION_STOPPING = 2203
    MQRC_CORREL_ID_ERROR = 2207
    MQRC_MSG_TOO_BIG_FOR_CHANNEL = 2218
    MQRC_CALL_IN_PROGRESS = 2219
    MQRC_MATCH_OPTIONS_ERROR = 2247
    MQRC_UOW_NOT_AVAILABLE = 2255
    MQRC_XQH_ERROR = 2260
    MQRC_CLUSTER_PUT_INHIBITED = 2268
    MQRC_CLUSTER_RESOURCE_ERROR = 2269
    MQRC_NO_DESTINATIONS_AVAILABLE = 2270
    MQRC_CD_ERROR = 2277
    MQRC_FUNCTION_NOT_SUPPORTED = 2298
    MQRC_RFH_ERROR = 2334
    MQRC_BACKOUT_THRESHOLD_REACHED = 2362
    MQRC_CHANNEL_SSL_ERROR = 2371
    MQRC_SCO_ERROR = 2380
    MQRC_KEY_REPOSITORY_ERROR = 2381
    MQRC_SSL_CONFIG_ERROR = 2392
    MQRC_SSL_INITIALIZATION_ERROR = 2393
    MQRC_SSL_NOT_ALLOWED = 2396
    MQRC_SSL_PEER_NAME_MISMATCH = 2398
    MQRC_SSL_PEER_NAME_ERROR = 2399
    MQRC_UNSUPPORTED_CIPHER_SUITE = 2400
    MQRC_SSL_CERTIFICATE_REVOKED = 2401
    MQRC_RFH_FORMAT_ERROR = 2421
    MQRC_TOPIC_STRING_ERROR = 2425
    MQRC_NO_SUBSCRIPTION = 2428
    MQRC_SUBSCRIPTION_IN_USE = 2429
    MQRC_SUB_USER_DATA_ERROR = 2431
    MQRC_SUB_ALREADY_EXISTS = 2432
    MQRC_IDENTITY_MISMATCH = 2434
    MQRC_ALTER_SUB_ERROR = 2435
    MQRC_DURABILITY_NOT_ALLOWED = 2436
    MQRC_NO_RETAINED_MSG = 2437
    MQRC_SUB_NAME_ERROR = 2440
    MQRC_SELECTOR_SYNTAX_ERROR = 2459
    MQRC_MODULE_NOT_FOUND = 2495
    MQRC_HCONN_ASYNC_ACTIVE = 2500
    MQRC_SUB_INHIBITED = 2503
    MQRC_DURABILITY_NOT_ALTERABLE = 2509
    MQRC_TOPIC_NOT_ALTERABLE = 2510
    MQRC_SUBLEVEL_NOT_ALTERABLE = 2512
    MQRC_GROUPING_NOT_ALTERABLE = 2515
    MQRC_SELECTOR_INVALID_FOR_TYPE = 2516
    MQRC_SELECTION_STRING_ERROR = 2519
    MQRC_INVALID_DESTINATION = 2522
    MQRC_INVALID_SUBSCRIPTION = 2523
    MQRC_SELECTOR_NOT_ALTERABLE = 2524
    MQRC_PUBSUB_INHIBITED = 2531
    MQRC_DEST_CLASS_NOT_ALTERABLE = 2533
    MQRC_ACTION_ERROR = 2535
    MQRC_CHANNEL_NOT_AVAILABLE = 2537
    MQRC_HOST_NOT_AVAILABLE = 2538
    MQRC_CHANNEL_CONFIG_ERROR = 2539
    MQRC_UNKNOWN_CHANNEL_NAME = 2540
    MQRC_STANDBY_Q_MGR = 2543
    MQRC_RECONNECTING = 2544
    MQRC_RECONNECTED = 2545
    MQRC_RECONNECT_QMID_MISMATCH = 2546
    MQRC_RECONNECT_INCOMPATIBLE = 2547
    MQRC_RECONNECT_FAILED = 2548
    MQRC_CALL_INTERRUPTED = 2549
    MQRC_SELECTION_NOT_AVAILABLE = 2551
    MQRC_RECONNECT_Q_MGR_REQD = 2555
    MQRC_RECONNECT_TIMED_OUT = 2556
    MQRC_GROUPING_NOT_ALLOWED = 2562
    MQRC_PASSWORD_PROTECTION_ERROR = 2594
    MQRC_Q_MGR_RECONNECT_REQUESTED = 2601


class Action(Enum):
    """The reaction to a refusal, for an application that loses and repeats no message."""

    #: Nothing is wrong: the normal end of a wait.
    CARRY_ON = "carry on"
    #: The connection is gone, and whether a commit took place is not known: connect anew and look.
    OUTCOME_UNKNOWN = "connect anew and find out what took place"
    #: Connect anew, later; what was not committed is backed out.
    RECONNECT = "connect anew"
    #: The unit of work is backed out: the same again.
    RETRY = "back out and do the same again"
    #: It will pass: back out, wait, and do the same again.
    RETRY_LATER = "back out and wait"
    #: The unit of work is too large for the queue manager.
    SMALLER_BATCH = "back out and make smaller units of work"
    #: The queue was changed or deleted under an open handle.
    REOPEN = "open the queue again"
    #: This message will never be taken: it goes to the dead-letter queue, the others go on.
    POISON = "dead-letter this message"
    #: The operator must act; no message is at fault. Long waits, and an alarm.
    CONFIGURATION = "wait long and tell the operator"
    #: Nothing may be repeated: the operator must look.
    ALARM = "stop and tell the operator"
    #: A mistake of this program.
    DEFECT = "stop: this is a defect of the program"


_HINTS: Final = {
    ReasonCode.MQRC_ALIAS_BASE_Q_TYPE_ERROR: "an alias must lead to a local queue or a remote queue definition",
    ReasonCode.MQRC_UNKNOWN_ALIAS_BASE_Q: "define the queue that the alias leads to (its TARGET)",
    ReasonCode.MQRC_UNKNOWN_REMOTE_Q_MGR: "define a transmission queue with that queue manager's name, or set XMITQ",
    ReasonCode.MQRC_DYNAMIC_Q_NAME_ERROR: "a queue name, or at most 32 characters of one and *",
    ReasonCode.MQRC_Q_TYPE_ERROR: "name a model queue",
    ReasonCode.MQRC_UNKNOWN_XMIT_Q: "define the transmission queue: DEFINE QLOCAL(...) USAGE(XMITQ)",
    ReasonCode.MQRC_XMIT_Q_TYPE_ERROR: "a transmission queue is a local queue",
    ReasonCode.MQRC_XMIT_Q_USAGE_ERROR: "alter the transmission queue: USAGE(XMITQ)",
    ReasonCode.MQRC_OPTION_NOT_VALID_FOR_TYPE: "open the local queue that the messages are on",
    ReasonCode.MQRC_MISSING_REPLY_TO_Q: "a request, and a message that asks for reports, must name its ReplyToQ",
    ReasonCode.MQRC_NO_MSG_UNDER_CURSOR: "another program took the message; browse on",
    ReasonCode.MQRC_PERSISTENT_NOT_ALLOWED: "a temporary dynamic queue holds only messages that are not persistent",
    ReasonCode.MQRC_PUT_INHIBITED: "ALTER the queue: PUT(ENABLED)",
    ReasonCode.MQRC_GET_INHIBITED: "ALTER the queue: GET(ENABLED)",
    ReasonCode.MQRC_Q_DELETED: "the queue was deleted after it was opened",
    ReasonCode.MQRC_NO_MSG_AVAILABLE: "nothing matches now; wait longer with --wait, or see 'rfhbridge queue depth'",
    ReasonCode.MQRC_UNKNOWN_OBJECT_NAME: "define the queue first: rfhbridge queue define NAME",
    ReasonCode.MQRC_OBJECT_NAME_ERROR: "1 to 48 characters: letters, digits and . / _ %",
    ReasonCode.MQRC_OBJECT_ALREADY_EXISTS: "the queue is there already; nothing was changed",
    ReasonCode.MQRC_OBJECT_IN_USE: "another process owns this data folder; stop it, or use its socket",
    ReasonCode.MQRC_MSG_TOO_BIG_FOR_Q: "send a smaller message, or raise the queue's maximum message length",
    ReasonCode.MQRC_Q_SPACE_NOT_AVAILABLE: "make room on the disk of the data folder",
    ReasonCode.MQRC_Q_FULL: "take messages off the queue, or raise its maximum depth",
    ReasonCode.MQRC_CONNECTION_BROKEN: "the gateway went away; an open unit of work was backed out; connect again",
    ReasonCode.MQRC_Q_MGR_STOPPING: "the queue manager stops; connect again when it is back",
    ReasonCode.MQRC_HANDLE_NOT_AVAILABLE: "read the open browses to their end, or close them",
    ReasonCode.MQRC_HCONN_ERROR: "the connection was closed; connect again",
    ReasonCode.MQRC_SYNCPOINT_LIMIT_REACHED: "commit in smaller units of work",
    ReasonCode.MQRC_NOT_AUTHORIZED: "run as the gateway's user, or give the program rights with [[application]]",
    ReasonCode.MQRC_UOW_IN_PROGRESS: "commit or back out the open unit of work first",
    ReasonCode.MQRC_UOW_NOT_AVAILABLE: "begin a unit of work first",
    ReasonCode.MQRC_Q_MGR_NOT_AVAILABLE: "start the gateway, or name the right data folder with --data",
    ReasonCode.MQRC_MD_ERROR: "a field of the message descriptor has a value outside its range",
    ReasonCode.MQRC_PERSISTENCE_ERROR: "persistence is 0 (not persistent), 1 (persistent) or 2 (as the queue says)",
    ReasonCode.MQRC_EXPIRY_ERROR: "expiry is -1 (never) or 1 and more tenths of a second",
}

#: By what the codes mean on a connection to a queue manager across a network.
_CODES: Final[Mapping[Action, tuple[ReasonCode, ...]]] = {
    Action.CARRY_ON: (ReasonCode.MQRC_NONE, ReasonCode.MQRC_NO_MSG_AVAILABLE, ReasonCode.MQRC_NO_RETAINED_MSG),
    Action.OUTCOME_UNKNOWN: (ReasonCode.MQRC_CONNECTION_BROKEN, ReasonCode.MQRC_CALL_INTERRUPTED),
    Action.RECONNECT: (
        ReasonCode.MQRC_MAX_CONNS_LIMIT_REACHED,
        ReasonCode.MQRC_Q_MGR_NOT_AVAILABLE,
        ReasonCode.MQRC_Q_MGR_QUIESCING,
        ReasonCode.MQRC_Q_MGR_STOPPING,
        ReasonCode.MQRC_UNEXPECTED_ERROR,
        ReasonCode.MQRC_CONNECTION_QUIESCING,
        ReasonCode.MQRC_CONNECTION_STOPPING,
        ReasonCode.MQRC_CHANNEL_NOT_AVAILABLE,
        ReasonCode.MQRC_HOST_NOT_AVAILABLE,
        ReasonCode.MQRC_STANDBY_Q_MGR,
        ReasonCode.MQRC_RECONNECTING,
        ReasonCode.MQRC_RECONNECTED,
        ReasonCode.MQRC_RECONNECT_QMID_MISMATCH,
        ReasonCode.MQRC_RECONNECT_INCOMPATIBLE,
        ReasonCode.MQRC_RECONNECT_FAILED,
        ReasonCode.MQRC_RECONNECT_Q_MGR_REQD,
        ReasonCode.MQRC_RECONNECT_TIMED_OUT,
        ReasonCode.MQRC_Q_MGR_RECONNECT_REQUESTED,
    ),
    Action.RETRY: (ReasonCode.MQRC_BACKED_OUT,),
    Action.RETRY_LATER: (
        ReasonCode.MQRC_GET_INHIBITED,
        ReasonCode.MQRC_HANDLE_NOT_AVAILABLE,
        ReasonCode.MQRC_OBJECT_IN_USE,
        ReasonCode.MQRC_PUT_INHIBITED,
        ReasonCode.MQRC_SUB_INHIBITED,
        ReasonCode.MQRC_PUBSUB_INHIBITED,
        ReasonCode.MQRC_SUBSCRIPTION_IN_USE,
        ReasonCode.MQRC_Q_FULL,
        ReasonCode.MQRC_Q_SPACE_NOT_AVAILABLE,
        ReasonCode.MQRC_STORAGE_NOT_AVAILABLE,
        ReasonCode.MQRC_RESOURCE_PROBLEM,
        ReasonCode.MQRC_CLUSTER_RESOLUTION_ERROR,
        ReasonCode.MQRC_CLUSTER_PUT_INHIBITED,
        ReasonCode.MQRC_CLUSTER_RESOURCE_ERROR,
        ReasonCode.MQRC_NO_DESTINATIONS_AVAILABLE,
    ),
    Action.SMALLER_BATCH: (ReasonCode.MQRC_SYNCPOINT_LIMIT_REACHED,),
    Action.REOPEN: (ReasonCode.MQRC_OBJECT_CHANGED, ReasonCode.MQRC_Q_DELETED),
    Action.POISON: (
        ReasonCode.MQRC_EXPIRY_ERROR,
        ReasonCode.MQRC_FEEDBACK_ERROR,
        ReasonCode.MQRC_MD_ERROR,
        ReasonCode.MQRC_MISSING_REPLY_TO_Q,
        ReasonCode.MQRC_MSG_TYPE_ERROR,
        ReasonCode.MQRC_MSG_TOO_BIG_FOR_Q,
        ReasonCode.MQRC_MSG_TOO_BIG_FOR_Q_MGR,
        ReasonCode.MQRC_PERSISTENCE_ERROR,
        ReasonCode.MQRC_PERSISTENT_NOT_ALLOWED,
        ReasonCode.MQRC_PRIORITY_EXCEEDS_MAXIMUM,
        ReasonCode.MQRC_PRIORITY_ERROR,
        ReasonCode.MQRC_REPORT_OPTIONS_ERROR,
        ReasonCode.MQRC_SUPPRESSED_BY_EXIT,
        ReasonCode.MQRC_FORMAT_ERROR,
        ReasonCode.MQRC_SOURCE_CCSID_ERROR,
        ReasonCode.MQRC_TARGET_CCSID_ERROR,
        ReasonCode.MQRC_NOT_CONVERTED,
        ReasonCode.MQRC_CONVERTED_MSG_TOO_BIG,
        ReasonCode.MQRC_DLH_ERROR,
        ReasonCode.MQRC_HEADER_ERROR,
        ReasonCode.MQRC_MSG_TOO_BIG_FOR_CHANNEL,
        ReasonCode.MQRC_XQH_ERROR,
        ReasonCode.MQRC_RFH_ERROR,
        ReasonCode.MQRC_BACKOUT_THRESHOLD_REACHED,
        ReasonCode.MQRC_RFH_FORMAT_ERROR,
    ),
    Action.ALARM: (
        ReasonCode.MQRC_OBJECT_DAMAGED,
        ReasonCode.MQRC_OUTCOME_MIXED,
        ReasonCode.MQRC_OUTCOME_PENDING,
    ),
    Action.DEFECT: (
        ReasonCode.MQRC_ALREADY_CONNECTED,
        ReasonCode.MQRC_HCONN_ERROR,
        ReasonCode.MQRC_HOBJ_ERROR,
        ReasonCode.MQRC_NO_MSG_UNDER_CURSOR,
        ReasonCode.MQRC_BUFFER_LENGTH_ERROR,
        ReasonCode.MQRC_NOT_OPEN_FOR_BROWSE,
        ReasonCode.MQRC_NOT_OPEN_FOR_INPUT,
        ReasonCode.MQRC_NOT_OPEN_FOR_INQUIRE,
        ReasonCode.MQRC_NOT_OPEN_FOR_OUTPUT,
        ReasonCode.MQRC_OBJECT_TYPE_ERROR,
        ReasonCode.MQRC_OD_ERROR,
        ReasonCode.MQRC_OPTIONS_ERROR,
        ReasonCode.MQRC_SELECTOR_COUNT_ERROR,
        ReasonCode.MQRC_SELECTOR_ERROR,
        ReasonCode.MQRC_SELECTOR_NOT_FOR_TYPE,
        ReasonCode.MQRC_SUB_USER_DATA_ERROR,
        ReasonCode.MQRC_SUB_ALREADY_EXISTS,
        ReasonCode.MQRC_IDENTITY_MISMATCH,
        ReasonCode.MQRC_ALTER_SUB_ERROR,
        ReasonCode.MQRC_DURABILITY_NOT_ALLOWED,
        ReasonCode.MQRC_SUB_NAME_ERROR,
        ReasonCode.MQRC_DURABILITY_NOT_ALTERABLE,
        ReasonCode.MQRC_TOPIC_NOT_ALTERABLE,
        ReasonCode.MQRC_SUBLEVEL_NOT_ALTERABLE,
        ReasonCode.MQRC_GROUPING_NOT_ALTERABLE,
        ReasonCode.MQRC_GROUPING_NOT_ALLOWED,
        ReasonCode.MQRC_INVALID_DESTINATION,
        ReasonCode.MQRC_INVALID_SUBSCRIPTION,
        ReasonCode.MQRC_DEST_CLASS_NOT_ALTERABLE,
        ReasonCode.MQRC_ACTION_ERROR,
        ReasonCode.MQRC_CORREL_ID_ERROR,
        ReasonCode.MQRC_TOPIC_STRING_ERROR,
        ReasonCode.MQRC_SELECTOR_SYNTAX_ERROR,
        ReasonCode.MQRC_SELECTOR_INVALID_FOR_TYPE,
        ReasonCode.MQRC_SELECTION_STRING_ERROR,
        ReasonCode.MQRC_SELECTOR_NOT_ALTERABLE,
        ReasonCode.MQRC_SELECTION_NOT_AVAILABLE,
        ReasonCode.MQRC_TRUNCATED_MSG_ACCEPTED,
        ReasonCode.MQRC_TRUNCATED_MSG_FAILED,
        ReasonCode.MQRC_NOT_OPEN_FOR_SET_ALL,
        ReasonCode.MQRC_NOT_OPEN_FOR_SET_IDENT,
        ReasonCode.MQRC_UOW_IN_PROGRESS,
        ReasonCode.MQRC_PMO_ERROR,
        ReasonCode.MQRC_GMO_ERROR,
        ReasonCode.MQRC_CALL_IN_PROGRESS,
        ReasonCode.MQRC_WAIT_INTERVAL_ERROR,
        ReasonCode.MQRC_MATCH_OPTIONS_ERROR,
        ReasonCode.MQRC_FUNCTION_NOT_SUPPORTED,
        ReasonCode.MQRC_UOW_NOT_AVAILABLE,
        ReasonCode.MQRC_HCONN_ASYNC_ACTIVE,
    ),
}
_ACTIONS: Final[Mapping[int, Action]] = {code: action for action, codes in _CODES.items() for code in codes}


def what_to_do(reason_code: int) -> Action:
    """The reaction to a refusal of any call but a commit.

    A code that no action names (2085, 2035, a wrong certificate, one that this program does not know) is the
    operator's: no message is thrown out for it.
    """
    return _ACTIONS.get(reason_code, Action.CONFIGURATION)


def what_to_do_after_commit(reason_code: int) -> Action:
    """The reaction to a refused commit: only 2003 says that nothing of the unit of work took place."""
    action = what_to_do(reason_code)
    return action if action in (Action.RETRY, Action.ALARM) else Action.OUTCOME_UNKNOWN


class QueueManagerError(Exception):
    """A call that the queue manager refused: completion code MQCC_FAILED with this reason.

    `own_hint` is what to do where the adapter knows better than the table of hints, which has the embedded queue
    manager in mind.
    """

    def __init__(self, reason_code: int, operation: str, own_hint: str = "") -> None:
        super().__init__(reason_code, operation, own_hint)
        self.reason_code = reason_code
        self.operation = operation
        self.own_hint = own_hint

    @property
    def reason_name(self) -> str:
        try:
            return ReasonCode(self.reason_code).name
        except ValueError:
            return f"MQRC_{self.reason_code}"

    @property
    def hint(self) -> str:
        if self.own_hint:
            return self.own_hint
        try:
            return _HINTS.get(ReasonCode(self.reason_code), "")
        except ValueError:
            return ""

    def __str__(self) -> str:
        text = f"{self.operation}: {self.reason_code} {self.reason_name}"
        return f"{text} ({self.hint})" if self.hint else text


class StoreError(Exception):
    """The disk or the store on it failed. The queue manager has stopped; what it had acknowledged is on the disk."""

    def __init__(self, operation: str, cause: str, hint: str) -> None:
        super().__init__(operation, cause, hint)
        self.operation = operation
        self.cause = cause
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.operation}: {self.cause} ({self.hint})"
