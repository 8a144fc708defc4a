"""How much work something is, in calls: no load of the machine disturbs this measure."""

import sys
from collections.abc import Callable


def calls_of(look_up: Callable[[], object]) -> int:
    """How many functions are called, those written in C among them."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        look_up()
    finally:
        sys.setprofile(None)
    return calls
