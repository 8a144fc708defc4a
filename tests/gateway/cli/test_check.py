"""`rfhbridge check`: the configuration, the tables, and the example of every key."""

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from gateway.audit_trail.keys.signing_key import make_key
from gateway.audit_trail.segment import Trail
from gateway.config import Settings
from mq_adapters.reasons import StoreError
from spark_audit.trail.signature import public_key_of
from tests.gateway.access.jwt_vectors import ES256_KEY, HS256_KEY
from tests.ssh_agent import running_agent


@pytest.fixture(autouse=True)
def _ibm_library(monkeypatch):
    """IBM's client seems to be there, whatever this machine has: tests/end_to_end/ibm_mq/test_check.py is about it."""
    monkeypatch.setattr("mq_adapters.ibm_mq.binding.load", lambda package: None)


def test_defaults_are_valid(rfhbridge):
    ended = rfhbridge("check")
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert Settings().configuration_sha256 in ended.text
    assert "mapping tables: version" in ended.text


def test_a_connection_is_not_asked_for_in_vain(rfhbridge):
    ended = rfhbridge("check", "--connect")
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert "targets: the configuration names none to connect to" in ended.text.splitlines()
    assert json.loads(rfhbridge("check", "--connect", "--json").stdout)["targets"] == []
    assert "targets" not in json.loads(rfhbridge("check", "--json").stdout)


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
    ("text", "line", "complaint"),
    [
        ("[mqtt]\nmax_in_flight = 3\n", 2, "unknown key 'mqtt.max_in_flight', the nearest known key is "
         "'mqtt.maximum_in_flight'"),
        ("listen = 1883\n", 1, "listen: "),
        ("listen = \n", 1, "is not TOML"),
    ],
)  # fmt: skip
def test_wrong_configuration_is_one_line_and_exit_code_1(rfhbridge, tmp_path, text, line, complaint):
    config = tmp_path / "rfhbridge.toml"
    config.write_text(text)
    ended = rfhbridge("check", "--config", config)
    assert (ended.exit_code, ended.stdout) == (1, b"")
    assert ended.stderr.startswith(f"rfhbridge: {config}:{line}: ")
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
    assert "unknown key 'rule#1.usr', the nearest known key is 'rule.user'" in ended.stderr
    assert "rule#1.publish#1: topic filter 'a/%x': % stands before u, c or another % only" in ended.stderr

    users.unlink()
    ended = rfhbridge("check", "--config", config, "--json")
    assert (ended.exit_code, ended.stdout) == (1, b"")
    missing = f"access.password_file: {users}: cannot be read: No such file or directory ('rfhbridge user add NAME"
    assert missing in ended.stderr
    assert f"; access.access_file: {rules}: " in ended.stderr, "every file that is wrong is named at once"
    assert ended.stderr.count("\n") == 1


def test_secrets_that_everybody_may_read_are_a_warning(rfhbridge, tmp_path):
    users, secret, config = tmp_path / "users", tmp_path / "jwks.json", tmp_path / "rfhbridge.toml"
    secret.write_text(json.dumps({"keys": [{"kty": "oct", "k": "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"}]}))
    config.write_text(f'[access]\npassword_file = "{users}"\ntoken.key_files = ["{secret}"]\n')
    rfhbridge("user", "add", "anna", "--file", users, stdin=b"sesame\n")
    secret.chmod(0o640)
    assert "warning" not in rfhbridge("check", "--config", config).text
    users.chmod(0o644)
    secret.chmod(0o644)
    lines = rfhbridge("check", "--config", config).text.splitlines()
    assert f"warning: password file: {users} is open to everybody (mode 644): chmod 600 it" in lines
    assert f"warning: secret of tokens: {secret} is open to everybody (mode 644): chmod 600 it" in lines


@pytest.mark.parametrize("key", ["subscribe", "deny_subscribe"])
def test_a_rule_about_shared_subscriptions_is_a_warning(rfhbridge, tmp_path, key):
    rules, config = tmp_path / "access.toml", tmp_path / "rfhbridge.toml"
    config.write_text(f'[access]\naccess_file = "{rules}"\n')
    rules.write_text(f'[[rule]]\npublish = "$share/a"\n[[rule]]\n{key} = "$share/night/#"\n')
    ended = rfhbridge("check", "--config", config)
    assert ended.exit_code == 0
    (warning,) = (line for line in ended.text.splitlines() if line.startswith("warning: "))
    assert warning.startswith("warning: access list: rule#2 names $share; for MQTT 5 rules check the filter")


