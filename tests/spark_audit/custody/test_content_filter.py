"""Content filters: what is true of which content, what nobody can tell, and the same answers as the gateway's own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mq_adapters.selection.conditions import Reference, ReferenceSource
from mq_adapters.selection.conditions import accepts as accepted_by_the_broker
from mq_adapters.selection.filters import parse_filter
from spark_audit.custody.commands import command_of, row_of
from spark_audit.custody.content_filter import UNTOLD, Content, Truth, accepts
from tests.every_case import for_every
from tests.headers import mqrfh, mqrfh2
from tests.spark_audit.custody.scenes import record

_YES, _NO, _MAYBE = Truth.YES, Truth.NO, Truth.MAYBE
_USR = (
    "<usr><site>M1</site><level dt='r8'>21.5</level><count dt='i4'>-3</count><hot dt='boolean'>1</hot>"
    "<raw dt='bin.hex'>0102</raw><none xsi:nil='true'/><n>007</n><pattern>a_b%c</pattern></usr>"
)
_MESSAGE_ID = "52464842" + "00" * 19 + "2a"


def _content(header: bytes, name: str = "MQHRF2") -> Content:
    command = command_of(row_of(record("commanded", input=header, input_format=name)))
    assert command is not None
    return Content(_MESSAGE_ID, command)


CONTENT = _content(mqrfh2("<psc><Command>Publish</Command><Topic>a</Topic></psc>", _USR))

#: Filters, and whether the content above passes.
_FILTERS = {
    "site = 'M1'": _YES,
    "usr.site = 'M1' AND Root.MQRFH2.usr.site = 'M1'": _YES,
    "\"site\" <> 'M1'": _NO,
    "site != 'M2'": _YES,
    "level > 21 AND level <= 21.5": _YES,
    "level = '21.50'": _YES,
    "count BETWEEN -5 AND 0": _YES,
    "count NOT BETWEEN -5 AND 0": _NO,
    "hot": _YES,
    "NOT hot": _NO,
    "NOT NOT hot": _YES,
    "hot = TRUE": _YES,
    "hot > FALSE": _NO,
    "raw = X'0102'": _YES,
    "n = 7": _YES,
    "n = '7'": _NO,
    "site IN ('M0', 'M1')": _YES,
    "site NOT IN ('M0', 'M2')": _YES,
    "site IN ('M0', missing)": _NO,
    "missing = 1": _NO,
    "NOT missing = 1": _NO,
    "missing IS NULL": _YES,
    "none IS NULL": _YES,
    "site IS NOT NULL": _YES,
    "missing = 1 OR site = 'M1'": _YES,
    "missing = 1 AND site = 'M2'": _NO,
    "site LIKE 'M_'": _YES,
    "site LIKE '_'": _NO,
    "pattern LIKE 'a!_b!%c' ESCAPE '!'": _YES,
    "pattern LIKE 'a%'": _YES,
    "pattern NOT LIKE '%z%'": _YES,
    "count LIKE '%'": _NO,
    "(site = 'M1' OR missing = 1) AND (hot)": _YES,
    "Root.MQMD.MsgId = X'" + _MESSAGE_ID + "'": _YES,
    # what the trail does not tell: the rest of the MQMD, and the body
    "Root.MQMD.Priority = 5": _MAYBE,
    "Body.reading.value = '1'": _MAYBE,
    "Body.a.b = '1' OR site = 'M1'": _YES,
    "Body.a.b = '1' AND site = 'M2'": _NO,
    "Body.a.b IS NULL OR Body.a.b IS NOT NULL": _MAYBE,
    "Body.a.b = missing": _NO,
    # what this reading does not understand may be anything
    "UPPER(site) = 'M1'": _MAYBE,
    "site = 'M1' AND": _MAYBE,
    "level + 1 = 2": _MAYBE,
    "": _MAYBE,
}


@for_every(list(_FILTERS.items()))
def test_a_filter_lets_pass_what_it_says(case: tuple[str, Truth]) -> None:
    text, wanted = case
    assert accepts(text, CONTENT) is wanted


def test_the_pairs_of_an_mqrfh_publisher_are_properties_unless_their_names_begin_with_mq() -> None:
    content = _content(mqrfh("MQPSCommand Publish MQPSTopic a site M1 MQPSx 1"), "MQHRF")
    told = {text: accepts(text, content) for text in ("site = 'M1'", "MQPSx = 1", "MQPSTopic = 'a'")}
    assert told == {"site = 'M1'": _YES, "MQPSx = 1": _NO, "MQPSTopic = 'a'": _NO}


@dataclass
class _Values:
    """Values for both readings; those that are missing in `told` are told to the broker alone."""

    values: Mapping[str, Any]
    told: Mapping[str, Any]

    def value(self, asked: Any) -> Any:
        if isinstance(asked, Reference):
            assert asked.source is ReferenceSource.PROPERTY
            return self.values.get(asked.path[0])
        return self.told.get(asked[0])


_LITERALS = st.sampled_from(["1", "2.50", "-1", "'1'", "'a'", "'a%'", "TRUE", "FALSE", "X'01'", "''"])
_REFERENCES = st.sampled_from(["p", "q", "r", "missing"])
_OPERANDS = st.one_of(_LITERALS, _REFERENCES)
_PREDICATES = st.one_of(
    st.tuples(_OPERANDS, st.sampled_from(["=", "<>", "<", ">=", "!="]), _OPERANDS).map(" ".join),
    st.tuples(_REFERENCES, st.sampled_from(["IS NULL", "IS NOT NULL", "LIKE 'a%'", "NOT LIKE '_'"])).map(" ".join),
    st.tuples(_REFERENCES, st.sampled_from(["IN", "NOT IN"]), _OPERANDS, _OPERANDS).map(
        lambda each: f"{each[0]} {each[1]} ({each[2]}, {each[3]})"
    ),
    st.tuples(_REFERENCES, _OPERANDS, _OPERANDS).map(lambda each: f"{each[0]} BETWEEN {each[1]} AND {each[2]}"),
    _REFERENCES,
)
_CONDITIONS = st.recursive(
    _PREDICATES,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda each: f"({each[0]}) {each[1]} ({each[2]})"),
        inner.map(lambda each: f"NOT ({each})"),
    ),
    max_leaves=6,
)
_PROPERTIES = st.dictionaries(
    st.sampled_from(["p", "q", "r"]),
    st.one_of(st.sampled_from([1, 2.5, -1, "1", "a", "ab", "", b"\x01"]), st.booleans()),
)


@given(_CONDITIONS, _PROPERTIES)
def test_the_brokers_own_reading_agrees(text: str, values: dict[str, Any]) -> None:
    content = _Values(values, values)
    wanted = _YES if accepted_by_the_broker(parse_filter(text), content) else _NO
    assert accepts(text, content) is wanted


@given(_CONDITIONS, _PROPERTIES, st.sets(st.sampled_from(["p", "q", "r"])))
def test_what_is_said_of_half_the_values_is_true_of_all(text: str, values: dict[str, Any], hidden: set[str]) -> None:
    half = _Values(values, values | dict.fromkeys(hidden, UNTOLD))
    wanted = _YES if accepted_by_the_broker(parse_filter(text), _Values(values, values)) else _NO
    assert accepts(text, half) in (wanted, _MAYBE)
