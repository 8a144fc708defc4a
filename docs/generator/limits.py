"""The page of the limits, from the table of limits."""

from typing import Final

from docs.generator.markdown import code, sentence, table
from gateway.config.limit_row import LimitAnswer
from gateway.config.limits import Limit
from gateway.mqtt.reason_codes import CONNECT_RETURN_CODES, ReasonCode

INTRODUCTION: Final = """
Each limit is a key of `[mqtt]`, or of `[[listener]]` or `[access]` where that is said; the ranges stand in
[Configuration](configuration.md). A limit without a key is fixed.

The packets that the table names tell a client of MQTT 5 the reason code and the Reason String. A client of
MQTT 3.1.1 gets the return code of CONNACK or SUBACK. If neither packet is due, the gateway closes the connection
("closed"). It also closes the connection of a client of MQTT 3.1 whose filter is refused, because a SUBACK of MQTT 3.1
has no return code for that. `rfhbridge_refusals_total` counts each refusal, with the label `limit` of the last column.
""".strip()


def lines() -> list[str]:
    """The page, without its title."""
    rows = [
        (
            _key(limit),
            sentence(limit.value.meaning),
            _answers(limit),
            ", ".join(answers_of_3_1_1(limit)),
            code(limit.label) if limit.value.answers else "",
        )
        for limit in Limit
    ]
    titles = ["Key and default", "Meaning", "MQTT 5 answer, Reason String", "MQTT 3.1.1 answer", "Label `limit`"]
    return [*INTRODUCTION.splitlines(), "", *table(titles, rows)]


def answers_of_3_1_1(limit: Limit) -> tuple[str, ...]:
    """The answers to a client of MQTT 3.1.1, for example `CONNACK 03` or `closed`; none if it is not answered."""
    answers = ((ReasonCode[each.reason_code], packet) for each in limit.value.answers for packet in each.packets)
    return tuple(dict.fromkeys(_answer_of_3_1_1(reason_code, packet) for reason_code, packet in answers))


def _answer_of_3_1_1(reason_code: ReasonCode, packet: str) -> str:
    if packet == "CONNACK" and reason_code in CONNECT_RETURN_CODES:
        return f"CONNACK {CONNECT_RETURN_CODES[reason_code]:02X}"
    return "SUBACK 80" if packet == "SUBACK" else "closed"


def _key(limit: Limit) -> str:
    key = code(limit.key.replace("listener.", "[[listener]] ").replace("access.", "[access] ")) or "fixed"
    return f"{key}: {_default(limit)}"


def _answers(limit: Limit) -> str:
    told = f' "{limit.value.told}"' if limit.value.told else ""
    return "; ".join(_answer(each) for each in limit.value.answers) + told


def _default(limit: Limit) -> str:
    if limit.value.default:
        return f"{limit.value.default:,} {limit.value.unit}"
    return "0, no limit" if "0: no limit" in limit.value.meaning else "0"


def _answer(answer: LimitAnswer) -> str:
    reason_code = ReasonCode[answer.reason_code]
    packets = ", ".join(answer.packets) or "no packet, counted as"
    return f"{packets}: {reason_code:02X} {reason_code.name.lower().replace('_', ' ')}"