@pytest.fixture
def audited(tmp_path):
    """A configuration whose trail is keyed and signed by a key in another place."""
    config = tmp_path / "rfhbridge.toml"
    config.write_text(
        f'data = "{tmp_path / "data"}"\n[audit]\nsigning_key = "{tmp_path / "signing.pem"}"\n'
        f'personal_data = "keyed"\npersonal_key = "{tmp_path / "personal.key"}"\n'
    )
    return config


def test_keys_that_the_first_start_makes_are_not_missed_and_not_made(rfhbridge, tmp_path, audited):
    ended = rfhbridge("check", "--config", audited)
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert f"signing key: {tmp_path / 'signing.pem'}, made at the first start" in ended.text
    assert f"personal key: {tmp_path / 'personal.key'}, made at the first start" in ended.text
    assert list(tmp_path.iterdir()) == [audited]


def test_keys_are_read_as_the_gateway_reads_them(rfhbridge, tmp_path, audited):
    public_key = make_key(tmp_path / "signing.pem").public_key
    (tmp_path / "personal.key").write_bytes(bytes(32))
    (tmp_path / "personal.key").chmod(0o600)
    ended = rfhbridge("check", "--config", audited)
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert f"signing key: {tmp_path / 'signing.pem'}, Ed25519, public key {public_key}" in ended.text
    assert f"personal key: {tmp_path / 'personal.key'}, valid" in ended.text


def _with_agent(tmp_path: Path, public_key: str, socket: Path) -> Path:
    config = tmp_path / "rfhbridge.toml"
    config.write_text(
        f'data = "{tmp_path / "data"}"\n[audit.signing_token]\ntype = "ssh-agent"\npublic_key = "{public_key}"\n'
        f'socket = "{socket}"\n'
    )
    return config


def test_a_token_that_is_away_is_told_and_stops_nothing(rfhbridge, tmp_path):
    ended = rfhbridge("check", "--config", _with_agent(tmp_path, "d" * 64, tmp_path / "nowhere"))
    assert ended.exit_code == 0
    assert "signing key: ssh-agent, away, so digests are countersigned later: the agent at" in ended.text


@pytest.fixture
def ssh_agent(tmp_path_factory):
    with running_agent(tmp_path_factory.mktemp("agent")) as running:
        yield running


def test_an_agent_is_asked_whether_it_has_the_key(rfhbridge, tmp_path, ssh_agent):
    ssh_agent.add(key := Ed25519PrivateKey.generate())
    ended = rfhbridge("check", "--config", _with_agent(tmp_path, public_key_of(key), ssh_agent.socket))
    assert ended.exit_code == 0, ended.text
    assert f"signing key: ssh-agent, Ed25519, public key {public_key_of(key)}" in ended.text
    ended = rfhbridge("check", "--config", _with_agent(tmp_path, "d" * 64, ssh_agent.socket))
    assert ended.exit_code == 1, ended.text
    assert f"audit.signing_token.public_key: it has {public_key_of(key)}, and not {'d' * 64}" in ended.stderr


RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OF_ANOTHER_KIND = RSA.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.mark.parametrize(
    ("name", "data", "mode", "complaint"),
    [
        ("signing.pem", b"no key", 0o600, "is not an Ed25519 or P-256 private key"),
        ("signing.pem", OF_ANOTHER_KIND, 0o600, "is not an Ed25519 or P-256 private key"),
        ("signing.pem", None, 0o644, "is open to everybody (mode 644) (chmod 600"),
        ("personal.key", bytes(31), 0o600, "a key for personal data has 32 bytes, not 31"),
        ("personal.key", bytes(33), 0o600, "a key for personal data has 32 bytes, not 33"),
        ("personal.key", bytes(32), 0o604, "is open to everybody (mode 604)"),
    ],
    ids=["no key", "RSA", "mode of the signing key", "31 bytes", "33 bytes", "mode of the personal key"],
)
def test_key_that_would_stop_the_start_is_told(rfhbridge, tmp_path, audited, name, data, mode, complaint):
    make_key(tmp_path / "signing.pem")
    if data is not None:
        (tmp_path / name).write_bytes(data)
    (tmp_path / name).chmod(mode)
    ended = rfhbridge("check", "--config", audited)
    assert (ended.exit_code, ended.stdout) == (1, b"")
    assert f"{tmp_path / name} " in ended.stderr
    assert complaint in ended.stderr


