"""MQINQ: the attributes of a queue or of the queue manager, as the embedded queue manager has them."""

from collections.abc import Mapping
from typing import Any, Final

from mq_adapters.attributes import ATTRIBUTES, Choice, Definition, ObjectType, Value
from mq_adapters.ibm_mq.constants import (
    MQCA_BACKOUT_REQ_Q_NAME,
    MQCA_BASE_Q_NAME,
    MQCA_DEAD_LETTER_Q_NAME,
    MQCA_Q_DESC,
    MQCA_Q_MGR_DESC,
    MQCA_REMOTE_Q_MGR_NAME,
    MQCA_REMOTE_Q_NAME,
    MQCA_XMIT_Q_NAME,
    MQIA_BACKOUT_THRESHOLD,
    MQIA_DEF_PERSISTENCE,
    MQIA_DEF_PRIORITY,
    MQIA_HARDEN_GET_BACKOUT,
    MQIA_INHIBIT_GET,
    MQIA_INHIBIT_PUT,
    MQIA_MAX_MSG_LENGTH,
    MQIA_MAX_Q_DEPTH,
    MQIA_MAX_UNCOMMITTED_MSGS,
    MQIA_MSG_DELIVERY_SEQUENCE,
    MQIA_Q_TYPE,
    MQIA_USAGE,
    MQOO_INQUIRE,
    MQQT_ALIAS,
    MQQT_LOCAL,
    MQQT_MODEL,
    MQQT_REMOTE,
)
from mq_adapters.ibm_mq.hconn import HConn
from mq_adapters.reasons import QueueManagerError, ReasonCode

_PUTTING: Final = {
    "DESCR": MQCA_Q_DESC,
    "PUT": MQIA_INHIBIT_PUT,
    "DEFPRTY": MQIA_DEF_PRIORITY,
    "DEFPSIST": MQIA_DEF_PERSISTENCE,
}
_LOCAL: Final = {
    **_PUTTING,
    "GET": MQIA_INHIBIT_GET,
    "MAXDEPTH": MQIA_MAX_Q_DEPTH,
    "MAXMSGL": MQIA_MAX_MSG_LENGTH,
    "MSGDLVSQ": MQIA_MSG_DELIVERY_SEQUENCE,
    "BOTHRESH": MQIA_BACKOUT_THRESHOLD,
    "BOQNAME": MQCA_BACKOUT_REQ_Q_NAME,
    "HARDENBO": MQIA_HARDEN_GET_BACKOUT,
    "USAGE": MQIA_USAGE,
}
_SELECTORS: Final[Mapping[ObjectType, Mapping[str, int]]] = {
    ObjectType.QLOCAL: _LOCAL,
    ObjectType.QMODEL: _LOCAL,
    ObjectType.QREMOTE: {
        **_PUTTING,
        "RNAME": MQCA_REMOTE_Q_NAME,
        "RQMNAME": MQCA_REMOTE_Q_MGR_NAME,
        "XMITQ": MQCA_XMIT_Q_NAME,
    },
    ObjectType.QMGR: {
        "DESCR": MQCA_Q_MGR_DESC,
        "DEADQ": MQCA_DEAD_LETTER_Q_NAME,
        "MAXMSGL": MQIA_MAX_MSG_LENGTH,
        "MAXUMSGS": MQIA_MAX_UNCOMMITTED_MSGS,
    },
}
_TYPES: Final = {MQQT_LOCAL: ObjectType.QLOCAL, MQQT_MODEL: ObjectType.QMODEL, MQQT_REMOTE: ObjectType.QREMOTE}
#: Attributes whose words are in another order in ATTRIBUTES than their numbers.
_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "DEFPSIST": ("NO", "YES"),
    "HARDENBO": ("NOHARDENBO", "HARDENBO"),
}


def inquired(hconn: HConn, name: str) -> Definition:
    """The attributes of a queue, or of the base queue behind an alias. A blank name stands for the queue manager.

    A queue of a cluster raises 2045, because only its own queue manager knows its attributes.
    """
    if not name:
        return _definition(hconn, ObjectType.QMGR, "")
    kind = number(hconn, name, MQIA_Q_TYPE)
    if kind == MQQT_ALIAS:
        name = text(hconn, name, MQCA_BASE_Q_NAME)
        kind = number(hconn, name, MQIA_Q_TYPE)
    if kind not in _TYPES:
        raise QueueManagerError(ReasonCode.MQRC_OPTION_NOT_VALID_FOR_TYPE, f"inquire {name}")
    return _definition(hconn, _TYPES[kind], name)


def base_queue_name(hconn: HConn, name: str) -> str:
    """The name of the queue behind an alias, else the same name."""
    is_alias = number(hconn, name, MQIA_Q_TYPE) == MQQT_ALIAS
    return text(hconn, name, MQCA_BASE_Q_NAME) if is_alias else name


def number(hconn: HConn, name: str, selector: int) -> int:
    """A numeric attribute. A blank name stands for the queue manager."""
    value = _value(hconn, name, selector)
    assert isinstance(value, int), selector
    return value


def text(hconn: HConn, name: str, selector: int) -> str:
    """A text attribute. A blank name stands for the queue manager."""
    value = _value(hconn, name, selector)
    assert isinstance(value, bytes), selector
    return value.partition(b"\0")[0].rstrip(b" ").decode(errors="replace")


def _definition(hconn: HConn, object_type: ObjectType, name: str) -> Definition:
    said = {
        keyword: _read(hconn, object_type, keyword, name, selector)
        for keyword, selector in _SELECTORS[object_type].items()
    }
    return Definition(object_type=object_type, name=name, said=said)


def _read(hconn: HConn, object_type: ObjectType, keyword: str, name: str, selector: int) -> Value:
    attribute = ATTRIBUTES[object_type][keyword]
    if isinstance(attribute, Choice):
        return _WORDS.get(keyword, attribute.words)[number(hconn, name, selector)]
    if isinstance(attribute.default, int):
        return number(hconn, name, selector)
    return text(hconn, name, selector)


def _value(hconn: HConn, name: str, selector: int) -> Any:
    operation = f"inquire {name or 'the queue manager'}"
    return hconn.use(name, MQOO_INQUIRE, lambda handle: hconn.call(operation, handle.inquire, selector))
