"""Files that decide who may do what: their contents, hashed for the audit trail at the start and at each change.

`configuration_sha256` covers the settings, and of a file that they name only the name. So each file has a record when
the gateway starts, and one when the gateway has taken up a change of it. A file without secrets is told by its SHA-256,
which anybody can compare with a copy. A private key is told by its public key. A file with secrets (passwords, hashes
of them, keys that sign) is told by an HMAC under a key of the store: equal files are seen to be equal, and nobody can
try guesses. This key is made at the first start and stands in the store alone (StateKind.GATEWAY,
`deciding-files-key`, 32 bytes). The keys of the trail and the files of its
witnesses are told too: when they are made, changed or removed.
"""

import hashlib
import hmac
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gateway.access.reloading import Reloading, WatchedFile
from gateway.access.text_file import MAXIMUM_FILE_BYTES
from gateway.audit_trail.notes.notes import NoteKind
from gateway.audit_trail.plan import TrailPlan
from gateway.config import ConfigurationError, Settings
from gateway.config.listeners import ListenerSettings
from mappings import table
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import StateKind
from spark_audit.record import HashedBy

KEY_ROW: Final = b"deciding-files-key"
_KEY_BYTES: Final = 32
_PRIVATE: Final = b"PRIVATE KEY-----"
#: Begins the names of files of the trail, which the exporter reads, and nobody takes up while the gateway runs.
_OF_TRAIL: Final = "audit."


@dataclass(frozen=True, slots=True)
class DecidingFile:
    """A file: the key of the configuration that names it, its path, and how its contents are hashed."""

    setting: str
    path: Path
    how: Callable[[bytes], HashedBy]


#: How a file is hashed, and the hash.
_Hash = tuple[HashedBy, bytes]


def _in_clear(data: bytes) -> HashedBy:
    """Of a file without secrets; a PEM file of certificates may hold the key too."""
    return HashedBy.HMAC if _PRIVATE in data else HashedBy.SHA256


def _secret(_data: bytes) -> HashedBy:
    return HashedBy.HMAC


def _private_key(_data: bytes) -> HashedBy:
    return HashedBy.PUBLIC_KEY


def _token_keys(data: bytes) -> HashedBy:
    """A JWK Set may hold secrets, with which anybody can make tokens."""
    from gateway.access.token_keys import parse_token_keys  # a gateway without tokens does not load PyJWT

    keys = parse_token_keys(data.decode("utf-8-sig"), "keys")
    return HashedBy.HMAC if any(isinstance(key.key, bytes) for key in keys) else HashedBy.SHA256


def files_of(settings: Settings, configuration: Path | None) -> Iterator[DecidingFile]:
    """The file of a configuration and those that it names, and the mapping tables of this program."""
    if configuration is not None:
        yield DecidingFile("configuration", configuration, _in_clear)
    for setting, path, how in _named_by(settings):
        if path:
            yield DecidingFile(setting, Path(path), how)


def _named_by(settings: Settings) -> Iterator[tuple[str, str | Path, Callable[[bytes], HashedBy]]]:
    access, tables = settings.access, Path(table.__file__).parent
    yield "fields.toml", tables / "fields.toml", _in_clear
    yield "options.toml", tables / "options.toml", _in_clear
    yield "access.password_file", access.password_file, _secret
    yield "access.access_file", access.access_file, _in_clear
    yield from (("access.token.key_files", path, _token_keys) for path in access.token.key_files)
    yield "queue_manager.token_file", settings.queue_manager.token_file, _secret
    for target in settings.target:
        yield f"target.{target.name}.password_file", target.password_file, _secret
    for listener in settings.all_listeners:
        array = "listener" if isinstance(listener, ListenerSettings) else "mq_listener"
        name, tls = f"{array}.{listener.name}.tls", listener.tls
        yield f"{name}.client_authority", tls.client_authority, _in_clear
        named = ((f"{name}.server_name.{each.name}", each.certificate, each.key) for each in tls.server_name)
        for place, certificate, key in ((name, tls.certificate, tls.key), *named):
            yield f"{place}.certificate", certificate, _in_clear
            yield f"{place}.key", key, _private_key
    if settings.audit.enabled:
        plan = TrailPlan.of(settings)
        yield "audit.signing_key", plan.signing_key, _private_key
        for name, token in (("signing", plan.signing_token), ("former_signing", plan.former_signing_token)):
            yield f"audit.{name}_token.pin_file", token.pin_file if token else "", _secret
        yield "audit.personal_key", plan.personal_key, _secret
        for witness in plan.witnesses:
            yield f"audit.witness.{witness.name}.git_settings_file", witness.git_settings_file, _secret
            yield f"audit.witness.{witness.name}.credentials_file", witness.credentials_file, _secret
            yield f"audit.witness.{witness.name}.authority_file", witness.authority_file, _in_clear


