"""The order in which files of tests are shared out among processes: what takes long comes first.

pytest-xdist begins with the files of many tests. Some files have few tests and take minutes, for they wait: begun last,
one of them keeps a single process busy while the others have nothing left.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

#: Begun before all others, in this order: those of the audit on Spark, then files that wait for half a minute and more.
FIRST: Final = (
    "tests/spark_audit/",
    "tests/end_to_end/test_compiled.py",
    "tests/end_to_end/ibm_mq/test_exactly_once.py",
    "tests/crash_matrix/test_crash_matrix.py",
    "tests/end_to_end/test_small_disk.py",
    "tests/end_to_end/test_evidence.py",
    "tests/end_to_end/ibm_mq/test_other_queue_managers.py",
    "tests/end_to_end/ibm_mq/test_hanging_calls.py",
    "tests/end_to_end/test_access.py",
)


def longest_first(node_ids: Sequence[str]) -> list[int]:
    """The places of tests in their new order: that of FIRST, then files of many tests; a file keeps its own order."""
    files = [node_id.partition("::")[0] for node_id in node_ids]
    tests = Counter(files)
    return sorted(range(len(files)), key=lambda place: (_rank(files[place]), -tests[files[place]], files[place]))


def _rank(file: str) -> int:
    return next((rank for rank, start in enumerate(FIRST) if file.startswith(start)), len(FIRST))
