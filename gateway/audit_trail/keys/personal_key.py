"""The key of the trail's personal data: found, or made for a trail that has nothing yet."""

import os
import stat
from pathlib import Path

from gateway.audit_trail.durable_file import make_in_place
from gateway.config import ConfigurationError
from mq_adapters.embedded.store.files import make_folder
from spark_audit.personal import KEY_BYTES, PersonalKey, UnusablePersonalKey


def ready_personal_key(path: Path, in_force: str | None) -> None:
    """Sees that there is a key: a trail that has no digest yet gets one. Raises ConfigurationError.

    `in_force` is the key that countersigns the trail (digests.key_in_force), None for a trail that has not begun.
    """
    if in_force is None and not path.exists():
        try:
            make_folder(path.parent)
            make_in_place(path, os.urandom(KEY_BYTES))
        except OSError as error:
            if not (isinstance(error, FileExistsError) and path.exists()):
                raise _unusable(path, f"cannot be made: {error.strerror}", "name a place that can be written") from None
    read_personal_key(path)


def check_personal_key(path: Path, in_force: str | None) -> bool:
    """Whether `ready_personal_key` would find a key; False if it would make one. Changes nothing.

    Raises ConfigurationError as `ready_personal_key` does.
    """
    if in_force is None and not path.exists():
        return False
    read_personal_key(path)
    return True


def read_personal_key(path: Path) -> PersonalKey:
    """The key in a file. Raises ConfigurationError if it is missing, open to everybody or no key."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        key = PersonalKey.read(path)
    except FileNotFoundError:
        hint = f"restore it; if it was destroyed on purpose, make another: head -c {KEY_BYTES} /dev/urandom > {path}"
        raise _unusable(path, "is missing, and the trail has begun", hint) from None
    except OSError as error:
        raise _unusable(path, f"cannot be read: {error.strerror}", "let the gateway's user read it") from None
    except UnusablePersonalKey as error:
        raise _unusable(path, f"is no key: {error}", "restore the right file") from None
    if mode & 0o007:
        raise _unusable(path, f"is open to everybody (mode {mode:03o})", f"chmod 600 {path}")
    return key


def _unusable(path: Path, problem: str, hint: str) -> ConfigurationError:
    return ConfigurationError("audit.personal_key", (f"{path} {problem}",), hint)
