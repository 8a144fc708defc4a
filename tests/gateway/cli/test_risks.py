"""The risks of `rfhbridge check`: each is planted, named by --strict, and gone where it is mended."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.access.application_tokens import TokenHash
from gateway.cli.risks import RISKS
from mq_adapters.kernel_clock import ClockReading
from tests.certificate_authority import Authority
from tests.gateway.access.jwt_vectors import ES256_KEY


class Plant:
    """A configuration without a risk, in a folder of its own, and what is planted into it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = ClockReading(state="ok", maximum_error_us=21_000, estimated_error_us=340)
        authority = Authority(folder)
        authority.issue("gateway", days=365)
        authority.issue("late", days=9)
        (folder / "users").write_text("")
        (folder / "rules.toml").write_text('[[rule]]\npublish = "plant/%u/#"\n')
        (folder / "key.pem").write_text(json.dumps({"keys": [ES256_KEY]}))
        (folder / "tokens").write_text(f"billing:{TokenHash.of('a').text}\n")
        (folder / "data").mkdir(mode=0o700)
        for path in folder.iterdir():
            path.chmod(0o700 if path.is_dir() else 0o600)
        folder.chmod(0o700)
        self.listener = "listen = '0.0.0.0:8883'\ntls.certificate = 'gateway.pem'\ntls.key = 'gateway.key'\n"
        self.access = "password_file = 'users'\naccess_file = 'rules.toml'\n"
        self.audit = "signing_key = 'signing.pem'\ncopy_folder = 'copies'\n"
        self.more = "[queue_manager]\ntoken_file = 'tokens'\n[[application]]\nname = 'billing'\n"

    def write(self) -> Path:
        path = self.folder / "rfhbridge.toml"
        path.write_text(
            f"data = 'data'\n[[listener]]\nname = 'field'\n{self.listener}"
            f"[access]\n{self.access}[audit]\n{self.audit}{self.more}"
        )
        path.chmod(path.stat().st_mode & 0o777 if path.stat().st_mode & 0o022 else 0o600)
        return path


def _tokens(plant: Plant) -> None:
    plant.access += "token.key_files = ['key.pem']\n"


def _writable_configuration(plant: Plant) -> None:
    plant.write().chmod(0o666)


#: How each risk is planted, by its name.
PLANTED: dict[str, tuple[Callable[[Plant], object], ...]] = {
    "anonymous": (
        lambda plant: setattr(plant, "listener", plant.listener + "anonymous = true\n"),
        lambda plant: setattr(plant, "access", plant.access + "anonymous = true\n"),
    ),
    "passwords-in-clear": (lambda plant: setattr(plant, "listener", "listen = '0.0.0.0:1883'\n"),),
    "open-http": (lambda plant: setattr(plant, "more", plant.more + "[http]\nenabled = true\nlisten = '[::]:8080'\n"),),
    "proxies": (lambda plant: setattr(plant, "listener", plant.listener + "proxy_protocol = true\n"),),
    "writable-files": (
        _writable_configuration,
        lambda plant: (plant.folder / "rules.toml").chmod(0o620),
        lambda plant: (plant.folder / "gateway.pem").chmod(0o602),
        lambda plant: (plant.folder / "data").chmod(0o770),
        lambda plant: plant.folder.chmod(0o777),
    ),
    "readable-secrets": (
        lambda plant: (plant.folder / "users").chmod(0o604),
        lambda plant: (plant.folder / "gateway.key").chmod(0o604),
        lambda plant: (plant.folder / "tokens").chmod(0o604),
    ),
    "unbound-identifiers": (
        lambda plant: (plant.folder / "rules.toml").write_text(
            'accept_unbound_client_identifiers = true\n[[rule]]\nsubscribe = "plant/%c"\n'
        ),
        lambda plant: (plant.folder / "rules.toml").write_text(
            '[[rule]]\nuser = "anna"\nclient = "panel-*"\nsubscribe = "plant/#"\n'
        ),
    ),
    "tokens": (
        lambda plant: (_tokens(plant), setattr(plant, "access", plant.access + "token.issuer = 'plant'\n")),
        lambda plant: (_tokens(plant), setattr(plant, "access", plant.access + "token.audience = 'mqtt'\n")),
    ),
    "expiring-certificates": (lambda plant: setattr(plant, "listener", plant.listener.replace("'gateway.", "'late.")),),
    "no-trail": (lambda plant: setattr(plant, "audit", "enabled = false\n"),),
    "weak-signing": (lambda plant: setattr(plant, "audit", "copy_folder = 'copies'\n"),),
    "no-copy-of-digests": (lambda plant: setattr(plant, "audit", "signing_key = 'signing.pem'\n"),),
    "short-lock": (
        lambda plant: setattr(
            plant,
            "audit",
            plant.audit + "keep_days = 90\n[[audit.witness]]\nname = 'vault'\ntype = 's3'\nbucket = 'plant-digests'\n"
            "keep_days = 89\n",
        ),
    ),
    "unsynchronised-clock": (lambda plant: setattr(plant, "clock", ClockReading(state="error")),),
}
CASES = [(name, plant) for name, plants in PLANTED.items() for plant in plants]


