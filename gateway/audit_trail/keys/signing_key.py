"""The configured signing key: made at the first start, read at every later one, replaced by KEY.next.

    KEY        PEM, PKCS8, Ed25519 (RFC 8410) or P-256, not encrypted, mode 0600
    KEY.pub    with `.pub` for the last suffix: the public key, hex digits and a line feed
    KEY.next   the key that is to take over: the writer of the trail countersigns it with the old key, then renames it

It countersigns the first digest of a chain of keys, and one an hour (spark_audit/trail/digest.py). The last digest says
which key is in force. If the key is missing or is another one, the gateway does not start: a trail that nobody can
sign would be worth nothing, and nobody would notice before it is needed.
"""

import contextlib
import pwd
import stat
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from gateway.audit_trail.durable_file import make_in_place, part_of, put_in_place
from gateway.config import ConfigurationError
from mq_adapters.embedded.store.files import make_folder, sync_folder
from spark_audit.trail.signature import KeySigner, Signer, UnusableKey, signer_of_pem

_LARGEST_KEY_BYTES: Final = 16_384
_NEXT_SUFFIX: Final = ".next"
_PUBLIC_SUFFIX: Final = ".pub"


def next_key_path(path: Path) -> Path:
    """Where the key lies that is to take over."""
    return path.with_name(path.name + _NEXT_SUFFIX)


def public_key_path(path: Path) -> Path:
    """Where the public key lies."""
    return path.with_suffix(_PUBLIC_SUFFIX)


def owner_of(path: Path) -> str:
    """The account that made a file, for the digest of a rotation: "root (uid 0)". Raises OSError."""
    number = path.stat().st_uid
    try:
        return f"{pwd.getpwuid(number).pw_name} (uid {number})"
    except KeyError:
        return f"uid {number}"


def ready_key(path: Path, in_force: str | None) -> Signer:
    """The key whose public half is in force (hex; None: no digest yet, then a missing key is made).

    Ends a hand-over that a crash interrupted after it was signed. Raises ConfigurationError.
    """
    key = make_key(path) if in_force is None and not path.exists() else read_key(path)
    with contextlib.suppress(OSError):
        part_of(path).unlink(missing_ok=True)  # of a key whose making was interrupted
    if in_force is None or key.public_key == in_force:
        _publish(path, key)
        return key
    following = next_key_path(path)
    if following.exists() and read_key(following).public_key == in_force:
        return take_over(path)
    raise _not_of_this_trail(path, key, in_force)


def check_key(path: Path, in_force: str | None) -> str:
    """The public key (hex) of the key that `ready_key` would find; "" if it would make one. Changes nothing.

    Raises ConfigurationError as `ready_key` does.
    """
    if in_force is None and not path.exists():
        return ""
    key = read_key(path)
    if in_force is None or key.public_key == in_force:
        return key.public_key
    following = next_key_path(path)
    if following.exists() and read_key(following).public_key == in_force:
        return in_force
    raise _not_of_this_trail(path, key, in_force)


def check_token(path: Path, public_key: str, in_force: str | None, former: str = "") -> Signer | None:
    """Whether a token's public key (hex) is in force, or takes over from the key in a file, which is returned then.

    It may take over from another token too, whose public key is `former` ("": there is none). Raises
    ConfigurationError.
    """
    if in_force in (None, public_key, former):
        return None
    key = read_key(path)
    if key.public_key != in_force:
        raise ConfigurationError(
            "audit.signing_token",
            (f"its key is {public_key}, but the trail's digests were last countersigned by {in_force}",),
            "restore that token, or name it as audit.former_signing_token, or with audit.signing_key the file of that"
            " key: it then hands over",
        )
    return key


def check_place(public_key: str, place: str, in_force: str | None, place_in_force: str) -> None:
    """Checks that the key in force is in its place, as digests name it ("": none does). Raises ConfigurationError.

    `verify` takes a key that moves for a forger's, because a forger would say of a key in a file that it is away.
    """
    if in_force == public_key and place_in_force not in ("", place):
        raise ConfigurationError(
            "audit.signing_token.type",
            (f"the place of key {public_key} is {place} in the configuration, but {place_in_force} in the trail",),
            "make another key there, to which this one hands over; or move the trail folder away",
        )


def read_key(path: Path) -> Signer:
    """The key in a file. Raises ConfigurationError if it is missing, open to everybody or no such key."""
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(path.stat().st_mode)
            data = file.read(_LARGEST_KEY_BYTES)
    except FileNotFoundError:
        hint = "restore it from where it is kept, or move the trail folder away, and a new trail begins"
        raise _unusable(path, "is missing, but the trail's digests are countersigned with it", hint) from None
    except OSError as error:
        raise _unusable(path, f"cannot be read: {error.strerror}", "let the gateway's user read it") from None
    if mode & 0o007:
        raise _unusable(path, f"is open to everybody (mode {mode:03o})", f"chmod 600 {path}")
    try:
        return signer_of_pem(data)
    except UnusableKey as error:
        raise _unusable(path, str(error), "restore it, or make one: openssl genpkey -algorithm ed25519") from None


def make_key(path: Path) -> Signer:
    """A new key if there is none yet, with its public half beside it. Raises ConfigurationError."""
    key = _make(path)
    _publish(path, key)
    return key


def make_next_key(path: Path) -> Signer:
    """The key that is to take over from the one in `path`, made if there is none yet. Raises ConfigurationError.

    The writer of the trail signs the hand-over within a second or so (Trail.tend), and then publishes the key.
    """
    return _make(next_key_path(path))


def _make(path: Path) -> Signer:
    key = Ed25519PrivateKey.generate()
    data = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        make_folder(path.parent)
        make_in_place(path, data)
    except OSError as error:
        if isinstance(error, FileExistsError) and path.exists():
            return read_key(path)
        raise _unusable(path, f"cannot be made: {error.strerror}", "name a place that can be written") from None
    return KeySigner(key)


def take_over(path: Path) -> Signer:
    """Puts the next key in the place of the one before. Its digest of kind rotation is already on the disk."""
    try:
        next_key_path(path).rename(path)
        sync_folder(path.parent)
    except OSError as error:
        hint = "let the gateway's user write in that folder"
        raise _unusable(path, f"cannot be replaced by the next key: {error.strerror}", hint) from None
    key = read_key(path)
    _publish(path, key)
    return key


def _publish(path: Path, key: Signer) -> None:
    """Writes the public key beside the private one. If that fails, `rfhbridge audit key show` still prints it."""
    line = (key.public_key + "\n").encode()
    place = public_key_path(path)
    try:
        if not place.exists() or place.read_bytes() != line:
            put_in_place(place, (line,))
    except OSError:
        return


def _not_of_this_trail(path: Path, key: Signer, in_force: str) -> ConfigurationError:
    return _unusable(
        path,
        f"is not the key of this trail: its public key is {key.public_key}, the digests were last "
        f"countersigned by, or handed over to, {in_force}",
        "restore the right key, or move the trail folder away, and a new trail begins",
    )


def _unusable(path: Path, problem: str, hint: str) -> ConfigurationError:
    return ConfigurationError("audit.signing_key", (f"{path} {problem}",), hint)
