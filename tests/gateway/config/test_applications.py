"""The tables [[application]]: names, users and patterns, and applications that nobody can be."""

import pytest

from gateway.config import ConfigurationError, Settings

TABLE = "[[application]]\nname = 'billing'\nusers = ['billing']\n"


def load(tmp_path, text: str) -> Settings:
    path = tmp_path / "rfhbridge.toml"
    path.write_text(text)
    return Settings.load(path)


def test_a_table_has_patterns_for_each_right(tmp_path):
    (billing,) = load(tmp_path, TABLE + "put = ['ORDERS.*', 'A']\nbrowse = ['*']\n").application
    assert (billing.put, billing.get, billing.browse, billing.admin) == (("ORDERS.*", "A"), (), ("*",), ())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (TABLE + TABLE.replace("['billing']", "['other']"), "application#2.name: there is an application 'billing'"),
        (TABLE + TABLE.replace("'billing'\nusers", "'b'\nusers"), "'billing' is a user of application 'billing'"),
        ("[[application]]\nname = 'billing'\n", "application#1: nobody can be it"),
        ("[queue_manager]\ntoken_file = 'tokens'\n", "queue_manager.token_file: has no effect without"),
        (
            TABLE.replace("name = 'billing'", "name = 'much-too-long'"),
            "'much-too-long' is not a name of an application",
        ),
        (TABLE + "get = ['A*B']\n", "'A*B' must be the name of a queue"),
        (TABLE + "get = ['']\n", "'' must be the name of a queue"),
        (TABLE.replace("['billing']", "['a b']"), "'a b' is not a user of the operating system"),
    ],
)
def test_a_wrong_table_is_refused_by_its_key(tmp_path, text, problem):
    with pytest.raises(ConfigurationError) as refused:
        load(tmp_path, text)
    assert problem in str(refused.value)
