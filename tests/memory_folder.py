"""Where the files of tests stand: in memory, where a commit waits for no disk.

On a disk a third of a run was waiting for syncs, which prove nothing to a test: a killed process loses nothing that it
has written, and no test takes the power of a real disk. What a disk may lose `crash_matrix` tells from the syncs
themselves, which it sees on any file system. `make prove` keeps all files on the disk.
"""

import os
import shutil
from pathlib import Path
from typing import Final

#: A file system in memory on Linux.
SHARED_MEMORY: Final = Path("/dev/shm")
#: Far above what the stores of one test need.
NEEDED_BY_A_TEST_BYTES: Final = 256 * 1024**2
#: Far above what is there at once in a run: what a test wrote goes when it has passed (tmp_path_retention_policy).
NEEDED_BY_A_RUN_BYTES: Final = 2 * 1024**3
#: pytest makes its folders below the first one, and `tempfile` and git's worktrees of tests are below the second.
_VARIABLES: Final = ("PYTEST_DEBUG_TEMPROOT", "TMPDIR")


def place_for_commits(shared: Path = SHARED_MEMORY, *, needed_bytes: int = NEEDED_BY_A_TEST_BYTES) -> Path | None:
    """`dir` for mkdtemp; None, which is the usual place, in full proofs and where memory is scarce."""
    if os.environ.get("RFHBRIDGE_PROOF") == "full" or not shared.is_dir():
        return None
    return shared if shutil.disk_usage(shared).free >= needed_bytes else None


def keep_a_run_in_memory(shared: Path = SHARED_MEMORY) -> None:
    """`tmp_path` and all that `tempfile` makes are there from now on, in this process and in those that it starts.

    Where there is no room they stay where they are, and where the caller's environment wants them.
    """
    place = place_for_commits(shared, needed_bytes=NEEDED_BY_A_RUN_BYTES)
    if place is not None and os.environ.keys().isdisjoint(_VARIABLES):
        os.environ |= dict.fromkeys(_VARIABLES, str(place))
