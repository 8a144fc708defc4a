"""How facts are read: the same for all pieces of an audit, and sent to every process that reads one."""

from dataclasses import dataclass
from typing import Final

from spark_audit.period import EVERYTHING, Period
from spark_audit.policy_scope import PolicyScope

_EVERYTHING: Final = PolicyScope()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How facts are read.

    `cut` are the trails ("" for one alone) of which older segments are not read. `salt` makes the numbers that stand
    for payloads, so that nobody can prepare two payloads with the same one.
    """

    period: Period = EVERYTHING
    scope: PolicyScope = _EVERYTHING
    backwards_us: int = 0
    personal_key: bytes | None = None
    cut: frozenset[str] = frozenset()
    salt: bytes = b""
