"""The language of content filters: what is true of which content, what is malformed, what cannot be evaluated."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mq_adapters.selection.conditions import (
    MAXIMUM_LIKE_CHARACTERS,
    ContentError,
    FilterError,
    Reference,
    ReferenceSource,
    UnavailableFilterError,
    Value,
    accepts,
)
from mq_adapters.selection.filters import parse_filter


@dataclass
class Values:
    """Content with these values; the body cannot be parsed where `body` is None."""

    mqmd: dict[str, Value] = field(default_factory=dict)
    properties: dict[str, Value] = field(default_factory=dict)
    body: dict[tuple[str, ...], Value] | None = None

    def value(self, reference: Reference) -> Value:
        if reference.source is ReferenceSource.MQMD:
            return self.mqmd[reference.path[0]]
        if reference.source is ReferenceSource.PROPERTY:
            return self.properties.get(reference.path[0])
        if self.body is None:
            raise ContentError("no XML")
        return self.body.get(reference.path)


CONTENT = Values(
    mqmd={"priority": 5, "format": "MQSTR", "correl_id": b"\xab" * 24, "persistence": 1},
    properties={"site": "M1", "level": 21.5, "count": -3, "hot": True, "raw": b"\x01\x02", "it's": "a_b%c", "n": "007"},
    body={("reading", "value"): "21.50", ("reading", "unit"): "Celsius", ("reading", "note"): ""},
)


@pytest.mark.parametrize(
    "text",
    [
        "usr.site = 'M1'",
        "Root.MQRFH2.usr.site = 'M1'",
        "InputRoot.MQRFH2.usr.site = 'M1'",
        "site='M1'",
        "\"site\" = 'M1'",
        "site <> 'M2'",
        "site != 'M2'",
        "site > 'M0' AND site < 'M2'",
        "Root.MQMD.Priority >= 5",
        "MQMD.Priority<=5",
        "Root.MQMD.Format = 'MQSTR'",
        f"Root.MQMD.CorrelId = X'{'AB' * 24}'",
        "level > 21",
        "level = 2.15e1",
        "level = 21.5 and not level = 21",
        "count < 0",
        "count = -3",
        "count = - - -3",
        "count BETWEEN -5 AND +5",
        "count NOT BETWEEN 1 AND 5",
        "n = 7",
        "7 = n",
        "raw = X'0102'",
        "hot",
        "NOT NOT hot",
        "hot = TRUE",
        "hot <> FALSE",
        "TRUE",
        "Body.reading.value = 21.5",
        "Body.reading.value >= 21.5 AND Body.reading.unit = 'Celsius'",
        "Root.XMLNSC.reading.unit LIKE 'Cel%'",
        "Root.XMLNS.reading.unit LIKE '_elsius'",
        "InputRoot.XML.reading.note = ''",
        "Body.reading.note IS NOT NULL",
        "Body.reading.missing IS NULL",
        "nothing IS NULL",
        "site IN ('X', 'M1')",
        "site NOT IN ('X', 'Y')",
        "Root.MQMD.Priority IN (1, 5, 9)",
        "site LIKE '%'",
        "site LIKE 'M1'",
        "site NOT LIKE 'M'",
        "\"it's\" LIKE 'a!_b!%c' ESCAPE '!'",
        "\"it's\" LIKE '%a%b%c%'",
        "'it''s' = 'it''s'",
        "(site = 'M1' OR site = 'M2') AND (hot)",
        "nothing = 1 OR site = 'M1'",
        "NOT (nothing = 1 AND site = 'X')",
        "site\n=\t'M1'",
    ],
)
def test_condition_is_true(text):
    assert accepts(parse_filter(text), CONTENT)


@pytest.mark.parametrize(
    "text",
    [
        "site = 'm1'",
        "NOT site = 'M1'",
        "FALSE",
        "nothing = 1",
        "NOT nothing = 1",
        "nothing <> 1",
        "nothing",
        "site",
        "nothing IN (1)",
        "NOT nothing IN (1)",
        "site NOT IN ('X', nothing)",
        "nothing LIKE '%'",
        "NOT nothing LIKE '%'",
        "level LIKE '%'",
        "site > 1",
        "hot > FALSE",
        "hot = 1",
        "raw = '0102'",
        "site LIKE 'M'",
        "site LIKE '_'",
        "site LIKE '%1%1%'",
        "site LIKE 'M1%1'",
        "\"it's\" LIKE 'a!_b!%d' ESCAPE '!'",
        "nothing = 1 AND site = 'M1'",
        "Body.reading.value = 'x'",
        "Body.reading.unit = 5",
    ],
)
def test_condition_is_not_true(text):
    assert not accepts(parse_filter(text), CONTENT)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "=", "site =", "= 'M1'", "site 'M1'", "site = 'M1", 'site = "M1', "site == 'M1'", "site = = 1"),
        *("site = 1 = 1", "(site = 1", "site = 1)", "()", "AND", "site = 1 AND", "OR site = 1", "NOT", "site NOT = 1"),
        *("site IN", "site IN (", "site IN ()", "site IN (1,)", "site IN (1", "site BETWEEN 1", "site BETWEEN 1 OR 2"),
        *("site LIKE", "site LIKE 'a' ESCAPE 5", "site LIKE 'a' ESCAPE 'ab'", "site LIKE 'a!b' ESCAPE '!'"),
        *("site LIKE 'a!' ESCAPE '!'", "site IS", "site IS NOT", "site IS 5", "usr.", "usr..site = 1", ".site = 1"),
        *("usr.5 = 1", "'text'", "5", "5 AND hot", "X'0' = raw", "X'zz' = raw", "5x = 1", "site = 1;", "site = #1"),
        *("f(", "f(1", "f(1,)", "a[", "a[1 = 2", "a.(b = 1", "1 + = 2", "site \0 = 1", "not"),
        *(
            "SUBSTRING(site) = 'M'",
            "SUBSTRING(site FROM) = 'M'",
            "SUBSTRING(site FOR 1) = 'M'",
            "SUBSTRING(site FROM 1",
        ),
        *("SUBSTRING(site FROM 1 FOR) = 'M'", "SUBSTRING(site, 1) = 'M'", "POSITION('a') = 1", "POSITION('a' IN) = 1"),
        *("POSITION('a' FROM site) = 1", "TRIM() = 'M'", "TRIM(BOTH 'x' site) = 'M'", "TRIM(FROM site) = 'M'"),
        *("TRIM('x' FROM) = 'M'", "OVERLAY(site PLACING 'x') = 'M'", "EXTRACT(YEAR) = 1", "CAST(level INTEGER) = 1"),
        *("CAST(level AS) = 1", "CASE hot END = 1", "CASE WHEN hot THEN 1 = 1", "CASE WHEN hot ELSE 1 END = 1"),
        *("level BETWEEN SYMMETRIC 1", "CURRENT_DATE =", "hot IS INFINITE"),
    ],
)
def test_malformed_filter_is_told_apart(text):
    with pytest.raises(FilterError):
        parse_filter(text)


@pytest.mark.parametrize(
    "text",
    [
        *("UPPER(site) = 'M1'", "f()", "CURRENT_DATE() = 1", "level + 1 > 5", "level * 2 = 43", "site || 'x' = 'M1x'"),
        *("-site = 1", "jms.Dst = 'x'", "Root.Properties.Topic = 'x'", "Root.MQMD.Nothing = 1", "Root.MQMD = 1"),
        *("Body.a[1].b = 1", "Body.a.*.b = 1", "Body.a.(XML.Attribute)b = 1", "Body.n:a.b = 1", "a[<] = 1", "Root = 1"),
        *("CASE WHEN hot THEN 1 END = 1", "CAST(level AS INTEGER) = 21", "EXISTS(SELECT 1)", "DATE '2026-11-20' = 1"),
        *("site LIKE site", "site = NULL", "hot IS TRUE", "hot IS NOT UNKNOWN", "(site = 'M1') = TRUE", "usr.a.b = 1"),
        *("(" * 51 + "hot" + ")" * 51, f"level = {'1' * 41}", "Environment.Variables.x = 1", "Root.Body.a = 1"),
        *("SUBSTRING(site FROM 1) = 'M1'", "substring(site from 1 for 1) = 'M'", "SUBSTRING(site BEFORE '1') = 'M'"),
        *(
            "SUBSTRING(Body.a.b AFTER 'x' || 'y') = 'M'",
            "POSITION('1' IN site) = 2",
            "POSITION('1' IN site FROM 2) = 2",
        ),
        *("POSITION('1' IN site FROM 1 REPEAT 1) > 0", "TRIM(site) = 'M1'", "TRIM(' ' FROM site) = 'M1'"),
        *(
            "TRIM(BOTH ' ' FROM site) = 'M1'",
            "TRIM(LEADING FROM site) = 'M1'",
            "TRIM(TRAILING 'x' FROM UPPER(site)) = 'M'",
        ),
        *("OVERLAY(site PLACING 'x' FROM 1 FOR 2) = 'x'", "EXTRACT(YEAR FROM CURRENT_DATE) = 2026", "CURRENT_TIME > 5"),
        *("CAST(site AS CHARACTER CCSID 1208) = 'M1'", "CAST(level AS DECIMAL(5, 2) DEFAULT 0) = 21.5", "hot IS NAN"),
        *("CAST(site AS INTERVAL DAY TO SECOND) = 1", "CASE level WHEN 1 THEN 'x' WHEN 2 THEN 'y' ELSE 'z' END = 'z'"),
        *(
            "level BETWEEN SYMMETRIC 30 AND 20",
            "level BETWEEN ASYMMETRIC 20 AND 30",
            "SUBSTRING(site FROM 1) LIKE 'M%'",
        ),
        *("SUBSTRING(" * 60, "CASE WHEN " * 60),
        "a.(" * 3_000,
    ],
)
def test_well_formed_filter_outside_the_subset_is_unavailable(text):
    with pytest.raises(UnavailableFilterError):
        parse_filter(text)


@pytest.mark.parametrize("name", ["SUBSTRING", "position", "TRIM", "CAST", "CURRENT_DATE", "SYMMETRIC", "FROM", "case"])
def test_words_of_functions_are_names_of_properties_where_nothing_else_fits(name):
    content = Values(properties={name: 5})
    assert accepts(parse_filter(f"usr.{name} = 5 AND usr.{name} BETWEEN usr.{name} AND 6"), content)
    if name not in ("CURRENT_DATE", "case"):
        assert accepts(parse_filter(f"{name} BETWEEN {name} AND 5"), content)


def test_malformed_behind_something_unavailable_is_malformed():
    with pytest.raises(FilterError):
        parse_filter("UPPER(site) = 'M1' AND")


def test_body_is_asked_for_only_where_it_decides():
    without_body = Values(properties={"site": "M1"})
    assert accepts(parse_filter("site = 'M1' OR Body.a = 1"), without_body)
    assert not accepts(parse_filter("site = 'X' AND Body.a = 1"), without_body)
    with pytest.raises(ContentError):
        accepts(parse_filter("site = 'M1' AND Body.a = 1"), without_body)


def test_like_takes_no_text_that_would_take_long():
    long = Values(properties={"site": "a" * (MAXIMUM_LIKE_CHARACTERS + 1)})
    with pytest.raises(ContentError, match="8193"):
        accepts(parse_filter("site LIKE '%b'"), long)
    pattern = "%".join("_" * 20 + "a" for _ in range(480))
    assert not accepts(parse_filter(f"site LIKE '{pattern}%b'"), Values(properties={"site": "a" * 8_000}))


_WORDS = st.sampled_from(
    [
        *("site", "usr.site", "Body.a.b", "Root.MQMD.Priority", "'x'", "'it''s'", "5", "1.5", "X'ab'", "TRUE", "NULL"),
        *(
            "=",
            "<>",
            "<",
            "AND",
            "OR",
            "NOT",
            "LIKE",
            "IN",
            "BETWEEN",
            "IS",
            "ESCAPE",
            "(",
            ")",
            ",",
            "-",
            "+",
            "[",
            "*",
        ),
        *("SUBSTRING", "POSITION", "TRIM", "CAST", "CASE", "WHEN", "THEN", "END", "FROM", "FOR", "AS", "LEADING", ","),
    ]
)


@given(st.one_of(st.text(max_size=60), st.lists(_WORDS, max_size=20).map(" ".join)))
def test_any_text_is_a_filter_or_one_of_the_two_errors(text):
    content = Values(mqmd={"priority": 5}, properties={"site": "x"}, body={})
    try:
        condition = parse_filter(text)
    except (FilterError, UnavailableFilterError):
        return
    assert accepts(condition, content) in (True, False)
