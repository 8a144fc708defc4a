"""The stand-in's control socket: JSON lines, a request each, answered by a line each.

    {"command": "plant", "arguments": {"verb": "MQCMIT", "reason": 2009, "moment": "after"}}
    {"answer": null}      or      {"error": "what was wrong"}

`control.py` is its client.
"""

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Final

from mq_adapters.attributes import ATTRIBUTES, ObjectType
from mq_adapters.embedded.application import Application
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqsc.command_server import CommandServer
from mq_adapters.mqsc import MqscSyntaxError, commands_of, read_command
from mq_adapters.system_queues import SYSTEM_QUEUES, is_closed_to_applications
from tests.ibm_mq_stand_in.faults import Fault
from tests.ibm_mq_stand_in.state import State, Switches

_SHARE: Final = re.compile(r"\s(NO)?SHARE\b(?!\()", re.IGNORECASE)
_DEFSOPT: Final = re.compile(r"\sDEFSOPT\(\s*(SHARED|EXCL)\s*\)", re.IGNORECASE)


class ControlServer:
    """Carries out what tests ask for."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._commands: dict[str, Callable[..., Any]] = {
            "switch": self._switch,
            "plant": self._plant,
            "clear_faults": self._clear_faults,
            "hasten": self._state.hasten,
            "drop_connections": self._drop_connections,
            "mqsc": self._mqsc,
            "connections": self._connections,
            "calls_under_way": lambda: sum(link.is_in_call for link in self._state.links),
            "calls": lambda: dict(self._state.faults.calls),
            "reasons": lambda: {str(reason): count for reason, count in self._state.faults.reasons.items()},
            "trace": lambda: [asdict(call) for call in self._state.faults.trace],
            "forget_calls": self._forget_calls,
            "reset": self._reset,
            "identifier": lambda: self._state.identifier,
        }

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One test's connection."""
        while line := await reader.readline():
            writer.write(json.dumps(self._answer(line)).encode() + b"\n")
        writer.close()

    def _answer(self, line: bytes) -> dict[str, object]:
        try:
            request = json.loads(line)
            return {"answer": self._commands[request["command"]](**request.get("arguments", {}))}
        except Exception as error:  # a test that asks for what there is not shall read why
            return {"error": f"{type(error).__name__}: {error}"}

    def _switch(self, **changes: object) -> None:
        self._state.switches.change(changes)
        self._state.wake_waiting_gets()

    def _plant(self, *, contains: str = "", **arguments: Any) -> None:
        self._state.faults.planted.append(Fault(contains=bytes.fromhex(contains), **arguments))

    def _clear_faults(self) -> list[int]:
        """Forgets all faults; returns how often each has struck."""
        struck = [fault.struck for fault in self._state.faults.planted]
        self._state.faults.planted.clear()
        return struck

    def _forget_calls(self) -> None:
        faults = self._state.faults
        faults.calls.clear()
        faults.reasons.clear()
        faults.trace.clear()

    def _drop_connections(self, linger_s: float) -> int:
        """Breaks every connection; returns how many there were."""
        links = tuple(self._state.links)
        for link in links:
            link.drop(linger_s)
        return len(links)

    def _reset(self) -> None:
        """As it was when it was new, but for subscriptions and retained publications, which the broker keeps."""
        self._drop_connections(0)
        self._clear_faults()
        self._forget_calls()
        self._state.switches = Switches()
        self._state.open_queues.forget_sharing()
        reset_objects(self._state.engine)

    def _connections(self) -> list[dict[str, object]]:
        """Who is connected, with all that the program said when it connected, but for its password."""
        return [
            {"number": link.number, **asdict(link.calls.program), "password": "***"}
            for link in sorted(self._state.links, key=lambda each: each.number)
            if link.calls is not None
        ]

    def _mqsc(self, lines: list[str]) -> list[list[object]]:
        """Carries out MQSC; each command's answer is whether it succeeded, and its lines."""
        answers = [self._carry_out(command) for command in commands_of(lines)]
        self._state.wake_waiting_gets()
        return answers

    def _carry_out(self, command: str) -> list[object]:
        """One command. SHARE, NOSHARE and DEFSOPT are kept here: the embedded queue manager has no such attributes."""
        shares, opens = _SHARE.search(command), _DEFSOPT.search(command)
        answer = CommandServer(self._state.engine).execute(_DEFSOPT.sub("", _SHARE.sub("", command)))
        changes: dict[str, bool] = {}
        if shares is not None:
            changes["is_shareable"] = shares[1] is None
        if opens is not None:
            changes["is_exclusive_by_default"] = opens[1].upper() == "EXCL"
        if changes and answer.succeeded:
            self._state.open_queues.set_sharing(_name_in(command), **changes)
        return [answer.succeeded, list(answer.lines)]


def reset_objects(engine: Engine) -> None:
    """Deletes every object that was defined, with its messages, and the messages on the standard queues."""
    application = Application(engine)
    for queue in engine.queues():
        if is_closed_to_applications(queue.name):
            continue  # nothing here puts audit notes
        if queue.name in SYSTEM_QUEUES or queue.handler is not None:
            application.clear_some(queue.name, lambda _count: None)
        else:
            engine.objects.delete_queue(queue)
    kinds = set(ObjectType) - {ObjectType.QLOCAL, ObjectType.QMGR}
    for definition in engine.objects.all(kinds):
        engine.objects.delete(definition)
    attributes = ATTRIBUTES[ObjectType.QMGR]
    said = engine.objects.queue_manager.said
    engine.objects.alter_queue_manager({keyword: attributes[keyword].default for keyword in said})


def _name_in(command: str) -> str:
    """The name of the object that a command is about."""
    try:
        return read_command(command).target.text
    except MqscSyntaxError as error:
        raise ValueError(str(error)) from error
