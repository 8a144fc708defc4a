"""The folder on another disk to which a gateway copies its open files when its data folder disappears."""

import errno
import os

from gateway.config import ConfigurationError, Settings
from mq_adapters.embedded.store.rescue import rescued_in
from mq_adapters.embedded.store.store import FILE_NAME


def ready_rescue_folder(settings: Settings) -> None:
    """Makes the folder. ConfigurationError where nothing can be written there, or what was rescued is still there.

    A gateway whose data folder was removed is started again by whoever looks after it: an empty store would then take
    the place of the one that was rescued.
    """
    folder = settings.rescue
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        problem = "" if os.access(folder, os.W_OK | os.X_OK) else os.strerror(errno.EACCES)
    except OSError as error:
        problem = error.strerror or str(error)
    if problem:
        raise ConfigurationError("rescue_folder", (f"{folder} cannot be used: {problem}",), "name another folder")
    rescued = rescued_in(folder)
    if rescued and not (settings.data / FILE_NAME).exists():
        problem = f"{settings.data} has no store, and {rescued[-1]} has what was open when one was gone"
        hint = "move that to the data folder's place, or elsewhere to begin with an empty store"
        raise ConfigurationError("rescue_folder", (problem,), hint)
