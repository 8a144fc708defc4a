"""Which package is used, and what is said where none can be: each in a process of its own."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ibm_mq_stand_in.process import BUILT, VARIABLE, needs_stand_in, python_folder

ROOT = Path(__file__).resolve().parents[3]
LOAD = "from mq_adapters.ibm_mq.binding import load; print(load({0!r}).package)"


def run(code: str, folder: Path, *packages: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs Python in `folder` with some packages on its path, and without what this process has in its environment."""
    path = os.pathsep.join([*(str(python_folder(package)) for package in packages), str(ROOT)])
    environment = {"PYTHONPATH": path, VARIABLE: "nowhere", **variables}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_native_client_needs_no_package_and_is_got_by_asking_for_it_alone(tmp_path):
    assert run(LOAD.format("native"), tmp_path).stdout == "native\n"
    assert "2495" in run(LOAD.format("auto"), tmp_path).stderr


def test_importing_the_adapter_loads_neither_package(tmp_path):
    code = "import sys, mq_adapters.ibm_mq; print({'ibmmq', 'pymqi', 'ibmmqc', 'pymqe'} & set(sys.modules))"
    assert run(code, tmp_path, "ibmmq", "pymqi").stdout == "set()\n"


def test_without_the_packages_the_error_says_what_to_install(tmp_path):
    complaint = run(LOAD.format("auto"), tmp_path).stderr
    assert "2495 MQRC_MODULE_NOT_FOUND" in complaint
    assert "Python package ibmmq is not installed; Python package pymqi is not installed" in complaint
    assert "libmqm_r.so" in complaint
    assert "MQ_FILE_PATH" in complaint
    assert "pip install ibmmq, or pymqi" in complaint


@needs_stand_in
@pytest.mark.parametrize(("package", "library"), [("ibmmq", "libmqm_r.so"), ("pymqi", "libmqic_r.so")])
def test_without_the_c_library_the_error_names_it_and_not_a_module_inside_the_package(tmp_path, package, library):
    complaint = run(LOAD.format(package), tmp_path, package).stderr.splitlines()[-1]
    assert "2495" in complaint
    assert f"{library}: cannot open shared object file" in complaint
    assert "pymqe" not in complaint
    assert "ibmmqc" not in complaint


@needs_stand_in
@pytest.mark.parametrize(
    ("wanted", "packages", "chosen"),
    [
        ("auto", ("pymqi", "ibmmq"), "ibmmq"),
        ("auto", ("pymqi",), "pymqi"),
        ("pymqi", ("pymqi", "ibmmq"), "pymqi"),
        ("ibmmq", ("pymqi", "ibmmq"), "ibmmq"),
    ],
)
def test_ibmmq_is_preferred_and_either_can_be_chosen(tmp_path, wanted, packages, chosen):
    assert run(LOAD.format(wanted), tmp_path, *packages, LD_LIBRARY_PATH=str(BUILT / "lib64")).stdout == f"{chosen}\n"


@needs_stand_in
def test_a_library_below_the_working_directory_is_never_loaded(tmp_path):
    planted = tmp_path / "ibm-mq-redist" / "lib64"
    planted.mkdir(parents=True)
    (planted / "libmqm_r.so").write_bytes((BUILT / "lib64" / "libmqm_r.so").read_bytes())
    alone = run(LOAD.format("ibmmq"), tmp_path, "ibmmq")
    assert "2495" in alone.stderr
    code = f"{LOAD.format('ibmmq')}; print(open('/proc/self/maps').read())"
    loaded = run(code, tmp_path, "ibmmq", MQ_FILE_PATH=str(BUILT)).stdout
    assert loaded.startswith("ibmmq\n")
    assert str((BUILT / "lib64" / "libmqm_r.so").resolve()) in loaded
    assert "ibm-mq-redist" not in loaded


def test_no_structure_of_the_packages_is_written_by_attribute():
    """A spelling mistake in an attribute would be taken for a new one; a keyword that is wrong is an error."""
    written = [
        f"{path.name}:{node.lineno}"
        for path in (ROOT / "mq_adapters" / "ibm_mq").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and ast.unparse(node.value) not in ("self", "own")
    ]
    assert written == []
