"""Topics that begin with `$`: what is reserved, and what the operator opens."""

import pytest

from gateway.access.access_list import AccessList
from gateway.access.dollar_topics import DollarTopics
from gateway.access.rights import Access

EVERYTHING = AccessList.parse('[[rule]]\npublish = ["#", "$aws/#"]\nsubscribe = ["#", "$aws/#"]\n', "rules")


@pytest.mark.parametrize("access_list", [None, EVERYTHING])
@pytest.mark.parametrize("filters", [("#",), ("#", "$aws/#")])
def test_they_are_reserved_whatever_access_says(access_list: AccessList | None, filters: tuple[str, ...]) -> None:
    rights = Access(publish=filters, subscribe=filters, access_list=access_list).rights_of(None, "c")
    for topic in ("$aws/a", "$aws", "$", "$SYS/STREAM/STOCK/a"):
        assert not rights.may_publish(topic)
        assert not rights.may_subscribe(topic)
        assert not rights.may_receive(topic)
    assert not rights.may_subscribe("$aws/#")
    assert not rights.may_subscribe("$SYS/#")
    for topic in ("a", "a/$b", "/$aws"):
        assert rights.may_publish(topic)
        assert rights.may_subscribe(topic)
    assert rights.may_subscribe("#")


def test_what_is_open_is_for_those_whom_access_allows_it() -> None:
    open_topics = DollarTopics(["$aws/+/x", "$b/#"])
    access = Access(publish=["$aws/#"], subscribe=["$b/#"], dollar_topics=open_topics)
    rights = access.rights_of(None, "c")
    assert [rights.may_publish(each) for each in ("$aws/1/x", "$aws/1/y", "$b/1")] == [True, False, False]
    assert [rights.may_subscribe(each) for each in ("$b/#", "$b/+", "$+/1", "$aws/1/x")] == [True, True, False, False]
    nobody = Access(publish=["#"], subscribe=["#"], access_list=AccessList.parse("", ""), dollar_topics=open_topics)
    assert not nobody.rights_of(None, "c").may_publish("$b/1")
    assert not nobody.rights_of(None, "c").may_subscribe("$b/#")


def test_what_the_gateway_tells_of_itself_is_subscribed_by_everybody_and_published_by_nobody() -> None:
    told = DollarTopics(["$SYS/broker/version", "$SYS/STREAM/STOCK/#"], has_sys_topics=True)
    assert told.may_subscribe("$SYS/#")
    assert told.may_subscribe("$SYS/broker/clients/+")
    assert not told.may_subscribe("$SYS/STREAM/#")
    assert not told.may_subscribe("$SYS/+/a")
    assert not told.may_publish("$SYS/broker/version")
    assert told.may_publish("$SYS/STREAM/STOCK/a")
    assert [told.may_receive(f"$SYS/{each}/a") for each in ("broker", "STREAM/STOCK", "STREAM/X", "other")] == [
        True,
        True,
        False,
        False,
    ]


def test_what_a_store_has_of_them_is_named_and_counted() -> None:
    filters = [("c1", "a/#"), ("c1", "$aws/#"), ("$share/g/$aws/x", "$aws/x"), ("c2", "$open/a")]
    found = list(DollarTopics(["$open/#"]).cautions(filters, ["a", "$aws/r", "$open/r"]))
    assert found == [
        "subscriptions bring nothing, because their topics are reserved: '$aws/# of c1',"
        " '$aws/x of $share/g/$aws/x'; they are kept, and mqtt.dollar_topics opens them",
        "retained messages reach no client, because their topics are reserved: '$aws/r'; they are kept, and"
        " mqtt.dollar_topics opens them",
    ]
    (many,) = DollarTopics().cautions([], [f"$a/{number}" for number in range(15)])
    assert "'$a/9' and 5 more; " in many
    assert list(DollarTopics().cautions([("c", "a")], ["b"])) == []
