"""A broker's answer in either format: the completion of a command, the reasons, and further names.

    MQRFH    MQPSCompCode 1 MQPSReason 3157 MQPSReasonText ... MQPSCommand RegSub MQPSTopic a
    MQRFH2   <pscr><Completion>warning</Completion><Response><Reason>3157</Reason><Topic>a</Topic></Response>...</pscr>

Source: IBM MQ, "Broker Response message".
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from spark_audit.reperform.folder import read_leaves
from spark_audit.reperform.header import Header

PSCR: Final = "pscr"
_PREFIX: Final = "MQPS"
_WORDS: Final = {"0": "ok", "1": "warning", "2": "error"}
#: The name that only MQRFH has beside the reason. Its text is made from the number.
_DETAILS: Final = frozenset({"ReasonText", "ErrorId", "ErrorPos", "ParmId"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerResponse:
    """Under the names of pscr; `named` is everything but completion and reasons."""

    completion: str
    reasons: tuple[str, ...]
    named: tuple[tuple[str, str], ...]


def broker_response_of(headers: Iterable[Header]) -> BrokerResponse | None:
    """The answer in a chain; None if the chain has a command."""
    for header in headers:
        if header.version == 1 and header.pairs and header.pairs[0][0] == "MQPSCompCode":
            renamed = {"CompCode": "Completion"}
            pairs = [(name.removeprefix(_PREFIX), value) for name, value in header.pairs]
            return _answer(
                [(renamed.get(name, name), _WORDS.get(value, value)) for name, value in pairs[:1]] + pairs[1:]
            )
        folder = next((folder for folder in header.folders if folder.name == PSCR), None)
        if folder is not None:
            return _answer(read_leaves(folder))
    return None


def response_differences(before: BrokerResponse, after: BrokerResponse | None, reported: str) -> list[str]:
    """Sentences about parts of an answer that were lost, changed or added. The report names `reported` as left out."""
    if after is None:
        return ["the output is no answer of a broker"]
    words: list[str] = []
    if after.completion != before.completion:
        words.append(f"the completion {before.completion!r} became {after.completion!r}")
    if after.reasons != before.reasons:
        words.append(f"the reasons {before.reasons} became {after.reasons}")
    words += [
        f"{name} {value!r} was lost"
        for name, value in before.named
        if (name, value) not in after.named and name not in _DETAILS and name not in reported
    ]
    words += [
        f"{name} {value!r} was added"
        for name, value in after.named
        if (name, value) not in before.named and name not in _DETAILS
    ]
    return words


def _answer(leaves: Iterable[tuple[str, str]]) -> BrokerResponse:
    fields = tuple(leaves)
    return BrokerResponse(
        completion=next((value for name, value in fields if name == "Completion"), ""),
        reasons=tuple(value for name, value in fields if name == "Reason" and value != "0"),
        named=tuple(field for field in fields if field[0] not in ("Completion", "Reason")),
    )
