"""Small file systems of a test's own: memory, mounted where the test says. For root, where the kernel lets it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.guarded_run import MARK


class Mounts:
    """File systems in memory; those that are still mounted at the end of the test go."""

    def __init__(self) -> None:
        self._places: list[Path] = []

    def mount(self, place: Path, *, size_bytes: int) -> None:
        """Mounts an empty one over a folder, which is made where it is missing. Skips where that may not be."""
        command = shutil.which("mount")
        if command is None:
            pytest.skip("there is no mount command")
        place.mkdir(parents=True, exist_ok=True)
        options = f"size={size_bytes},mode=0700"
        source = os.environ.get(MARK, "tmpfs")
        done = subprocess.run(
            [command, "-t", "tmpfs", "-o", options, source, str(place)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
        self._places.append(place)

    def take_away(self, place: Path) -> None:
        """Unmounts it from under whoever has files open on it."""
        subprocess.run(["umount", "--lazy", str(place)], check=True)
        self._places.remove(place)

    def clean_up(self) -> None:
        for place in reversed(tuple(self._places)):
            self.take_away(place)