@pytest.mark.parametrize("name", ["signing.pem", "personal.key"])
def test_key_that_cannot_be_read_is_told(rfhbridge, tmp_path, audited, name):
    (tmp_path / name).mkdir()
    ended = rfhbridge("check", "--config", audited)
    assert (ended.exit_code, ended.stdout) == (1, b"")
    assert f"{tmp_path / name} cannot be read: Is a directory" in ended.stderr


def test_key_that_is_not_that_of_the_trail_is_told(rfhbridge, tmp_path, audited):
    (tmp_path / "data").mkdir()
    with Trail.open(tmp_path / "data" / "trail", signing_key=tmp_path / "signing.pem") as trail:
        trail.finish("a" * 24)
    assert rfhbridge("check", "--config", audited).exit_code == 1, "the trail has begun without a personal key"
    (tmp_path / "signing.pem").unlink()
    assert "signing.pem is missing, but the trail's digests are countersigned with it" in (
        rfhbridge("check", "--config", audited).stderr
    )
    make_key(tmp_path / "signing.pem")
    assert "is not the key of this trail" in rfhbridge("check", "--config", audited).stderr


@pytest.mark.parametrize(
    ("error", "complaint"),
    [
        (
            PermissionError(13, "Permission denied", "trail"),
            "trail: Permission denied (run this as the gateway's user)",
        ),
        (StoreError("read digest 1", "is no digest", "restore it"), "read digest 1: is no digest (restore it)"),
    ],
)
def test_a_trail_that_cannot_be_read_does_not_hide_what_else_is_wrong(
    rfhbridge, tmp_path, monkeypatch, error, complaint
):
    def fail(_trail):
        raise error

    monkeypatch.setattr("gateway.audit_trail.digests.key_in_force", fail)
    config = tmp_path / "rfhbridge.toml"
    config.write_text(f'access.password_file = "{tmp_path / "none"}"\n')
    ended = rfhbridge("check", "--config", config)
    assert (ended.exit_code, ended.stdout) == (1, b"")
    assert "none: cannot be read: No such file or directory" in ended.stderr
    assert ended.stderr.endswith(f"; {complaint}\n")


def test_data_folder_that_is_a_file_is_told_before_the_start(rfhbridge, tmp_path):
    (tmp_path / "var").touch()
    config = tmp_path / "rfhbridge.toml"
    config.write_text(f'data = "{tmp_path / "var"}"\n')
    ended = rfhbridge("check", "--config", config)
    assert (ended.exit_code, ended.stdout) == (1, b"")
    assert f"data: {tmp_path / 'var'}: is not a folder" in ended.stderr


def test_folder_for_copies_that_is_not_there_is_a_warning(rfhbridge, tmp_path):
    config = tmp_path / "rfhbridge.toml"
    config.write_text(f'data = "{tmp_path / "var"}"\n[audit]\ncopy_folder = "{tmp_path / "copies"}"\n')
    ended = rfhbridge("check", "--config", config)
    assert ended.exit_code == 0
    assert f"warning: audit.copy_folder: there is no folder {tmp_path / 'copies'}" in ended.text
    (tmp_path / "copies").mkdir()
    assert "warning" not in rfhbridge("check", "--config", config).text


def _target(tmp_path, keys):
    config = tmp_path / "rfhbridge.toml"
    config.write_text(f'[[target]]\nname = "PLANT"\nuser = "gateway"\n{keys}\n')
    return config


def test_password_file_of_a_target_is_read(rfhbridge, tmp_path):
    password = tmp_path / "password"
    config = _target(tmp_path, f'password_file = "{password}"')
    assert f"{password}: No such file or directory" in rfhbridge("check", "--config", config).stderr
    password.write_bytes(b"\xff\n")
    assert f"{password}: it is not UTF-8" in rfhbridge("check", "--config", config).stderr
    password.write_bytes(b"\nsecret\n")
    ended = rfhbridge("check", "--config", config)
    assert (ended.exit_code, ended.stdout) == (1, b"")
    assert "its first line is empty (write the password into its first line)" in ended.stderr
    password.write_bytes(b"secret\n")
    password.chmod(0o600)
    ended = rfhbridge("check", "--config", config)
    assert ended.exit_code == 0
    assert f"password of target PLANT: {password}, valid" in ended.text
    assert "secret" not in ended.text
    assert "warning" not in ended.text
    password.chmod(0o644)
    assert f"warning: target PLANT: {password} is open to everybody (mode 644)" in (
        rfhbridge("check", "--config", config).text
    )


