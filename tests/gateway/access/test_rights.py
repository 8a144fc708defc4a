"""What a client may publish and subscribe: the filters for everybody, and the access list with what it denies."""

import pytest

from gateway.access.access_list import AccessList
from gateway.access.dollar_topics import DollarTopics
from gateway.access.rights import Access, Rights

OPEN = DollarTopics(["$SYS/#", "$SYS"])


def rights(publish: list[str], subscribe: list[str]) -> Rights:
    """Of a client where there is no access list, and all of `$SYS` is open."""
    return Access(publish=publish, subscribe=subscribe, dollar_topics=OPEN).rights_of(None, "c")


def rights_by(rules: str, user: str | None = "anna", client: str = "pump-7") -> Rights:
    """Of a client where everybody may do everything, and the access list decides."""
    access_list = AccessList.parse(rules, "rules")
    access = Access(publish=["#"], subscribe=["#"], access_list=access_list, dollar_topics=OPEN)
    return access.rights_of(user, client)


# -- filters for everybody ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("allowed", "topic", "may"),
    [
        (["#"], "a/b", True),
        (["#"], "$SYS/a", True),
        ([], "a", False),
        (["a/+"], "a/b", True),
        (["a/+"], "a/b/c", False),
        (["a/#"], "a", True),
        (["a/#"], "ab", False),
        (["x", "a/b"], "a/b", True),
        (["A/b"], "a/b", False),
        (["+/#"], "$SYS/a", False),
    ],
)
def test_a_publish_is_allowed_where_an_allowed_filter_matches(allowed: list[str], topic: str, may: bool) -> None:
    found = rights(allowed, [])
    assert found.allows_every_plain_publish is ("#" in allowed)
    assert found.may_publish(topic) is may
    assert found.may_publish(topic) is may, "the second time it is known"


@pytest.mark.parametrize(
    ("allowed", "asked", "may"),
    [
        (["#"], "#", True),
        (["#"], "$SYS/#", True),
        (["a/#"], "a/#", True),
        (["a/#"], "a", True),
        (["a/#"], "a/+/c", True),
        (["a/#"], "#", False),
        (["a/#"], "+/b", False),
        (["a/+"], "a/+", True),
        (["a/+"], "a/b", True),
        (["a/+"], "a/#", False),
        (["a/+"], "a/+/c", False),
        (["a/+/c"], "a/+", False),
        (["a/b"], "a/+", False),
        (["a/b"], "a/b", True),
        (["+"], "+", True),
        ([], "a", False),
    ],
)
def test_a_subscription_is_allowed_where_one_allowed_filter_covers_all_of_it(
    allowed: list[str], asked: str, may: bool
) -> None:
    assert rights([], allowed).may_subscribe(asked) is may


@pytest.mark.parametrize("asked", ["$SYS/a", "$SYS/#"])
def test_a_wildcard_at_the_start_does_not_cover_topics_that_start_with_a_dollar(asked: str) -> None:
    """MQTT 3.1.1 section 4.7.2; the whole `#` is the default that allows everything."""
    assert rights([], ["+/#"]).may_subscribe(asked) is False


# -- the access list ---------------------------------------------------------------------------------------------------


def test_an_empty_access_list_allows_nothing() -> None:
    found = rights_by("")
    assert not found.allows_every_plain_publish
    assert not found.may_publish("a")
    assert not found.may_subscribe("a")


def test_the_filters_for_everybody_hold_beside_the_access_list() -> None:
    access_list = AccessList.parse('[[rule]]\npublish = "#"\nsubscribe = "#"\n', "rules")
    found = Access(publish=["a/#"], subscribe=["b"], access_list=access_list).rights_of(None, "c")
    assert (found.may_publish("a/x"), found.may_publish("b")) == (True, False)
    assert (found.may_subscribe("b"), found.may_subscribe("#")) == (True, False)


