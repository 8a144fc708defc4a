"""Message context: who a message is from, and which program may say so of its own messages.

Without a right, a message is from the program that puts it, whatever its descriptor says. With the right on identity
context a program sets UserIdentifier, AccountingToken and ApplIdentityData, with that on all context PutApplType,
PutApplName and ApplOriginData too. PutDate and PutTime are the put's. Source: IBM MQ, "Message context".
"""

from collections.abc import Mapping
from enum import IntFlag
from typing import Final

from mq_adapters.embedded.mqi.options import OpenOption, PutOption
from mq_adapters.embedded.rights import ContextRight
from mq_adapters.reasons import QueueManagerError, ReasonCode

#: The options of each call, by the right that they need.
_OPTIONS: Final[Mapping[type[IntFlag], Mapping[ContextRight, int]]] = {
    OpenOption: {
        ContextRight.IDENTITY: OpenOption.SET_IDENTITY_CONTEXT,
        ContextRight.ALL: OpenOption.SET_ALL_CONTEXT,
    },
    PutOption: {
        ContextRight.IDENTITY: PutOption.SET_IDENTITY_CONTEXT,
        ContextRight.ALL: PutOption.SET_ALL_CONTEXT,
    },
}
_NOT_OPEN: Final = {
    ContextRight.IDENTITY: ReasonCode.MQRC_NOT_OPEN_FOR_SET_IDENT,
    ContextRight.ALL: ReasonCode.MQRC_NOT_OPEN_FOR_SET_ALL,
}


def granted_options(kind: type[IntFlag], right: ContextRight) -> int:
    """The options of a call that a program may use because of its right."""
    return sum(options for needed, options in _OPTIONS[kind].items() if needed <= right)


def open_options_of_put(options: int) -> OpenOption:
    """What MQPUT1 opens its queue for."""
    return OpenOption.OUTPUT | OpenOption(_OPTIONS[OpenOption].get(_set_by(options), 0))


def check_open_for_context(opened: OpenOption, options: int, operation: str) -> None:
    """2095 or 2096 for a put that sets more context than its handle was opened for."""
    wanted = _set_by(options)
    if wanted and not opened & _OPTIONS[OpenOption][wanted]:
        raise QueueManagerError(_NOT_OPEN[wanted], operation)


def context_of(options: int, *, user: str, application_type: int, application_name: str) -> dict[str, object]:
    """The fields of a message's descriptor that are the program's own, by their attributes."""
    wanted = _set_by(options)
    if wanted is ContextRight.ALL:
        return {}
    origin: dict[str, object] = {
        "appl_origin_data": "",
        "put_appl_type": application_type,
        "put_appl_name": application_name,
    }
    if wanted is ContextRight.IDENTITY:
        return origin
    return {"user_identifier": user, "accounting_token": b"", "appl_identity_data": "", **origin}


def _set_by(options: int) -> ContextRight:
    """How much of the context a put sets."""
    if options & PutOption.SET_ALL_CONTEXT:
        return ContextRight.ALL
    return ContextRight.IDENTITY if options & PutOption.SET_IDENTITY_CONTEXT else ContextRight.NONE
