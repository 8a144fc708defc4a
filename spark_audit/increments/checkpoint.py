"""The checkpoint of a stream: the state of each trail behind its last batch, in a folder of the stream's own.

    stream.json             the version of this layout
    lock                    held by the process that runs the stream
    key.pem                 the private key that signs the states, unless another one is named; for its owner alone
    states/TRAIL.zst        the state of a trail (state.py); the name is made of the trail's folder
    states/TRAIL.zst.next   the state behind a batch whose folder may not be in its place yet

A batch is done when its folder is in its place. So the next state is written first, the folder is brought into its
place, and then the state into its own. A process that finds a next state looks for the folder of its batch: if it is
there, the state is brought into its place too, and else the state is removed and the batch is done again. No folder
that is in its place is changed or written twice.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Self

import orjson
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from spark_audit.increments.state import OtherKey, OtherRules, Rules, State, UnusableState
from spark_audit.increments.trails import OtherTrail, check_head
from spark_audit.ingest.manifest import EARLIER_STREAM_FILE, MANIFEST_FILE, sync_folder
from spark_audit.ingest.warehouse import LOCK, alone_in, replace_file
from spark_audit.location import Location
from spark_audit.trail.signature import KeySigner, UnusableKey, signer_of_pem

STREAM_VERSION: Final = 2
KEY_FILE: Final = "key.pem"
_MARK: Final = "stream.json"
#: By these a checkpoint of version 1 is known, which held ingested lines.
_OF_VERSION_1: Final = (EARLIER_STREAM_FILE, MANIFEST_FILE)
_STATES: Final = "states"
_STATE: Final = ".zst"
_NEXT: Final = f"{_STATE}.next"
_NAME_CHARACTERS: Final = 24
_BEGIN_ANEW: Final = "begin a new checkpoint folder, which reports everything once more"


class UnusableCheckpoint(Exception):
    """A folder is no checkpoint with which this stream can go on. The text says why, and what to do."""


@dataclass(slots=True, kw_only=True)
class Checkpoint:
    """How far a stream has come: its last batch, and the state of each trail. `out` has the folders of batches."""

    folder: Path
    out: Path
    signer: KeySigner
    rules: Rules
    batches: int = 0
    _named: frozenset[str] = frozenset()
    _states: dict[str, State] = field(default_factory=dict)

    @classmethod
    @contextmanager
    def opened(
        cls, folder: Path, out: Path, trails: Sequence[Location], rules: Rules, signer: KeySigner | None = None
    ) -> Iterator[Self]:
        """A checkpoint for the only process that uses it; a new one where the folder is empty or not there.

        Without a signer it has a key of its own. Raises UnusableCheckpoint, InUse, OSError.
        """
        _is_marked(folder)  # before anything is written into a folder that is no checkpoint
        with alone_in(folder):
            if not _is_marked(folder):
                replace_file(folder / _MARK, orjson.dumps({"version": STREAM_VERSION}))
            (folder / _STATES).mkdir(exist_ok=True)
            opened = cls(
                folder=folder,
                out=out,
                signer=signer or _own_signer(folder),
                rules=rules,
                _named=frozenset(map(_name_of, trails)),
            )
            opened._load()
            yield opened

    def _load(self) -> None:
        for path in sorted((self.folder / _STATES).glob(f"*{_NEXT}")):
            if _folder_of(self.out, self._read(path).batch).exists():
                self._bring_into_place(path)
            else:
                path.unlink()
        for path in sorted((self.folder / _STATES).glob(f"*{_STATE}")):
            self._states[path.name.removesuffix(_STATE)] = self._read(path)
        numbers = (int(path.name) for path in self.out.glob("[0-9]" * 8))
        self.batches = max((*(state.batch for state in self._states.values()), *numbers), default=0)

    def _read(self, path: Path) -> State:
        try:
            return State.read(path, self.signer, self.rules)
        except OtherRules as error:
            return error.remains
        except UnusableState as error:
            of_key = "name the one that has with --sign, or " if isinstance(error, OtherKey) else ""
            raise UnusableCheckpoint(f"{path} cannot be gone on with: {error}: {of_key}{_BEGIN_ANEW}") from None

    @staticmethod
    def _bring_into_place(path: Path) -> None:
        path.replace(path.with_name(path.name.removesuffix(_NEXT) + _STATE))
        sync_folder(path.parent)

    def state_of(self, trail: Location) -> State | None:
        """The state of a trail, which perhaps was in another folder; None for a new one. By other rules, its remains.

        Raises OSError.
        """
        name = _name_of(trail)
        if name not in self._states and (before := self._moved(trail)) is not None:
            states = self.folder / _STATES
            (states / f"{before}{_STATE}").replace(states / f"{name}{_STATE}")
            sync_folder(states)
            self._states[name] = self._states.pop(before)
        return self._states.get(name)

    def _moved(self, trail: Location) -> str | None:
        """The name of a state that no named trail has, and that ends where this one goes on."""
        for name in sorted(self._states.keys() - self._named):
            try:
                for head in self._states[name].trails:
                    check_head(trail, head)
            except OtherTrail:
                continue
            return name
        return None

    @property
    def next_folder(self) -> Path:
        """The place of the next batch's folder."""
        return _folder_of(self.out, self.batches + 1)

    def finish(self, trail: Location, state: State, unfinished: Path) -> None:
        """Brings the folder of the next batch into its place, and keeps the state behind it.

        Raises UnusableState, OSError.
        """
        batch, place = self.batches + 1, self.next_folder
        name, state = _name_of(trail), replace(state, batch=batch)
        path = self.folder / _STATES / f"{name}{_NEXT}"
        sync_folder(unfinished)
        replace_file(path, state.to_bytes(self.signer))
        unfinished.replace(place)
        sync_folder(self.out)
        self._bring_into_place(path)
        self._states[name], self.batches = state, batch