@pytest.fixture
def plant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plant:
    folder = tmp_path / "etc"
    folder.mkdir()
    (folder / "copies").mkdir()
    monkeypatch.chdir(folder)
    planted = Plant(folder)
    monkeypatch.setattr("gateway.cli.risks.read_clock", lambda: planted.clock)
    return planted


def test_a_test_plants_each_risk_of_the_table() -> None:
    assert set(PLANTED) == {row.name for row in RISKS}


def test_a_key_in_a_token_is_not_beside_the_trail_and_its_pin_is_a_secret(rfhbridge, plant: Plant) -> None:
    pin = plant.folder / "pin"
    pin.write_text("4711\n")
    plant.audit = "[audit.signing_token]\ntype = 'pkcs11'\npublic_key = '" + "d" * 64 + "'\nmodule = '/nowhere.so'\n"
    plant.audit += "token = 'trail'\nkey = 'trail'\npin_file = 'pin'\n"
    for mode, is_told in ((0o600, False), (0o644, True)):
        pin.chmod(mode)
        text = rfhbridge("check", "--strict", "--config", plant.write()).text
        assert "risk weak-signing" not in text
        assert ("risk readable-secrets: PIN of the signing token" in text) == is_told, text


def test_a_witness_keeps_digests_elsewhere_and_its_settings_are_a_secret(rfhbridge, plant: Plant) -> None:
    settings = plant.folder / "git-settings"
    settings.write_text("[credential]\n")
    settings.chmod(0o600)
    plant.audit = "signing_key = 'signing.pem'\n[[audit.witness]]\nname = 'office'\ntype = 'git'\n"
    plant.audit += "remote = 'ssh://git@git.example.com/digests.git'\ngit_settings_file = 'git-settings'\n"
    ended = rfhbridge("check", "--strict", "--config", plant.write())
    assert (ended.exit_code, "risk " in ended.text) == (0, False), ended.text
    assert "settings of git git-settings, readable" in ended.text
    settings.chmod(0o644)
    ended = rfhbridge("check", "--strict", "--config", plant.write())
    assert (ended.exit_code, "risk readable-secrets: witness office" in ended.text) == (1, True), ended.text
    plant.audit += "[[audit.witness]]\nname = 'clock'\ntype = 'rfc3161'\nurl = 'http://127.0.0.1:1'\n"
    plant.audit += "authority_file = 'gateway.pem'\n"
    settings.chmod(0o600)
    ended = rfhbridge("check", "--strict", "--config", plant.write())
    assert (ended.exit_code, "time-stamping authority gateway.pem, 1 certificate" in ended.text) == (0, True), (
        ended.text
    )
    settings.unlink()
    ended = rfhbridge("check", "--config", plant.write())
    assert ended.exit_code != 0
    assert "git-settings" in ended.stderr


def test_a_kernel_that_cannot_be_asked_is_no_risk(rfhbridge, plant: Plant) -> None:
    plant.clock = ClockReading()
    assert rfhbridge("check", "--strict", "--config", plant.write()).exit_code == 0


def test_a_configuration_without_a_risk_passes(rfhbridge, plant: Plant) -> None:
    ended = rfhbridge("check", "--strict", "--config", plant.write())
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert "risk " not in ended.text
    assert "warning" not in ended.text


@pytest.mark.parametrize(("name", "planted"), CASES, ids=[name for name, _ in CASES])
def test_each_risk_that_is_planted_is_named_alone_and_ends_with_1(
    rfhbridge, plant: Plant, name: str, planted: Callable[[Plant], object]
) -> None:
    planted(plant)
    config = plant.write()
    ended = rfhbridge("check", "--strict", "--config", config)
    assert ended.exit_code == 1, ended.stderr
    told = [line for line in ended.text.splitlines() if line.startswith("risk ")]
    assert {line.split(":")[0] for line in told} == {f"risk {name}"}, ended.text
    plainly = rfhbridge("check", "--config", config)
    assert plainly.exit_code == 0
    assert [line for line in plainly.text.splitlines() if line.startswith("warning: ")] == [
        line.replace(f"risk {name}: ", "warning: ") for line in told
    ]
    found = json.loads(rfhbridge("check", "--strict", "--config", config, "--json").stdout)["risks"]
    (what_to_do,) = (row.what_to_do for row in RISKS if row.name == name)
    assert found == [
        {"name": name, "risk": line.removeprefix(f"risk {name}: "), "what_to_do": what_to_do} for line in told
    ]


def test_the_evidence_of_a_gateway_for_this_machine_alone_is_weighed_by_strict_alone(rfhbridge) -> None:
    plainly, strictly = rfhbridge("check"), rfhbridge("check", "--strict")
    assert (plainly.exit_code, "warning" in plainly.text) == (0, False)
    assert strictly.exit_code == 1
    for name in ("weak-signing", "no-copy-of-digests"):
        assert f"risk {name}: " in strictly.text
