"""Where stores of tests stand whose subject is no disk: in memory, a commit waits for none.

`make prove` keeps them on the disk.
"""

import os
import shutil
from pathlib import Path
from typing import Final

#: A file system in memory on Linux.
SHARED_MEMORY: Final = Path("/dev/shm")
#: Far above what such a test writes.
NEEDED_BYTES: Final = 256 * 1024**2


def place_for_commits(shared: Path = SHARED_MEMORY) -> Path | None:
    """`dir` for mkdtemp; None, which is the usual place, in full proofs and where memory is scarce."""
    if os.environ.get("RFHBRIDGE_PROOF") == "full" or not shared.is_dir():
        return None
    return shared if shutil.disk_usage(shared).free >= NEEDED_BYTES else None
