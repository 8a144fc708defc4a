"""Converts a broker's answer: its completion and its reasons.

MQRFH gives the number and the text of a reason, MQRFH2 the number. MQPSErrorId, MQPSErrorPos and MQPSParmId exist in
MQRFH alone and are dropped. The failing command stands behind an answer in MQRFH and stays there; in MQRFH2 it is a
folder and is dropped with the others. Source: IBM MQ documentation, "Broker Response message".
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from mappings.commands.response import (
    MQRFH_DETAILS,
    Response,
    mqrfh_name,
    psc_name,
    pscr_folder,
    read_pscr,
    read_response_pairs,
    response_string,
)
from mappings.conversion.report import FieldOutcome, Outcome
from mappings.headers.mqrfh import Mqrfh
from mappings.headers.mqrfh2 import Folder
from mappings.headers.name_value import NameValues
from mappings.table import OTHER_OMISSIONS, ROWS_BY_NAME, Dialect

_ELEMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
_STRUCTURE = frozenset({"CompCode", "Completion", "Command", "Reason", "ReasonText", "Response"})
_MQRFH_NAMES = {"Completion": "MQPSCompCode", "Reason": "MQPSReason", "Command": "MQPSCommand"}


def response_to_mqrfh2(header: Mqrfh) -> tuple[bytes, tuple[FieldOutcome, ...]]:
    """The pscr folder of an answer in MQRFH, and what became of each of its pairs."""
    response = _sayable(read_response_pairs(header.pairs))
    outcomes = tuple(_outcome(name, value, _pscr_target(name, value, response)) for name, value in header.pairs)
    return pscr_folder(response).encode(), outcomes


def response_to_mqrfh(pscr: Folder, coded_char_set_id: int) -> tuple[bytes, tuple[FieldOutcome, ...]]:
    """The NameValueString of an answer in MQRFH2, ended by NUL, and what became of each of its elements."""
    response = _sayable(read_pscr(pscr))
    outcomes = tuple(_outcome(name, value, _mqrfh_target(name)) for name, value in _leaves(pscr))
    return response_string(response, coded_char_set_id), outcomes


def passes_between_formats(name: str) -> bool:
    """Whether a value with this psc name can be said in both formats and comes back under the same name.

    It cannot where MQRFH alone knows the name, where an answer uses it for its structure, or where no element can have
    it.
    """
    if name in MQRFH_DETAILS or name in _STRUCTURE:
        return False
    return _ELEMENT_NAME.fullmatch(name) is not None and psc_name(mqrfh_name(name)) == name


def _sayable(response: Response) -> Response:
    """The answer without values that the other format cannot say."""

    def sayable(fields: NameValues) -> NameValues:
        return tuple(pair for pair in fields if passes_between_formats(pair[0]))

    reasons = tuple(replace(reason, fields=sayable(reason.fields)) for reason in response.reasons)
    return replace(response, reasons=reasons, fields=sayable(response.fields))


def _mqrfh_target(name: str) -> str | None:
    return _MQRFH_NAMES.get(name) or (mqrfh_name(name) if passes_between_formats(name) else None)


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
    return key if passes_between_formats(key) else None


def _outcome(name: str, value: str, target: str | None) -> FieldOutcome:
    row = ROWS_BY_NAME[Dialect.MQRFH].get(name) or ROWS_BY_NAME[Dialect.MQRFH].get(_MQRFH_NAMES.get(name, ""))
    row = row or ROWS_BY_NAME[Dialect.MQRFH2].get(name)
    unknown = OTHER_OMISSIONS["element"]
    return FieldOutcome(
        name=name,
        value=value,
        outcome=Outcome.DROPPED if target is None else Outcome.RENAMED,
        target=target,
        reason=row.reason if row is not None else unknown.reason,
        source=row.source if row is not None else unknown.source,
    )
