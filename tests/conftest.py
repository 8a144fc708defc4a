"""Fixtures for every room's tests: the scale of proofs, folders, and mosquitto's clients."""

import atexit
import gc
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from gateway import compiled
from tests.guarded_run import MARK, start_guard
from tests.longest_first import longest_first
from tests.memory_folder import keep_a_run_in_memory, place_for_commits
from tests.mounts import Mounts
from tests.rewritten_modules import rewrite_stale_modules
from tests.written_headers import compare_every_header

# Tests patch modules, which cannot be done to compiled ones. With "1" the processes that they start are compiled.
os.environ.setdefault(compiled.VARIABLE, "0")

# A shell starts what runs in the background with SIGINT ignored, and children inherit that: tests interrupt theirs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


PROOF_VARIABLE = "RFHBRIDGE_PROOF"
PROOF_SCALES = ("short", "full")
SPARK_TESTS = "tests/spark_audit/"
SPARKS = 2
CASES_IN_FULL = 2_000  # hypothesis cases a property in `make prove`, beside its usual 100
#: What a proof may take in full, seconds. Its own limit, if it has one, is for the short form.
LIMIT_IN_FULL_S = 3_600

settings.register_profile(
    "short", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "full",
    deadline=None,
    database=None,
    max_examples=CASES_IN_FULL,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)


class FewSparks(LoadFileScheduling):
    """Shares out tests by file, and those of the audit to two workers: each that gets one keeps a Spark of its own."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        config.option.loadscopereorder = False  # its processes have put the tests in order
        super().__init__(config, log)
        self._spark_of: dict[str, int] = {}

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        if not file.startswith(SPARK_TESTS):
            return file
        return f"{SPARK_TESTS}{self._spark_of.setdefault(file, len(self._spark_of) % SPARKS)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MosquittoClients:
    """The commands of mosquitto's two clients."""

    publish: Path
    subscribe: Path


def pytest_configure(config: pytest.Config) -> None:
    """Start the run's guard; compare headers that travel; choose the hypothesis profile by the scale of proofs."""
    if MARK not in os.environ:  # not in a worker of pytest-xdist, and not in a run within a test
        start_guard(f"rfhbridge-{os.getpid()}-{time.time_ns()}")
        keep_a_run_in_memory()
    compare_every_header()
    scale = os.environ.get(PROOF_VARIABLE, "short")
    if scale not in PROOF_SCALES:
        raise pytest.UsageError(f"{PROOF_VARIABLE}={scale}: must be one of {', '.join(PROOF_SCALES)}")
    settings.load_profile(scale)
    if scale == "short":
        # Of the modules that are loaded hypothesis takes their constants as cases: with them a test would have others
        # in each process, by the tests that ran there before it.
        no_constants = providers.Constants()
        providers._get_local_constants = lambda: no_constants


@pytest.hookimpl(optionalhook=True)  # there may be no pytest-xdist
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Called by pytest-xdist before it starts workers."""
    rewrite_stale_modules(config, config.args)


def pytest_itemcollected(item: pytest.Item) -> None:
    """In full each property of hypothesis is a proof, so that `make prove` tries its many cases; a proof has an hour.

    pytest-timeout takes the mark that stands first, and takes any mark before `--timeout`.
    """
    if os.environ.get(PROOF_VARIABLE) != "full":
        return
    if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        item.add_marker(pytest.mark.proof)
    if item.get_closest_marker("proof"):
        item.add_marker(pytest.mark.timeout(LIMIT_IN_FULL_S), append=False)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is collected lives as long as the process: nobody looks for garbage in it, now or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        atexit.register(gc.unfreeze)  # Python takes apart what is loaded when it ends, and libraries want that


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In a process of pytest-xdist the order of tests is that in which their files are shared out."""
    if hasattr(config, "workerinput"):
        items[:] = [items[place] for place in longest_first([item.nodeid for item in items])]


@pytest.hookimpl(optionalhook=True)  # there may be no pytest-xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling:
    """Called by pytest-xdist, with --dist loadfile."""
    return FewSparks(config, log)


@pytest.fixture(scope="session")
def proof_scale() -> str:
    """How far the tests marked `proof` go: "short", or "full" with RFHBRIDGE_PROOF=full (`make prove`)."""
    return os.environ.get(PROOF_VARIABLE, "short")


@pytest.fixture
def data_folder(tmp_path: Path) -> Path:
    """A data folder of the test's own, which does not exist yet."""
    return tmp_path / "data"


@pytest.fixture
def mounts() -> Iterator[Mounts]:
    """Mounts small file systems; the test is skipped where that is not possible."""
    mounts = Mounts()
    yield mounts
    mounts.clean_up()


@pytest.fixture
def socket_folder() -> Iterator[Path]:
    """An empty folder whose path is short: a Unix socket's path has at most 107 bytes (sun_path, unix(7))."""
    folder = Path(tempfile.mkdtemp(prefix="rfh"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def memory_folder() -> Iterator[Path]:
    """An empty folder in memory, where there is room for a test and perhaps for no run; its path is short."""
    folder = Path(tempfile.mkdtemp(prefix="rfh", dir=place_for_commits()))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def interpreter_as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """For tests that run a daemon in their own process: it changes signals and settings, as one that is about to end.

    With SIGINT ignored, which children inherit, another test of this process would interrupt its children in vain. What
    a daemon freezes would stay until the end, and to unfreeze it would mean all that is collected.
    """
    monkeypatch.setattr(gc, "freeze", lambda: None)
    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    yield
    for number in handlers:
        signal.signal(number, signal.SIG_IGN)  # one that is still blocked goes with that
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    for number, handler in handlers.items():
        signal.signal(number, handler)
    sys.setswitchinterval(interval)
    gc.set_threshold(*threshold)


@pytest.fixture(scope="session")
def mosquitto_clients() -> MosquittoClients:
    """mosquitto_pub and mosquitto_sub of this machine; the test is skipped where they are not installed."""
    publish, subscribe = shutil.which("mosquitto_pub"), shutil.which("mosquitto_sub")
    if publish is None or subscribe is None:
        pytest.skip("mosquitto's clients are not installed (apt-get install mosquitto-clients)")
    return MosquittoClients(publish=Path(publish), subscribe=Path(subscribe))
