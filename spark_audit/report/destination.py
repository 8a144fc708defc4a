"""Where a report goes: straight into a folder of this machine, or from one to the place that a URI names.

Nothing can be renamed there, so each file is written under its own name, and result.json and the seal come last.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spark_audit.location import Location
from spark_audit.remote_location import RemoteLocation
from spark_audit.report.files import RESULT_FILE, check_report_folder
from spark_audit.result import EXCEPTIONS_FOLDER
from spark_audit.seal import SEAL

_PROBE: Final = "rfhbridge-audit.part"
_LAST: Final = (RESULT_FILE, SEAL)
_BLOCK_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Destination:
    """The place of a report, and the folder of this machine in which it is made."""

    place: Location
    folder: Path

    def check(self) -> None:
        """Makes the folder. OSError if the report could not be written."""
        check_report_folder(self.folder)
        if isinstance(self.place, RemoteLocation):
            probe = self.place / _PROBE
            probe.write_bytes(b"")
            with suppress(OSError):  # who may only add files can leave a report too
                probe.unlink()

    def publish(self) -> None:
        """Brings the files to their place; those of an earlier report that are no more are removed. Raises OSError."""
        if not isinstance(self.place, RemoteLocation):
            return
        files = {path.relative_to(self.folder).as_posix(): path for path in self.folder.rglob("*") if path.is_file()}
        for name in sorted(files, key=lambda name: (name in _LAST, name)):
            with files[name].open("rb") as file, (self.place / name).writing() as target:
                shutil.copyfileobj(file, target, _BLOCK_BYTES)
            if name == RESULT_FILE:
                self._remove_others(self.place, set(files))

    @staticmethod
    def _remove_others(place: RemoteLocation, names: set[str]) -> None:
        for other in (place / EXCEPTIONS_FOLDER).files_below():
            if other.relative_to(place) not in names:
                other.unlink()


@contextmanager
def destination_of(place: Location) -> Iterator[Destination]:
    """The destination of a report; a folder that it needs on this machine is removed at the end."""
    if isinstance(place, Path):
        yield Destination(place, place)
        return
    with tempfile.TemporaryDirectory(prefix="rfhbridge-report-") as name:
        yield Destination(place, Path(name))
