"""SoftHSM signs with Ed25519 and with P-256; a token that is away, or a PIN that others may read, is told."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.audit_trail.keys.remote_key import KeyAway, KeyPlace, remote_key
from gateway.audit_trail.keys.token_key import _public_key
from spark_audit.trail.signature import algorithm_of, is_signature_of

LIBRARIES = (
    Path("/usr/lib/softhsm/libsofthsm2.so"),
    Path("/usr/lib64/softhsm/libsofthsm2.so"),
    Path("/usr/local/lib/softhsm/libsofthsm2.so"),
    Path("/opt/homebrew/lib/softhsm/libsofthsm2.so"),
)
PIN = "4711"
#: Makes both pairs of keys: the library of a token is loaded once in a process, and not in that of the tests.
MAKE_KEYS = """
import sys
import pkcs11
from pkcs11 import Attribute, KeyType
from pkcs11.util.ec import encode_named_curve_parameters

with pkcs11.lib(sys.argv[1]).get_token(token_label="trail").open(rw=True, user_pin=sys.argv[2]) as session:
    for label, curve, kind in (("p256", "secp256r1", KeyType.EC), ("edwards", "1.3.101.112", KeyType.EC_EDWARDS)):
        parameters = session.create_domain_parameters(
            kind, {Attribute.EC_PARAMS: encode_named_curve_parameters(curve)}, local=True
        )
        parameters.generate_keypair(store=True, label=label)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> KeyPlace:
    """A token with a key of each kind; `key` is still to be named."""
    library = next((path for path in LIBRARIES if path.exists()), None)
    if library is None or shutil.which("softhsm2-util") is None:
        pytest.skip("SoftHSM is not installed (apt install softhsm2)")
    pytest.importorskip("pkcs11", reason="python-pkcs11 is not installed")
    folder = tmp_path_factory.mktemp("token")
    (folder / "tokens").mkdir()
    (folder / "softhsm2.conf").write_text(f"directories.tokendir = {folder}/tokens\nobjectstore.backend = file\n")
    pin_file = folder / "pin"
    pin_file.write_text(f"{PIN}\n")
    pin_file.chmod(0o600)
    return KeyPlace(
        type="pkcs11", public_key="", module=str(library), token="trail", pin_file=str(pin_file), timeout_s=60
    )


@pytest.fixture(autouse=True)
def configured(place: KeyPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(place.pin_file).parent
    monkeypatch.setenv("SOFTHSM2_CONF", str(folder / "softhsm2.conf"))
    if not any((folder / "tokens").iterdir()):
        made = ["softhsm2-util", "--init-token", "--free", "--label", "trail", "--so-pin", "0000", "--pin", PIN]
        subprocess.run(made, check=True, capture_output=True)
        subprocess.run([sys.executable, "-c", MAKE_KEYS, place.module, PIN], check=True, env=os.environ)


@pytest.mark.parametrize(("label", "algorithm"), [("p256", "P-256"), ("edwards", "Ed25519")])
def test_a_token_signs_and_its_public_key_is_told(place, label: str, algorithm: str) -> None:
    key = remote_key(replace(place, key=label))
    (public_key,) = key.public_keys()
    assert algorithm_of(public_key) == algorithm
    signature = key.sign(b"digest")
    assert is_signature_of(public_key, signature, b"digest")
    assert not is_signature_of(public_key, signature, b"another")


AWAY = {
    "no such key": ({"key": "nobody"}, "NoSuchKey"),
    "no such token": ({"token": "nobody"}, "NoSuchToken"),
    "no such library": ({"module": "/nowhere.so"}, "nowhere"),
    "no time": ({"timeout_s": 0.01}, "it took more than 0.01 s"),
    "no PIN": ({"pin_file": "/nowhere"}, "/nowhere cannot be read"),
}


@pytest.mark.parametrize("case", AWAY)
def test_a_token_that_is_away_says_why(place, case: str) -> None:
    changed, words = AWAY[case]
    with pytest.raises(KeyAway, match=words):
        remote_key(replace(place, **{"key": "p256"} | changed)).sign(b"digest")


def test_a_wrong_pin_and_one_that_others_may_read_are_told(place, tmp_path: Path) -> None:
    pin_file = tmp_path / "pin"
    pin_file.write_text("0815\n")
    pin_file.chmod(0o640)
    opened = replace(place, key="p256", pin_file=str(pin_file))
    with pytest.raises(KeyAway, match="is open to others"):
        remote_key(opened).sign(b"digest")
    pin_file.chmod(0o600)
    with pytest.raises(KeyAway, match="PinIncorrect"):
        remote_key(opened).sign(b"digest")


def test_a_key_of_another_curve_is_refused() -> None:
    with pytest.raises(KeyAway, match="neither of Ed25519 nor of P-256"):
        _public_key(b"\4" * 65, b"\6\5+\x81\4\0\n", is_edwards=False)
    with pytest.raises(KeyAway, match="neither"):
        _public_key(b"\4" * 57, b"", is_edwards=True)
