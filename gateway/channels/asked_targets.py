"""Targets show whether a store went back: their state queues are read before the gateway takes anything.

A state queue holds the gateway's progress at its last delivery there. So it shows if the whole data folder went back,
which no file in that folder can show. A target has a short time to answer (`ask_at_start_s`). If it does not, its
channel asks later, and then only that channel stops (mq_adapters/channel/in_doubt.py).
"""

import asyncio
import contextlib
import logging
from collections.abc import Iterable
from pathlib import Path

from gateway.channels.protocol import LONGEST_LINE_BYTES, ProcessSettings, object_of
from gateway.channels.target import known_of
from gateway.config import Settings, TargetSettings
from mq_adapters.channel.in_doubt import went_back
from mq_adapters.channel.state_message import LocalState, MalformedState, RemoteState, read_local_state
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.store.reach import told_time
from mq_adapters.embedded.store.rollback_guard import StoreWentBack
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.system_queues import CHANNEL_STATE_QUEUE

_log = logging.getLogger(__name__)


async def check_targets(engine: Engine, settings: Settings, *, command: tuple[str, ...], stop: asyncio.Event) -> None:
    """Compares an open store with the targets that answer in time; changes nothing here or there.

    Raises StoreWentBack, StoreError. `command` starts a channel process; `stop` ends the asking.
    """
    asking = asyncio.create_task(_ask_all(engine, settings, command))
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((asking, stopping), return_when=asyncio.FIRST_COMPLETED)
        if asking.done() and (findings := asking.result()):
            raise StoreWentBack(f"open {settings.data}", findings)
    finally:
        for task in (asking, stopping):
            task.cancel()
        await asyncio.gather(asking, stopping, return_exceptions=True)


async def _ask_all(engine: Engine, settings: Settings, command: tuple[str, ...]) -> tuple[str, ...]:
    """The findings, in sentences."""
    asked = [target for target in settings.target if target.ask_at_start_s]
    answers = await asyncio.gather(*(_ask(_questions(engine, settings, target), command) for target in asked))
    states = _local_states(engine)
    return tuple(
        sentence
        for target, lines in zip(asked, answers, strict=True)
        for sentence in _findings(engine, states, target, lines)
    )


def _questions(engine: Engine, settings: Settings, target: TargetSettings) -> ProcessSettings:
    return ProcessSettings(
        data=str(Path(settings.data).absolute()),
        target=target.from_any_folder(),
        shards=max(target.shards, known_of(engine, target).shards),
        subscriber_queue="",
        reply_queue="",
        publication_queues=(),
        stopped=(),
        log_level=settings.log.level,
        log_format=settings.log.format,
        now_us=engine.now_us(),
        ask_s=target.ask_at_start_s,
    )


async def _ask(questions: ProcessSettings, command: tuple[str, ...]) -> list[bytes]:
    """The lines of an asking process that came in time."""
    lines: list[bytes] = []
    name = questions.target.name
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LONGEST_LINE_BYTES,
            cwd=questions.data,
            start_new_session=True,
        )
    except OSError as error:
        _log.warning("target not asked target=%s reason=%s", name, str(error))
        return lines
    assert process.stdin is not None, "it is a pipe"
    process.stdin.write(questions.to_line())
    try:
        async with asyncio.timeout(questions.ask_s):
            await _read(process, lines)
    except TimeoutError:
        _log.warning("target not asked target=%s reason='no answer within %s s'", name, questions.ask_s)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    await process.wait()
    return lines


async def _read(process: asyncio.subprocess.Process, lines: list[bytes]) -> None:
    assert process.stdout is not None, "it is a pipe"
    with contextlib.suppress(asyncio.LimitOverrunError, asyncio.IncompleteReadError):
        while True:
            lines.append(await process.stdout.readuntil())


def _local_states(engine: Engine) -> dict[str, LocalState]:
    """The states in the store, by channel. If one cannot be read, its channel reports that."""
    states: dict[str, LocalState] = {}
    if CHANNEL_STATE_QUEUE in engine.objects.queues:
        for message in engine.browse(engine.queue(CHANNEL_STATE_QUEUE)):
            with contextlib.suppress(MalformedState):
                state = read_local_state(message)
                states[state.channel] = state
    return states


def _findings(
    engine: Engine, states: dict[str, LocalState], target: TargetSettings, lines: Iterable[bytes]
) -> Iterable[str]:
    for line in lines:
        try:
            said = object_of(line)
            channel, identifier, bodies = said["channel"], said["identifier"], said["messages"]
            found = [Message(MessageDescriptor(), body.encode("latin-1")) for body in bodies]
        except (ValueError, KeyError, TypeError, AttributeError):  # a library may print something
            continue
        local = states.get(channel) or LocalState(channel=channel, gateway=engine.incarnation)
        there = went_back(local, found, queue_manager=identifier, next_sequence=engine.next_sequence)
        if there is not None:
            yield _told(engine, local, there, target)


def _told(engine: Engine, local: LocalState, there: RemoteState, target: TargetSettings) -> str:
    newest = f", of {told_time(there.newest_us)}" if there.newest_us else ""
    return (
        f"target {target.name} ({there.queue_manager}) has batch {there.batch.number} of channel {local.channel}, up to"
        f" message {there.last_sequence}{newest}, and the store knows batch {local.batch} and messages below"
        f" {engine.next_sequence}: all of the data folder is older than that (to go on without what is missing, say"
        " accept-rollback --force, and nothing is sent again)"
    )
