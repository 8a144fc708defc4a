"""The nine mapped names and the option tokens with their numbers, typed by hand for the audit alone.

Source of the names: "Message formats" (file aq19780_), table of functionally equivalent fields. Source of tokens and
numbers: the header files cmqpsc.h and cmqcfc.h of IBM MQ.
"""

from types import MappingProxyType
from typing import Final

#: MQRFH name and element of the psc folder with the same meaning. No other name is mapped.
NINE: Final = (
    ("MQPSCommand", "Command"),
    ("MQPSDelOpts", "DelOpt"),
    ("MQPSPubOpts", "PubOpt"),
    ("MQPSPubTime", "PubTime"),
    ("MQPSQMgrName", "QMgrName"),
    ("MQPSQName", "QName"),
    ("MQPSRegOpts", "RegOpt"),
    ("MQPSSeqNum", "SeqNum"),
    ("MQPSTopic", "Topic"),
)
TO_ELEMENT: Final = MappingProxyType(dict(NINE))
TO_NAME: Final = MappingProxyType({element: name for name, element in NINE})
OPTION_ELEMENTS: Final = frozenset({"DelOpt", "PubOpt", "RegOpt"})

_REGISTRATION: Final = (
    (1, "CorrelAsId"),
    (2, "Anon"),
    (4, "Local"),
    (8, "DirectReq"),
    (16, "NewPubsOnly"),
    (32, "PubOnReqOnly"),
    (64, "DeregAll"),
    (128, "InclStreamName"),
    (256, "InformIfRet"),
    (512, "DupsOK"),
    (1024, "NonPers"),
    (2048, "Pers"),
    (4096, "PersAsPub"),
    (8192, "PersAsQueue"),
    (16384, "AddName"),
    (32768, "NoAlter"),
    (65536, "FullResp"),
    (131072, "JoinShared"),
    (262144, "JoinExcl"),
    (524288, "LeaveOnly"),
    (1048576, "VariableUserId"),
    (2097152, "Locked"),
)
_PUBLICATION: Final = ((1, "CorrelAsId"), (2, "RetainPub"), (4, "OtherSubsOnly"), (8, "NoReg"), (16, "IsRetainedPub"))
_DELETE: Final = ((4, "Local"),)
_OPTIONS: Final = {"RegOpt": _REGISTRATION, "PubOpt": _PUBLICATION, "DelOpt": _DELETE}

#: Tokens that the psc folder does not have.
ONLY_IN_MQRFH: Final = frozenset({"Anon", "DirectReq", "InclStreamName", "NoReg"})

#: Tokens that have no meaning without the field beside them, which is not one of the nine.
NEEDING: Final = MappingProxyType(
    {"AddName": "SubName", "JoinShared": "SubIdentity", "JoinExcl": "SubIdentity", "LeaveOnly": "SubIdentity"}
)


def option_tokens(element: str, value: str) -> tuple[str, ...]:
    """The tokens of an option value: itself, or those of a decimal sum. `None` and 0 have no tokens."""
    if value == "None":
        return ()
    if not (value.isascii() and value.isdigit()):
        return (value,)
    number = int(value[:12])
    tokens = tuple(token for bit, token in _OPTIONS[element] if number & bit)
    left = number & ~sum(bit for bit, _ in _OPTIONS[element])
    return (*tokens, str(left)) if left else tokens
