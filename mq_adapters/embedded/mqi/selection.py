"""The selection string of MQOPEN and MQSUB: the condition that it states, or the reason code of its refusal."""

from mappings.headers.mqrfh2 import unsuitable_character
from mq_adapters.reasons import QueueManagerError, ReasonCode
from mq_adapters.selection.conditions import Condition, FilterError, UnavailableFilterError
from mq_adapters.selection.selectors import MAXIMUM_SELECTOR_BYTES, SELECTOR_MARK, parse_selector


def selected(text: str, operation: str) -> Condition | None:
    """The condition of a selection string; None for an empty one, which selects all messages.

    Raises QueueManagerError: 2459 for a malformed one, 2519 for one that is too long, 2551 for one that cannot be
    evaluated here.
    """
    if not text.strip():
        return None
    if len(text.encode()) > MAXIMUM_SELECTOR_BYTES:
        raise QueueManagerError(ReasonCode.MQRC_SELECTION_STRING_ERROR, f"{operation}: the selector is too long")
    try:
        return parse_selector(text)
    except FilterError as error:
        raise QueueManagerError(ReasonCode.MQRC_SELECTOR_SYNTAX_ERROR, f"{operation}: {error}") from None
    except UnavailableFilterError as error:
        raise QueueManagerError(ReasonCode.MQRC_SELECTION_NOT_AVAILABLE, f"{operation}: {error}") from None


def filter_of(text: str, operation: str) -> str:
    """The filter of a subscription with that selection string, as the broker keeps it; "" for an empty one.

    Raises QueueManagerError as `selected`, and 2519 for a character that no command can hold.
    """
    if selected(text, operation) is None:
        return ""
    if unsuitable_character(text):
        raise QueueManagerError(ReasonCode.MQRC_SELECTION_STRING_ERROR, f"{operation}: a character of the selector")
    return SELECTOR_MARK + text
