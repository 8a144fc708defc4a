"""Converts a broker's answer: the completion and the reasons of one format as the other says them.

MQRFH names a reason by number and text, MQRFH2 by number; what only MQRFH knows (MQPSErrorId, MQPSErrorPos, MQPSParmId)
is dropped. The failing command that comes back with an answer stays behind it as it is in MQRFH, and is dropped from
MQRFH2 with the other folders. Source: IBM MQ documentation, "Broker Response message".
"""

from collections.abc import Iterator

from mappings.conversion_report import FieldOutcome, Outcome
from mappings.mqrfh import Mqrfh
from mappings.mqrfh2 import Folder
from mappings.response import (
    MQRFH_DETAILS,
    Response,
    mqrfh_name,
    psc_name,
    pscr_folder,
    read_pscr,
    read_response_pairs,
    response_string,
)
from mappings.table import OTHER_EXPLANATIONS, ROWS_BY_NAME, Dialect

_MQRFH_NAMES = {"Completion": "MQPSCompCode", "Reason": "MQPSReason", "Command": "MQPSCommand"}


def response_to_mqrfh2(header: Mqrfh) -> tuple[bytes, tuple[FieldOutcome, ...]]:
    """The pscr folder of an answer in MQRFH, and what became of each of its pairs."""
    response = read_response_pairs(header.pairs)
    outcomes = tuple(_outcome(name, value, _pscr_target(name, value, response)) for name, value in header.pairs)
    return pscr_folder(response).encode(), outcomes


def response_to_mqrfh(pscr: Folder, coded_char_set_id: int) -> tuple[bytes, tuple[FieldOutcome, ...]]:
    """The NameValueString of an answer in MQRFH2, ended by NUL, and what became of each of its elements."""
    response = read_pscr(pscr)
    outcomes = tuple(_outcome(name, value, _MQRFH_NAMES.get(name) or mqrfh_name(name)) for name, value in _leaves(pscr))
    return response_string(response, coded_char_set_id), outcomes


def _leaves(pscr: Folder) -> Iterator[tuple[str, str]]:
    for element in pscr.elements:
        for leaf in element.children or (element,):
            yield leaf.name, leaf.text


def _pscr_target(name: str, value: str, response: Response) -> str | None:
    key = psc_name(name)
    if key == "CompCode":
        return "Completion"
    if key == "Reason":
        return "Reason" if response.reasons else None
    if key == "Command":
        return "Command" if response.fields else None
    return None if key == "ReasonText" or key in MQRFH_DETAILS else key


def _outcome(name: str, value: str, target: str | None) -> FieldOutcome:
    row = ROWS_BY_NAME[Dialect.MQRFH].get(name) or ROWS_BY_NAME[Dialect.MQRFH].get(_MQRFH_NAMES.get(name, ""))
    row = row or ROWS_BY_NAME[Dialect.MQRFH2].get(name)
    unknown = OTHER_EXPLANATIONS["element"]
    return FieldOutcome(
        name=name,
        value=value,
        outcome=Outcome.DROPPED if target is None else Outcome.RENAMED,
        target=target,
        reason=row.reason if row is not None else unknown.reason,
        source=row.source if row is not None else unknown.source,
    )
