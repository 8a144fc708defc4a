"""What a test does to a running queue manager of the stand-in: plants faults, turns switches, reads the trace."""

import json
import socket
from collections import Counter
from pathlib import Path
from typing import Any, Final

_ANSWER_LIMIT_S: Final = 60.0


class ControlError(Exception):
    """The queue manager refused what a test asked for."""


class Control:
    """A connection to the control socket of one queue manager process."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(_ANSWER_LIMIT_S)
        self._socket.connect(str(path))
        self._answers = self._socket.makefile("rb")

    def close(self) -> None:
        self._answers.close()
        self._socket.close()

    # -- faults ------------------------------------------------------------------------------------------------------

    def plant(self, verb: str, reason: int = 0, moment: str = "before", *, contains: bytes = b"", **more: Any) -> None:
        """Plants a fault: `Fault` in faults.py says what there is (nth, probability, seed, times, delay_s, late_s)."""
        self._ask("plant", verb=verb, reason=reason, moment=moment, contains=contains.hex(), **more)

    def clear_faults(self) -> list[int]:
        """Forgets all faults; returns how often each has struck, in the order in which they were planted."""
        return list(self._ask("clear_faults"))

    def hasten(self) -> None:
        """What faults delay goes on now, and what is late or lost takes effect: no test has to hit a moment."""
        self._ask("hasten")

    def drop_connections(self, *, linger_s: float = 0.0) -> int:
        """Breaks every connection: 2009 for the programs, and `linger_s` later the queue manager backs them out."""
        return int(self._ask("drop_connections", linger_s=linger_s))

    # -- switches ----------------------------------------------------------------------------------------------------

    def begin_outage(self, reason: int = 2059) -> None:
        """The queue manager is away: every connection breaks, and connects are refused with `reason`."""
        self._ask("switch", connect_refusal=reason)
        self.drop_connections()

    def end_outage(self) -> None:
        self._ask("switch", connect_refusal=0)

    def quiesce(self) -> None:
        """The queue manager is being ended: 2161 for calls with FAIL_IF_QUIESCING, and for connects."""
        self._ask("switch", is_quiescing=True)

    def end_quiesce(self) -> None:
        self._ask("switch", is_quiescing=False)

    def require_passwords(self, passwords: dict[str, str]) -> None:
        """From now on a connect needs one of these users with its password, else 2035; with none nobody is asked."""
        self._ask("switch", passwords=passwords)

    def deny(self, *pairs: tuple[str, str]) -> None:
        """What nobody may do, as (object, authority); see Switches.denied. It takes the place of what was denied."""
        self._ask("switch", denied=pairs)

    def limit_channel(self, longest_bytes: int) -> None:
        """MAXMSGL of the server's channel: a longer message is 2218."""
        self._ask("switch", channel_bytes=longest_bytes)

    # -- objects -----------------------------------------------------------------------------------------------------

    def mqsc(self, *lines: str) -> list[str]:
        """Carries out MQSC commands, with SHARE, NOSHARE and DEFSOPT; ControlError where one fails."""
        answered = []
        for succeeded, answer in self._ask("mqsc", lines=lines):
            if not succeeded:
                raise ControlError("\n".join(answer))
            answered += answer
        return answered

    def reset(self) -> None:
        """No connections, faults, switches, definitions and messages any more. Subscriptions stay."""
        self._ask("reset")

    # -- looking -----------------------------------------------------------------------------------------------------

    @property
    def identifier(self) -> str:
        """What the queue manager answers for MQCA_Q_MGR_IDENTIFIER."""
        return str(self._ask("identifier"))

    def connections(self) -> list[dict[str, Any]]:
        """Who is connected, with what was said when connecting: channel, connection_name, cipher_spec, user ..."""
        return list(self._ask("connections"))

    def calls_under_way(self) -> int:
        """How many calls have come and are not answered: gets that wait, and what a fault delays."""
        return int(self._ask("calls_under_way"))

    def calls(self) -> Counter[str]:
        """How many calls there were, by verb; 0 of one that has not come."""
        return Counter(self._ask("calls"))

    def reasons(self) -> Counter[int]:
        """How many calls ended with each reason."""
        return Counter({int(reason): count for reason, count in self._ask("reasons").items()})

    def trace(self) -> list[dict[str, Any]]:
        """The last calls in order: at_s, connection, verb, object_name, comp_code, reason."""
        return list(self._ask("trace"))

    def forget_calls(self) -> None:
        """Empties the counters and the trace."""
        self._ask("forget_calls")

    def _ask(self, command: str, **arguments: Any) -> Any:
        self._socket.sendall(json.dumps({"command": command, "arguments": arguments}).encode() + b"\n")
        answer = json.loads(self._answers.readline())
        if "error" in answer:
            raise ControlError(answer["error"])
        return answer["answer"]