def _nothing_to_take_up() -> Callable[[], None]:
    return lambda: None


class DecidingFiles:
    """Tells the audit trail of these files."""

    def __init__(self, settings: Settings, configuration: Path | None, engine: Engine) -> None:
        self._files = tuple(files_of(settings, configuration))
        self._engine = engine
        self._key = engine.state(StateKind.GATEWAY, KEY_ROW) or b""
        #: What the trail has of each file.
        self._told: dict[DecidingFile, _Hash] = {}
        keys = (file.path for file in self._files if file.setting.startswith(_OF_TRAIL))
        self._keys = Reloading(WatchedFile(path, _nothing_to_take_up) for path in keys)
        self._keys.on_read = self.read

    def started(self) -> None:
        """The gateway has read all files."""
        if not self._key:
            self._key = os.urandom(_KEY_BYTES)
            unit = self._engine.begin()
            unit.set_state(StateKind.GATEWAY, KEY_ROW, self._key)
            self._engine.submit(unit)
        self._tell("started", self._hashes(self._files))

    async def watch(self) -> None:
        """Looks at the files of the trail, until it is cancelled."""
        await self._keys.run()

    def read(self, paths: Iterable[Path]) -> Callable[[], None]:
        """The gateway has read these files again. Runs in a thread; returns what is done when it takes them up."""
        read = set(paths)
        files = [each for each in self._files if each.path in read]
        hashes = self._hashes(files)
        gone = [each for each in files if not each.path.exists()]

        def tell() -> None:
            self._tell("changed", hashes)
            self._tell("removed", {file: self._told[file] for file in gone if file in self._told})

        return tell

    def _tell(self, event: str, hashes: dict[DecidingFile, _Hash]) -> None:
        unit, now_us = self._engine.begin(), self._engine.now_us()
        for file, (how, digest) in hashes.items():
            is_there = event != "removed"
            if self._told.pop(file, None) != (how, digest) or not is_there:
                unit.notes.append((NoteKind.FILE_READ, now_us, event, file.setting, file.path.name, str(how), digest))
            if is_there:
                self._told[file] = how, digest
        if unit.notes:
            unit.notes_are_due = True
            self._engine.submit(unit)

    def _hashes(self, files: Iterable[DecidingFile]) -> dict[DecidingFile, _Hash]:
        """A file that cannot be read just now is left out; the gateway goes on with what it has read of it."""
        found: dict[DecidingFile, _Hash] = {}
        for file in files:
            try:
                with file.path.open("rb") as opened:
                    data = opened.read(MAXIMUM_FILE_BYTES + 1)
                how = file.how(data)
                found[file] = how, self._hash(how, data)
            except (OSError, ValueError, TypeError, ConfigurationError):
                continue
        return found

    def _hash(self, how: HashedBy, data: bytes) -> bytes:
        if how is HashedBy.HMAC:
            return hmac.digest(self._key, data, "sha256")
        return hashlib.sha256(data if how is HashedBy.SHA256 else public_key_of(data)).digest()


def public_key_of(private: bytes) -> bytes:
    """The public key (SubjectPublicKeyInfo, DER) of a private key in PEM. Raises ValueError or TypeError."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

    return (
        load_pem_private_key(private, None).public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    )