@pytest.mark.parametrize(
    ("who", "user", "client", "is_concerned"),
    [
        ("", None, "c", True),
        ("", "anna", "c", True),
        ('user = "anna"', "anna", "c", True),
        ('user = "anna"', "ann", "c", False),
        ('user = "anna"', "anna2", "c", False),
        ('user = "anna"', None, "anna", False),
        ('user = ["bob", "an*"]', "anna", "c", True),
        ('user = ["bob", "an*"]', "an", "c", True),
        ('user = ["bob", "an*"]', "bobby", "c", False),
        ('user = "*"', "anna", "c", True),
        ('user = "*"', None, "c", False),
        ("anonymous = true", None, "c", True),
        ("anonymous = true", "anna", "c", False),
        ('client = "pump-*"', None, "pump-7", True),
        ('client = "pump-*"', None, "Pump-7", False),
        ('user = "anna"\nclient = "pump-*"', "anna", "valve-1", False),
        ('user = "a?na"', "anna", "c", False),
    ],
)
def test_a_rule_concerns_those_whom_it_names(who: str, user: str | None, client: str, is_concerned: bool) -> None:
    assert rights_by(f'[[rule]]\n{who}\npublish = "t"\n', user, client).may_publish("t") is is_concerned


@pytest.mark.parametrize("first", ["deny", "allow"])
def test_what_one_rule_denies_no_other_allows_in_any_order(first: str) -> None:
    allow, deny = '[[rule]]\npublish = "a/#"\n', '[[rule]]\ndeny_publish = "a/+/secret"\n'
    found = rights_by(deny + allow if first == "deny" else allow + deny)
    assert found.may_publish("a/1")
    assert not found.may_publish("a/1/secret")
    assert not found.may_publish("a/1/secret"), "the second time too"


@pytest.mark.parametrize(
    ("denied", "asked", "may"),
    [
        ("a/secret", "a/#", False),
        ("a/secret", "a/+", False),
        ("a/secret", "+/secret", False),
        ("a/secret", "a/secret", False),
        ("a/secret", "a/open", True),
        ("a/secret", "a/+/b", True),
        ("a/secret", "b/#", True),
        ("a/secret", "#", False),
        ("a/#", "a", False),
        ("a/+", "a", True),
        ("+/b/#", "a/b", False),
        ("+/b/#", "a/c/#", True),
        ("#", "$SYS/a", True),
        ("$SYS/#", "#", True),
        ("$SYS/#", "$SYS/+", False),
    ],
)
def test_a_subscription_that_could_bring_a_denied_topic_is_refused(denied: str, asked: str, may: bool) -> None:
    found = rights_by(f'[[rule]]\nsubscribe = ["#", "$SYS/#"]\ndeny_subscribe = "{denied}"\n')
    assert found.may_subscribe(asked) is may


def test_publish_and_subscribe_are_apart() -> None:
    found = rights_by('[[rule]]\npublish = "p"\nsubscribe = "s"\n')
    assert (found.may_publish("p"), found.may_publish("s")) == (True, False)
    assert (found.may_subscribe("p"), found.may_subscribe("s")) == (False, True)


# -- what refuses ------------------------------------------------------------------------------------------------------

LISTED = """
accept_unbound_client_identifiers = true

[[rule]]
user = "anna"
publish = "a/#"
subscribe = ["a/#", "$share/g/a"]

  [[ rule ]]  # secrets
deny_publish = ["x", "a/+/secret"]
deny_subscribe = "a/+/secret"
"""


@pytest.mark.parametrize(
    ("topic", "publish", "subscribe"),
    [
        ("a/1", "", ""),
        ("a/1/secret", "line 9", "line 9"),
        ("b", "no rule", "no rule"),
        ("$other/b", "mqtt.dollar_topics", "mqtt.dollar_topics"),
        ("closed/b", "access.publish", "access.subscribe"),
    ],
)
def test_what_refuses_a_topic_is_the_line_of_a_rule_or_a_key_of_the_configuration(
    topic: str, publish: str, subscribe: str
) -> None:
    filters = ["a/#", "b"]
    access_list = AccessList.parse(LISTED, "rules")
    access = Access(publish=filters, subscribe=filters, access_list=access_list, dollar_topics=OPEN)
    found = access.rights_of("anna", "c")
    for _ in range(2):
        assert (found.publish_refused_by(topic), found.subscribe_refused_by(topic)) == (publish, subscribe)


