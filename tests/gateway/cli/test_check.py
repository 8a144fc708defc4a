"""`rfhbridge check`: the configuration, the tables, and the example of every key."""

import json

import pytest

from gateway.config import Settings


def test_defaults_are_valid(rfhbridge):
    ended = rfhbridge("check")
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert Settings().configuration_sha256 in ended.text
    assert "mapping tables: version" in ended.text


def test_example_is_a_configuration_that_means_the_defaults(rfhbridge, tmp_path):
    example = tmp_path / "example.toml"
    example.write_bytes(rfhbridge("check", "--example").stdout)
    assert Settings.load(example) == Settings()
    assert rfhbridge("check", "--config", example).exit_code == 0


def test_settings_are_given_as_json(rfhbridge, tmp_path):
    config = tmp_path / "rfhbridge.toml"
    config.write_text('listen = "[::1]:0"\n[audit]\nenabled = false\n')
    told = json.loads(rfhbridge("check", "--config", config, "--json").stdout)
    assert told["settings"]["listen"] == "[::1]:0"
    assert told["settings"]["audit"]["enabled"] is False
    assert told["configuration_sha256"] == Settings.load(config).configuration_sha256


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[mqtt]\nmax_in_flight = 3\n", "unknown key 'mqtt.max_in_flight', the nearest known key is "
         "'mqtt.maximum_in_flight'"),
        ("listen = 1883\n", "listen: "),
        ("listen = \n", "is not TOML"),
    ],
)  # fmt: skip
def test_wrong_configuration_is_one_line_and_exit_code_1(rfhbridge, tmp_path, text, complaint):
    config = tmp_path / "rfhbridge.toml"
    config.write_text(text)
    ended = rfhbridge("check", "--config", config)
    assert (ended.exit_code, ended.stdout) == (1, b"")
    assert ended.stderr.startswith(f"rfhbridge: {config}: ")
    assert complaint in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_missing_configuration_is_one_line(rfhbridge, tmp_path):
    ended = rfhbridge("check", "--config", tmp_path / "none.toml")
    assert ended.exit_code == 2
    assert "No such file or directory" in ended.stderr


def test_wrong_use_is_exit_code_2(rfhbridge):
    assert rfhbridge("check", "extra").exit_code == 2


def test_files_that_the_configuration_names_are_checked(rfhbridge, tmp_path):
    users, rules, config = tmp_path / "users", tmp_path / "access.toml", tmp_path / "rfhbridge.toml"
    config.write_text(f'[access]\npassword_file = "{users}"\naccess_file = "{rules}"\n')
    rfhbridge("user", "add", "anna", "--file", users, stdin=b"sesame\n")
    rules.write_text('[[rule]]\nuser = "anna"\npublish = "a/%u"\n')
    ended = rfhbridge("check", "--config", config)
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert f"password file: {users}, 1 user, valid" in ended.text
    assert f"access list: {rules}, 1 rule, valid" in ended.text

    rules.write_text('[[rule]]\nusr = "anna"\npublish = "a/%x"\n')
    ended = rfhbridge("check", "--config", config)
    assert (ended.exit_code, ended.stdout) == (1, b"")
    assert "unknown key 'rule.0.usr', the nearest known key is 'rule.user'" in ended.stderr
    assert "rule.0.publish.0: topic filter 'a/%x': % stands before u, c or another % only" in ended.stderr

    users.unlink()
    ended = rfhbridge("check", "--config", config, "--json")
    assert (ended.exit_code, ended.stdout) == (1, b"")
    assert f"{users}: cannot be read: No such file or directory" in ended.stderr


@pytest.mark.parametrize("key", ["anonymous = false", "bind_client_identifier = true"])
def test_what_needs_users_needs_a_password_file(rfhbridge, tmp_path, key):
    config = tmp_path / "rfhbridge.toml"
    config.write_text(f"[access]\n{key}\n")
    ended = rfhbridge("check", "--config", config)
    assert ended.exit_code == 1
    assert "need a password_file" in ended.stderr


def test_a_route_that_nobody_can_subscribe_to_is_named(rfhbridge, tmp_path):
    config = tmp_path / "rfhbridge.toml"
    config.write_text('[[target]]\nname = "PLANT"\n[[route]]\ntarget = "PLANT"\nstream = "STOCK"\ntopics = ["a/#"]\n')
    ended = rfhbridge("check", "--config", config)
    assert ended.exit_code == 0, "publications go there all the same"
    (warning,) = [line for line in ended.text.splitlines() if line.startswith("warning: ")]
    assert warning == (
        "warning: route to PLANT, stream STOCK: every SUBSCRIBE that concerns its topics is refused: MQRFH2 cannot name"
        ' stream STOCK in a RegSub; set header of target PLANT to "mqrfh", or its streams to "message_broker" or'
        ' "queue_manager"'
    )
    assert json.loads(rfhbridge("check", "--config", config, "--json").stdout)["warnings"] == [warning[9:]]
    config.write_text(config.read_text().replace('"PLANT"\n[[', '"PLANT"\nheader = "mqrfh"\n[['))
    assert "warning" not in rfhbridge("check", "--config", config).text


@pytest.mark.parametrize(
    ("route", "complaint"),
    [
        ('stream = "RFHBRIDGE.SUBSCRIBER"', "route.0.stream: 'RFHBRIDGE.SUBSCRIBER' is subscriber_queue of target"),
        ('queue = "RFHBRIDGE.REPLY"', "route.0.queue: 'RFHBRIDGE.REPLY' is reply_queue of target 'PLANT'"),
        ('queue = "RFHBRIDGE.STATE.0"', "route.0.queue: 'RFHBRIDGE.STATE.0' is a state queue of target 'PLANT'"),
    ],
)
def test_no_route_leads_to_a_queue_that_the_gateway_needs(rfhbridge, tmp_path, route, complaint):
    config = tmp_path / "rfhbridge.toml"
    config.write_text(f'[[target]]\nname = "PLANT"\n[[route]]\ntarget = "PLANT"\n{route}\n')
    ended = rfhbridge("check", "--config", config)
    assert ended.exit_code == 1
    assert complaint in ended.stderr
