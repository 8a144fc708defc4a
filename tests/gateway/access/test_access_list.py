"""The access list's file: the example of the guide to users and access, and files that are wrong."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.access.access_list import MAXIMUM_RULES, AccessList
from gateway.access.rights import Access
from gateway.config import ConfigurationError

GUIDE = Path(__file__).parents[3] / "docs/how-to/users-and-access.md"


def test_the_example_of_the_guide_says_what_the_guide_says_of_it() -> None:
    blocks = re.findall(r"```toml\n(.*?)```", GUIDE.read_text(encoding="utf-8"), flags=re.DOTALL)
    (example,) = (block for block in blocks if "[[rule]]" in block)
    access = Access(publish=["#"], subscribe=["#"], access_list=AccessList.parse(example, "guide"))
    pump, anna = access.rights_of(None, "pump"), access.rights_of("anna", "panel-1")
    assert pump.may_publish("plant/pump/bar")
    assert not pump.may_publish("plant/other/bar")
    assert [pump.may_subscribe(asked) for asked in ("commands/pump", "plant/time", "plant/#")] == [True, True, False]
    assert [anna.may_subscribe(asked) for asked in ("plant/#", "plant/+/bar", "plant/x/secret")] == [False, True, False]
    assert not access.rights_of("anna", "pump").may_subscribe("plant/+/bar")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("rule = 1", "rule: must be an array, not 1"),
        ("[rule]\npublish = 'a'\n", "rule: must be an array of tables: write [[rule]]"),
        ("[[rules]]\n", "unknown key 'rules', the nearest known key is 'rule'"),
        ("[[rule]]\n", "rule#1: says nothing"),
        ("[[rule]]\npublish = 'a'\nanonymous = true\nuser = 'b'\n", "rule#1: anonymous and user exclude each other"),
        ("[[rule]]\npublish = 'a'\nuser = []\n", "rule#1.user: "),
        ("[[rule]]\npublish = 'a'\nuser = ['']\n", "rule#1.user#1: "),
        ("[[rule]]\ndeny_publish = 'a'\nuser = ['b', '*-ops']\n", "rule#1.user#2: '*-ops' has a * before its end"),
        ("[[rule]]\npublish = 'a'\nclient = 'a**'\n", "rule#1.client#1: 'a**' has a * before its end"),
        ("[[rule]]\npublish = [1]\n", "rule#1.publish#1: "),
        ("[[rule]]\npublish = ['a', 'b/#/c']\n", "rule#1.publish#2: topic 'b/#/c' holds # before "),
        ("[[rule]]\ndeny_publish = '%c%u'\n", "rule#1.deny_publish#1: topic filter '%c%u': one level holds one"),
        ("[[rule]]\npublish = ''\n", "rule#1.publish#1: "),
        ("[[rule]]\nallow = 'a'\n", "unknown key 'rule#1.allow'"),
        ("not toml", "is not TOML"),
        ("[[rule]]\n" * 20, "and 15 more"),
        (f"[[rule]]\npublish = {'9' * 4_000}\n" * 9, "rule#1.publish: must be an array, not 999"),
        ("x = " + "[" * 50_000, "is n"),
        ("[[rule]]\npublish = 'a'\n" * (MAXIMUM_RULES + 1), "rule: "),
    ],
)
def test_a_wrong_file_is_refused_and_the_key_is_named(text: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        AccessList.parse(text, "access.toml")
    assert complaint in str(refused.value)
    assert len(str(refused.value)) < 1_300


def test_a_text_stands_for_an_array_of_one() -> None:
    one, many = (AccessList.parse(f"[[rule]]\nuser = {user}\npublish = 'a'\n", "") for user in ("'b'", "['b']"))
    assert one.rules == many.rules


names = st.lists(st.sampled_from(["a", "ab", "b", "a*", "*"]), min_size=1, max_size=3) | st.none()


@given(
    st.lists(st.tuples(names, names), max_size=6),
    st.sampled_from(["a", "ab", "b", "c"]) | st.none(),
    st.sampled_from(["a", "ab", "b", "c"]),
)
def test_the_rules_of_a_client_are_all_that_concern_it_each_once(
    rules: list[tuple[list[str] | None, list[str] | None]], user: str | None, client: str
) -> None:
    text = ""
    for number, (users, clients) in enumerate(rules):
        text += f"[[rule]]\npublish = 't{number}'\n"
        text += "".join(f"{key} = {value}\n" for key, value in (("user", users), ("client", clients)) if value)
    access_list = AccessList.parse(text, "rules")
    found = access_list.rules_for(user, client)
    expected = [rule for rule in access_list.rules if rule.concerns(user, client)]
    assert sorted(found, key=access_list.rules.index) == expected