def _folder_of(out: Path, batch: int) -> Path:
    return out / f"{batch:08d}"


def _name_of(trail: Location) -> str:
    return hashlib.sha256(str(trail.resolve()).encode()).hexdigest()[:_NAME_CHARACTERS]


def _is_marked(folder: Path) -> bool:
    """Whether a folder is a checkpoint; False for a new one. Raises UnusableCheckpoint, OSError."""
    try:
        told = orjson.loads((folder / _MARK).read_bytes())
    except FileNotFoundError:
        there = {path.name for path in folder.iterdir()} - {LOCK, f"{_MARK}.part"} if folder.exists() else set()
        if there.intersection(_OF_VERSION_1):
            raise UnusableCheckpoint(
                f"{folder} is a checkpoint of an earlier version of the stream: {_BEGIN_ANEW}"
            ) from None
        if there:
            raise UnusableCheckpoint(f"{folder} holds {min(there)!r} and no {_MARK}: name an empty folder") from None
        return False
    except orjson.JSONDecodeError:
        told = None
    if told != {"version": STREAM_VERSION}:
        raise UnusableCheckpoint(f"{folder} is no checkpoint of version {STREAM_VERSION} of the stream: {_BEGIN_ANEW}")
    return True


def _own_signer(folder: Path) -> KeySigner:
    """The checkpoint's own key, made at the first start. Raises UnusableCheckpoint, OSError."""
    path = folder / KEY_FILE
    if not path.exists():
        if any((folder / _STATES).iterdir()):
            raise UnusableCheckpoint(
                f"the states of {folder} are signed by a key that is not in it: name that key with --sign, or"
                f" {_BEGIN_ANEW}"
            )
        _make_key(path)
    try:
        return signer_of_pem(path.read_bytes())
    except UnusableKey as error:
        raise UnusableCheckpoint(f"{path} {error}: {_BEGIN_ANEW}") from None


def _make_key(path: Path) -> None:
    data = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    unfinished = path.with_suffix(".part")
    unfinished.unlink(missing_ok=True)
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    sync_folder(path.parent)
