"""A key in a PKCS #11 token: its maker's library runs in a program of its own, and the key never leaves the token.

    python -P -m gateway.audit_trail.keys.token_key

If the library hangs or crashes, only this program does. Standard input has the fields of KeyPlace as `place`,
and `data` (hex) to be signed; "" asks for the public key alone. The output has `public_key` and `signature`, hex. The
PIN comes from its file. A P-256 key signs the SHA-256 (CKM_ECDSA), an Ed25519 key the data (CKM_EDDSA). Source:
PKCS #11 3.0, sections 2.3.5 and 2.3.14 of the current mechanisms.
"""

import hashlib
import os
import stat
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import orjson

from gateway.audit_trail.child import ProgramFailed, on_one_line, output_of
from gateway.audit_trail.keys.remote_key import KeyAway, KeyPlace

_PROGRAM: Final = "gateway.audit_trail.keys.token_key"
_LARGEST_PIN_BYTES: Final = 1_024
_ED25519_BYTES: Final = 32
_POINT_BYTES: Final = 65
_OCTET_STRING: Final = 4
_UNCOMPRESSED: Final = 4
#: The object identifier of P-256 (1.2.840.10045.3.1.7) in DER.
_P256: Final = bytes.fromhex("06082a8648ce3d030107")


class TokenKey:
    """The key. Raises KeyAway."""

    def __init__(self, place: KeyPlace) -> None:
        self._place = place

    def public_keys(self) -> tuple[str, ...]:
        """The one with the label."""
        return (str(self._ask(b"")["public_key"]),)

    def sign(self, data: bytes) -> str:
        """64 bytes, hex."""
        return str(self._ask(data)["signature"])

    def _ask(self, data: bytes) -> dict[str, Any]:
        request = {"place": asdict(self._place), "data": data.hex()}
        try:
            told = output_of(
                (sys.executable, "-P", "-m", _PROGRAM),
                data=orjson.dumps(request),
                timeout_s=self._place.timeout_s,
                environment=os.environ,
            )
            answer: dict[str, Any] = orjson.loads(told)
        except (ProgramFailed, orjson.JSONDecodeError) as error:
            raise KeyAway(f"token {self._place.token}: {on_one_line(str(error))}") from None
        return answer


# -- the program -------------------------------------------------------------------------------------------------------


def answer_to(place: KeyPlace, data: bytes) -> Mapping[str, str]:
    """The answer of the token. Raises KeyAway."""
    try:
        import pkcs11
        from pkcs11 import Attribute, KeyType, Mechanism, ObjectClass
    except ImportError:
        raise KeyAway("python-pkcs11 is not installed: pip install '.[pkcs11]' in a clone of the repository") from None
    pin = _pin(Path(place.pin_file))
    try:
        token = pkcs11.lib(place.module).get_token(token_label=place.token)
        with token.open(user_pin=pin) as session:
            public = session.get_key(object_class=ObjectClass.PUBLIC_KEY, label=place.key)
            is_edwards = public.key_type == KeyType.EC_EDWARDS
            parameters = bytes(public[Attribute.EC_PARAMS])
            public_key = _public_key(bytes(public[Attribute.EC_POINT]), parameters, is_edwards=is_edwards)
            signature = b""
            if data:
                private: Any = session.get_key(object_class=ObjectClass.PRIVATE_KEY, label=place.key)
                if is_edwards:
                    signature = private.sign(data, mechanism=Mechanism.EDDSA)
                else:
                    signature = private.sign(hashlib.sha256(data).digest(), mechanism=Mechanism.ECDSA)
    except (pkcs11.PKCS11Error, RuntimeError, OSError) as error:
        raise KeyAway(f"{type(error).__name__} {error}") from None
    return {"public_key": public_key, "signature": bytes(signature).hex()}


def _public_key(point: bytes, parameters: bytes, *, is_edwards: bool) -> str:
    """The key as digests have it, from CKA_EC_POINT: the point in an OCTET STRING, or, by some makers, bare."""
    length = _ED25519_BYTES if is_edwards else _POINT_BYTES
    if len(point) == length + 2 and point[0] == _OCTET_STRING and point[1] == length:
        point = point[2:]
    is_known = is_edwards or (parameters == _P256 and point[:1] == bytes((_UNCOMPRESSED,)))
    if len(point) != length or not is_known:
        raise KeyAway("its key is neither of Ed25519 nor of P-256")
    if is_edwards:
        return point.hex()
    x, y = point[1:33], point[33:]
    return (bytes((2 + y[-1] % 2,)) + x).hex()


def _pin(path: Path) -> str:
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            line = file.read(_LARGEST_PIN_BYTES).partition(b"\n")[0]
    except OSError as error:
        raise KeyAway(f"{path} cannot be read: {error.strerror}") from None
    if mode & 0o077:
        raise KeyAway(f"{path} is open to others (mode {mode:03o}): chmod 600 it")
    return line.decode(errors="replace")


def main() -> int:
    """The program. Exit code 0: it has answered; 1: standard error says why not."""
    request = orjson.loads(sys.stdin.buffer.read())
    try:
        answer = answer_to(KeyPlace(**request["place"]), bytes.fromhex(request["data"]))
    except KeyAway as error:
        sys.stderr.write(str(error))
        return 1
    sys.stdout.buffer.write(orjson.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
