"""User properties as single properties: the names and values that a folder and JMS share, and all others."""

import pytest

from gateway.bridge.messages.single_properties import single_properties


@pytest.mark.parametrize("name", ["unit", "_", "größe", "x1", "名前", "Mx", "nota"])
def test_names_that_java_and_xml_share_are_properties(name: str) -> None:
    assert single_properties(((name, "v"),)) == (((name, "v"),), ())


@pytest.mark.parametrize(
    "name",
    [
        *("", "1a", "a.b", "a:b", "a-b", "a b", "$a", "\u037e", "a\u00d7", "\U00010400"),
        *("rfhbX", "RFHB", "jmsX", "JMSXGroupID", "mqps", "MQ", "Null", "escape"),
    ],
)
def test_all_others_stand_in_the_json_alone(name: str) -> None:
    found, ((told, reason),) = single_properties(((name, "v"),))
    assert (found, told) == ((), name)
    assert reason.endswith("it stands in rfhbUserProps alone")


def test_a_value_that_a_folder_does_not_support_stands_in_the_json_alone() -> None:
    assert single_properties((("smile", "\U0001f600"),))[0] == ()
