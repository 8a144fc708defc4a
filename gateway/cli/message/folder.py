"""Converts a folder of messages, one in each file, into another folder under the same names.

The originals are only read. The command follows no symbolic link when it reads or writes messages. So it writes only in
the new folder, and the report. A new file appears whole or not at all.
"""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import typer

from gateway.cli.files import STANDARD_STREAM, read_input, replace_whole, write_whole
from gateway.conversion.message import ConversionRequest, converted_message
from mappings.errors import MappingError

REPORT_NAME: Final = "report.jsonl"


@dataclass(slots=True, kw_only=True)
class FileCounts:
    """How many files were converted; `unchanged` ones were in the wanted format already."""

    converted: int = 0
    unchanged: int = 0
    failed: int = 0


class FolderConversion:
    """The conversion of one folder. Raises typer.BadParameter if one folder would overwrite the other."""

    def __init__(self, source: Path, target: Path, report: Path | None, wanted: ConversionRequest) -> None:
        self._source = source.resolve()
        self._target = target.resolve()
        self._request = wanted
        self.report = (report or target / REPORT_NAME).absolute()
        self.counts = FileCounts()
        self._check_folders(target)
        self.files = tuple(sorted(self._found(self._source)))
        place = self.report.parent.resolve() / self.report.name
        if str(report) == STANDARD_STREAM or any(place in (self._source / n, self._target / n) for n in self.files):
            raise typer.BadParameter("the report needs a file of its own", param_hint="'--report'")

    def run(self, advance: Callable[[], object]) -> None:
        """Converts every file, and calls `advance` after each. Raises OSError if the report cannot be written."""
        self._target.mkdir(parents=True, exist_ok=True)
        replace_whole(self.report, self._lines(advance))

    # -- finding files -------------------------------------------------------------------------------------------------

    def _check_folders(self, target: Path) -> None:
        if self._target == self._source or self._target in self._source.parents:
            raise typer.BadParameter(
                f"{target} holds the messages themselves; name another folder", param_hint="'--out'"
            )
        if self._target.exists() and not self._target.is_dir():
            raise typer.BadParameter(f"{target} is not a folder", param_hint="'--out'")

    def _found(self, folder: Path) -> Iterator[Path]:
        """All files under the source, without those of the target, by their paths from the source on."""
        with os.scandir(folder) as entries:
            for entry in entries:
                path = Path(entry.path)
                if path == self._target:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    yield from self._found(path)
                else:
                    yield path.relative_to(self._source)

    # -- converting ----------------------------------------------------------------------------------------------------

    def _lines(self, advance: Callable[[], object]) -> Iterator[bytes]:
        """Converts one file after the other, and yields the line of each for the report."""
        for name in self.files:
            told = {"path": str(name), **self._outcome(name)}
            yield json.dumps(told).encode("ascii") + b"\n"
            advance()

    def _outcome(self, name: Path) -> dict[str, object]:
        try:
            return self._converted(name)
        except MappingError as error:
            known = {"reason_code": error.reason_code, "reason_name": error.reason_name, "offset": error.offset}
            told = {**known, "parameter": error.parameter, "hint": error.hint}
        except OSError as error:
            told = {"reason_code": None, "reason_name": None, "offset": None, "parameter": None}
            told["hint"] = error.strerror or str(error)
        self.counts.failed += 1
        return {"error": told}

    def _converted(self, name: Path) -> dict[str, object]:
        data = _read_plain(self._source / name)
        message = converted_message(data, self._request)
        write_whole(self._place(name), message.data)
        if message.data == data:
            self.counts.unchanged += 1
        else:
            self.counts.converted += 1
        return {"format": message.format, "report": message.report.as_dict()}

    def _place(self, name: Path) -> Path:
        """The path of a new file, with its folders made. OSError if a link or something else is there."""
        folder = self._target
        for part in name.parts[:-1]:
            folder /= part
            if folder.is_symlink():
                raise OSError(f"{folder} is a symbolic link, which could lead out of the folder; remove it")
            folder.mkdir(exist_ok=True)
        path = folder / name.name
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise OSError(f"{path} is there and is not a plain file; remove it")
        return path


def _read_plain(path: Path) -> bytes:
    """The bytes of a plain file. A link is not followed; a pipe or device, which could block, is not opened."""
    if path.is_symlink() or not path.is_file():
        raise OSError("not a plain file; symbolic links are not followed")
    return read_input(str(path))
