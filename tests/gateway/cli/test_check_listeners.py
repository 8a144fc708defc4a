"""`rfhbridge check` and the certificates of listeners: each is loaded, and what is wrong is one sentence."""

from pathlib import Path

import pytest

from tests.certificate_authority import Authority

LISTENER = """
[[listener]]
name = "secure"
listen = "127.0.0.1:8883"
tls.certificate = "{folder}/{certificate}"
tls.key = "{folder}/{key}"
{more}
"""

SERVER_NAME = (
    '[[listener.tls.server_name]]\nname = "a.b"\ncertificate = "{{folder}}/other.pem"\nkey = "{{folder}}/{}.key"\n'
)


@pytest.fixture
def check(rfhbridge, tmp_path: Path):
    """Checks a configuration with one secure listener."""
    authority = Authority(tmp_path)
    authority.issue("gateway", hosts=("mqtt.example.com",), days=365)
    authority.issue("other")
    authority.issue("late", days=-1)
    authority.issue("locked", password=b"secret")
    Authority(tmp_path, "named").issue("third")

    def run(certificate="gateway.pem", key="gateway.key", more="", *arguments):
        config = tmp_path / "rfhbridge.toml"
        text = LISTENER.format(folder=tmp_path, certificate=certificate, key=key, more=more.format(folder=tmp_path))
        config.write_text(text, encoding="utf-8")
        return rfhbridge("check", "--config", config, *arguments)

    return run


def test_a_certificate_is_shown_with_its_hosts_and_its_end(check):
    ended = check()
    assert ended.exit_code == 0
    assert "gateway.pem for mqtt.example.com, 127.0.0.1, ::1, its key fits, valid until 20" in ended.text


def test_every_certificate_of_sni_is_shown(check):
    ended = check(more=SERVER_NAME.format("other"))
    assert [line.startswith("listener secure: certificate ") for line in ended.text.splitlines()].count(True) == 2


@pytest.mark.parametrize(
    ("certificate", "key", "more", "complaint"),
    [
        ("gateway.pem", "other.key", "", "other.key: is not the key of the certificate in "),
        ("late.pem", "late.key", "", "late.pem: expired on 20"),
        ("none.pem", "none.key", "", "none.pem: cannot be read: No such file or directory"),
        ("gateway.key", "gateway.key", "", "gateway.key: holds no certificate in PEM"),
        ("gateway.pem", "gateway.pem", "", "gateway.pem: holds no private key in PEM"),
        ("locked.pem", "locked.key", "", "locked.key: is encrypted"),
        (
            "gateway.pem",
            "gateway.key",
            'tls.client_authority = "{folder}/gateway.key"\ntls.client_certificate = "required"',
            "gateway.key: holds no certificate in PEM",
        ),
        (
            "gateway.pem",
            "gateway.key",
            'tls.client_authority = "{folder}/late.pem"\ntls.client_certificate = "required"',
            "late.pem: expired on 20",
        ),
        ("gateway.pem", "gateway.key", 'tls.ciphers = "NOTHING"', "ciphers: 'NOTHING' names no cipher suite"),
        (
            "gateway.pem",
            "gateway.key",
            SERVER_NAME.format("third"),
            "third.key: is not the key of the certificate in ",
        ),
    ],
    ids=[
        "mismatch",
        "expired",
        "missing",
        "no pem",
        "no key",
        "locked",
        "authority",
        "old authority",
        "ciphers",
        "sni",
    ],
)
def test_what_is_wrong_with_a_file_is_one_sentence_and_exit_code_1(check, certificate, key, more, complaint):
    ended = check(certificate, key, more)
    assert ended.exit_code == 1
    assert complaint in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_key_that_everybody_may_read_is_a_warning(check, tmp_path):
    key = tmp_path / "gateway.key"
    key.chmod(0o600)
    assert "warning: " not in check().text
    key.chmod(0o644)
    assert "gateway.key is open to everybody (mode 644): chmod 600 it" in check().text


def test_the_settings_as_json_name_the_listeners(check):
    ended = check("gateway.pem", "gateway.key", "", "--json")
    assert ended.exit_code == 0
    assert '"name":"secure"' in ended.text.replace(" ", "")