def test_variable_of_a_target_that_is_not_set_here_is_a_warning(rfhbridge, tmp_path, monkeypatch):
    config = _target(tmp_path, 'password_environment = "RFHBRIDGE_PLANT"')
    ended = rfhbridge("check", "--config", config)
    assert ended.exit_code == 0, "the gateway may have another environment"
    assert "warning: target PLANT: environment variable RFHBRIDGE_PLANT is not set here" in ended.text
    monkeypatch.setenv("RFHBRIDGE_PLANT", "secret")
    assert "warning" not in rfhbridge("check", "--config", config).text


def test_key_repository_that_is_not_there_is_a_warning(rfhbridge, tmp_path):
    config = _target(tmp_path, f'cipher = "ANY_TLS12_OR_HIGHER"\nkey_repository = "{tmp_path / "keys"}"')
    ended = rfhbridge("check", "--config", config)
    assert ended.exit_code == 0
    assert f"warning: target PLANT: there is no key repository {tmp_path / 'keys'}.kdb or" in ended.text
    (tmp_path / "keys.kdb").write_bytes(b"")
    assert "warning" not in rfhbridge("check", "--config", config).text


def test_native_target_has_its_authorities_in_pem(rfhbridge, tmp_path):
    queues = 'state_queue = "S"\nsubscriber_queue = "T"\nreply_queue = "U"\n'
    more = f'{queues}binding = "native"\nchannel = "A"\nconnections = ["a(1414)"]\ncipher = "ANY_TLS12_OR_HIGHER"'
    config = _target(tmp_path, f'{more}\nkey_repository = "{tmp_path / "keys"}"')
    (tmp_path / "keys.kdb").write_bytes(b"")
    ended = rfhbridge("check", "--config", config)
    assert f"warning: target PLANT: there is no key repository {tmp_path / 'keys'}.pem\n" in ended.text
    (tmp_path / "keys.pem").write_bytes(b"")
    assert "warning" not in rfhbridge("check", "--config", config).text


def test_applications_with_users_of_access_are_counted(rfhbridge, tmp_path):
    (tmp_path / "users").write_text("")
    config = tmp_path / "rfhbridge.toml"
    config.write_text(
        f'[access]\npassword_file = "{tmp_path / "users"}"\n[[mq_listener]]\nlisten = "127.0.0.1:1414"\n'
        '[[application]]\nname = "panels"\naccess_users = ["anna"]\n'
    )
    ended = rfhbridge("check", "--config", config)
    assert "applications: 1 table, 1 of them with a user or a token, valid" in ended.text


def test_keys_of_tokens_are_read_too(rfhbridge, tmp_path):
    keys, config = tmp_path / "keys.json", tmp_path / "rfhbridge.toml"
    keys.write_text(json.dumps({"keys": [ES256_KEY, HS256_KEY]}))
    config.write_text(f'[access.token]\nkey_files = ["{keys}"]\n')
    assert f"keys of tokens: {keys}, 2 keys, valid" in rfhbridge("check", "--config", config).text
    keys.write_text(json.dumps({"keys": [ES256_KEY | {"d": "c2VzYW1l"}]}))
    refused = rfhbridge("check", "--config", config)
    assert refused.exit_code == 1
    assert f"{keys}: a key is a private key" in refused.stderr
    assert "c2VzYW1l" not in refused.stderr


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
        ('stream = "RFHBRIDGE.SUBSCRIBER"', "route#1.stream: 'RFHBRIDGE.SUBSCRIBER' is subscriber_queue of target"),
        ('queue = "RFHBRIDGE.REPLY"', "route#1.queue: 'RFHBRIDGE.REPLY' is reply_queue of target 'PLANT'"),
        ('queue = "RFHBRIDGE.STATE.0"', "route#1.queue: 'RFHBRIDGE.STATE.0' is a state queue of target 'PLANT'"),
    ],
)
def test_no_route_leads_to_a_queue_that_the_gateway_needs(rfhbridge, tmp_path, route, complaint):
    config = tmp_path / "rfhbridge.toml"
    config.write_text(f'[[target]]\nname = "PLANT"\n[[route]]\ntarget = "PLANT"\n{route}\n')
    ended = rfhbridge("check", "--config", config)
    assert ended.exit_code == 1
    assert complaint in ended.stderr


def test_each_problem_of_the_configuration_is_a_line_of_its_own(rfhbridge, tmp_path):
    wrong = tmp_path / "wrong.toml"
    wrong.write_text('listen = "x"\nhedder = "mqrfh"\n')
    first, second = rfhbridge("check", "--config", wrong).stderr.splitlines()
    assert first.startswith(f"rfhbridge: {wrong}:1: listen: 'x' is not")
    assert second.startswith(f"rfhbridge: {wrong}:2: unknown key 'hedder'")
