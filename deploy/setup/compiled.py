"""Compiles the modules of gateway/compiled.toml with mypyc, for the sources as they are now and for this interpreter.

usage: python deploy/setup/compiled.py [JOBS]

Run by deploy/setup/compiled.sh in the project's folder. JOBS: how many files of C are compiled at a time; without it,
as many as there are cores. Exit code 3, and lines that say why, where mypyc refuses a source. A build is complete or
not there, and it is of sources that did not change meanwhile.
"""

import contextlib
import inspect
import io
import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NoReturn

from mypyc.build import mypycify
from setuptools import Extension
from setuptools._distutils.ccompiler import new_compiler
from setuptools._distutils.sysconfig import customize_compiler

from gateway import compiled

#: Of builds of other sources the newest are kept: somebody goes back and forth between two.
KEPT: Final = 2
#: mypyc makes a list of what the source makes one by one. With a million messages that stops a gateway.
_AS_LIST: Final = "Treating generator comprehension as list"
#: The exit code where mypyc refuses a source: it would refuse it again.
_REFUSED: Final = 3


def main() -> None:
    target = compiled.build()
    if target.exists():
        return
    jobs = int(sys.argv[1]) if sys.argv[1:] else len(os.sched_getaffinity(0))
    target.parent.mkdir(exist_ok=True)
    for unfinished in target.parent.glob(".building-*"):  # of a build that was killed
        shutil.rmtree(unfinished)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".building-") as name:
        folder = Path(name)
        extensions = _to_c(folder)
        os.environ["TMPDIR"] = name  # what a compiler that is killed leaves goes with the folder
        _to_machine_code(extensions, folder / "objects", folder / "modules", jobs)
        if compiled.build() != target:
            sys.exit("a source changed while it was compiled: try again")
        (folder / "modules").rename(target)
    others = [each for each in compiled.builds().glob("[!.]*") if each.is_dir() and each != target]
    for old in sorted(others, key=lambda each: each.stat().st_mtime)[:-KEPT]:
        shutil.rmtree(old)


class _AnySignature(inspect.Signature):
    """mypyc writes the signature of each function into its help, and fails where `**options` follows a default."""

    def __init__(self, parameters: Sequence[inspect.Parameter] | None = None) -> None:
        super().__init__(parameters, __validate_parameters__=False)


def _to_c(folder: Path) -> list[Extension]:
    files = [f"{module.replace('.', '/')}.py" for module in compiled.modules()]
    said = io.StringIO()
    inspect.Signature = _AnySignature  # type: ignore[misc]
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            extensions: list[Extension] = mypycify(
                [f"--cache-dir={folder / 'cache'}", *files],
                opt_level="2",
                debug_level="0",
                group_name="rfhbridge",
                target_dir=str(folder / "c"),
                multi_file=True,
            )
        except SystemExit:
            _refuse(said.getvalue())
    if lists := [line for line in said.getvalue().splitlines() if _AS_LIST in line]:
        _refuse("\n".join(lists))
    return extensions


def _refuse(reason: str) -> NoReturn:
    print(reason, file=sys.__stderr__)  # standard error may be redirected
    sys.exit(_REFUSED)


def _to_machine_code(extensions: list[Extension], objects: Path, modules: Path, jobs: int) -> None:
    """Each file of C by itself, so many at a time."""
    compiler = new_compiler()
    customize_compiler(compiler)

    def compile_one(part: tuple[Extension, str]) -> list[str]:
        extension, source = part
        folders = [sysconfig.get_path("include"), *extension.include_dirs]
        options = extension.extra_compile_args
        made: list[str] = compiler.compile(
            [source], output_dir=str(objects), include_dirs=folders, extra_postargs=options
        )
        return made

    parts = [(extension, source) for extension in extensions for source in extension.sources]
    of_extension: dict[str, list[str]] = {extension.name: [] for extension in extensions}
    with ThreadPoolExecutor(jobs) as threads:
        for (extension, _), made in zip(parts, threads.map(compile_one, parts), strict=True):
            of_extension[extension.name] += made
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    for name, made in of_extension.items():
        module = modules / f"{name.replace('.', '/')}{suffix}"
        module.parent.mkdir(parents=True, exist_ok=True)
        compiler.link_shared_object(made, str(module))


if __name__ == "__main__":
    main()
