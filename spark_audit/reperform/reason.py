"""Why bytes are no message of publish/subscribe, or a message has no place in the other format: IBM's reason codes.

Typed from the header files cmqc.h and cmqcfc.h for the audit alone.
"""

from enum import IntEnum


class Reason(IntEnum):
    """A reason code under IBM's name."""

    MQRC_SOURCE_CCSID_ERROR = 2111
    MQRC_SOURCE_INTEGER_ENC_ERROR = 2112
    MQRC_DLH_ERROR = 2141
    MQRC_RFH_ERROR = 2334
    MQRC_RFH_STRING_ERROR = 2335
    MQRC_RFH_COMMAND_ERROR = 2336
    MQRC_RFH_PARM_ERROR = 2337
    MQRC_RFH_PARM_MISSING = 2339
    MQRC_RFH_FORMAT_ERROR = 2421
    MQRCCF_TOPIC_ERROR = 3072