def test_rules_that_are_not_written_as_tables_have_a_number() -> None:
    found = rights_by('rule = [{publish = "#"}, {deny_publish = "a"}]\n')
    assert found.publish_refused_by("a") == "rule#2"
    assert found.publish_refused_by("b") == ""


# -- %u and %c ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "topic", "may"),
    [
        ("d/%c/#", "d/pump-7/x", True),
        ("d/%c/#", "d/pump-8/x", False),
        ("d/%u", "d/anna", True),
        ("d/%u/%c", "d/anna/pump-7", True),
        ("d/is-%c.x", "d/is-pump-7.x", True),
        ("%c/+", "pump-7/x", True),
        ("100%%/%u", "100%/anna", True),
        ("%%c", "%c", True),
        ("%%%c", "%pump-7", True),
    ],
)
def test_names_are_put_in_for_percent_u_and_percent_c(written: str, topic: str, may: bool) -> None:
    assert rights_by(f'[[rule]]\npublish = "{written}"\n').may_publish(topic) is may


@pytest.mark.parametrize("client", ["+", "#", "a/b", "/", "a/#", "+/+", "a+", "x\0y"])
def test_an_identifier_that_is_more_than_a_plain_level_is_allowed_nothing_by_it(client: str) -> None:
    found = rights_by('[[rule]]\npublish = "d/%c/#"\nsubscribe = "d/%c/#"\n', None, client)
    for topic in ("d/a/b", "d/x", "d", f"d/{client}/x"):
        assert not found.may_publish(topic)
    for asked in ("d/+/x", "d/#", "d/a/b", f"d/{client}", f"d/{client}/#"):
        assert not found.may_subscribe(asked)


@pytest.mark.parametrize("client", ["+", "#", "a/b"])
def test_an_identifier_that_is_more_than_a_plain_level_escapes_no_denial(client: str) -> None:
    rules = '[[rule]]\npublish = "#"\nsubscribe = "#"\ndeny_publish = "d/%c/x"\ndeny_subscribe = "d/%c/x"\n'
    found = rights_by(rules, None, client)
    assert not found.may_publish("d/a/b/x")
    assert not found.may_subscribe("d/a/b/x")
    assert found.may_publish("e")


def test_an_identifier_does_not_open_the_topics_under_a_dollar() -> None:
    rules = '[[rule]]\npublish = ["%c/#", "d/%c"]\nsubscribe = "%c/#"\n'
    found = rights_by(rules, None, "$SYS")
    assert not found.may_publish("$SYS/a")
    assert not found.may_subscribe("$SYS/a")
    assert found.may_publish("d/$SYS"), "behind the first level a dollar is a character as any other"


def test_a_client_without_a_user_is_allowed_nothing_by_percent_u_and_denied_all_of_it() -> None:
    found = rights_by('[[rule]]\npublish = ["u/%u/x", "u/open"]\ndeny_publish = "u/%u/y"\n', None)
    assert not found.may_publish("u//x")
    assert not found.may_publish("u/None/x")
    assert not found.may_publish("u/open"), "the denial reaches from %u on to everything"


# -- what is kept ------------------------------------------------------------------------------------------------------


def test_rights_follow_a_new_access_list_once_they_are_told() -> None:
    access = Access(publish=["#"], subscribe=["#"], access_list=AccessList.parse('[[rule]]\npublish = "a"\n', ""))
    found = access.rights_of("anna", "c")
    assert found.may_publish("a")
    access.access_list = AccessList.parse('[[rule]]\npublish = "b"\n', "")
    found.forget()
    assert (found.may_publish("a"), found.may_publish("b")) == (False, True)


def test_a_client_of_many_topics_is_answered_rightly_though_not_all_are_kept() -> None:
    found = rights_by('[[rule]]\npublish = "a/#"\n')
    topics = [f"a/{number}/{'x' * (number % 40)}" for number in range(3_000)] + ["a/" + "y" * 2_000]
    for _ in range(2):
        assert all(found.may_publish(topic) for topic in topics)
    assert not found.may_publish("b/" + "y" * 2_000)
