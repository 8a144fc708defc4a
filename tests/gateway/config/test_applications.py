"""The tables [[application]]: names, users and patterns, and applications that nobody can be."""

import pytest

from gateway.config import ConfigurationError, Settings

MQ = '[[mq_listener]]\nlisten = "127.0.0.1:1414"\n[access]\npassword_file = "users"\n'
ANNA = "[[application]]\nname = 'panels'\naccess_users = ['anna', 'p*']\n"
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
        (ANNA, "application#1.access_users: nothing proves users; name access.password_file"),
        (ANNA + MQ.partition("[access]")[2].join(("[access]", "")), "has no effect without an [[mq_listener]]"),
        (
            ANNA + ANNA.replace("panels", "others").replace("anna", "pump") + MQ,
            "application#2.access_users: 'pump' meets 'p*' of application 'panels'; a user is one application",
        ),
        (ANNA.replace("p*", "a:b") + MQ, "'a:b' must be the name of a user, or its beginning and *"),
        (TABLE + "get = ['A*B']\n", "'A*B' must be the name of a queue"),
        (TABLE + "get = ['']\n", "'' must be the name of a queue"),
        (TABLE.replace("['billing']", "['a b']"), "'a b' is not a user of the operating system"),
    ],
)
def test_a_wrong_table_is_refused_by_its_key(tmp_path, text, problem):
    with pytest.raises(ConfigurationError) as refused:
        load(tmp_path, text)
    assert problem in str(refused.value)


def test_users_of_access_may_be_an_application_without_a_token(tmp_path):
    (panels,) = load(tmp_path, ANNA + MQ).application
    assert panels.access_users == ("anna", "p*")
