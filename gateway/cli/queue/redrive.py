"""`rfhbridge queue redrive`: dead letters go back to their destinations."""

import time
from collections.abc import Mapping
from typing import Annotated

import typer

from gateway.cli.application import ExitCode
from gateway.cli.channel import statuses
from gateway.cli.connection import connected
from gateway.cli.durations import point_in_time
from gateway.cli.settings_options import ConfigOption, DataOption, JsonOption, folder_with_store
from gateway.cli.terminal import Json, counted, write_json, write_line
from gateway.operations.redrive import MAXIMUM_NAMED, Redrive, RedriveResult, RedriveSelection
from mappings.topics.topics import TopicError, check_mqtt_topic_filter
from mq_adapters.queue_manager import QueueAdministration
from mq_adapters.system_queues import DEAD_LETTER_QUEUE


def topic_filter(text: str) -> str:
    """An MQTT topic filter, checked."""
    try:
        check_mqtt_topic_filter(text)
    except TopicError as error:
        raise typer.BadParameter(str(error)) from None
    return text


def redrive(
    name: Annotated[str, typer.Option("--queue", metavar="QUEUE", help="Dead-letter queue.")] = DEAD_LETTER_QUEUE,
    reason: Annotated[
        int | None,
        typer.Option("--reason", metavar="N", min=1, help="Only dead letters with this reason code (MQRC or MQRCCF)."),
    ] = None,
    client: Annotated[
        str | None,
        typer.Option("--client", metavar="CLIENT", help="Only dead letters whose header names this MQTT client."),
    ] = None,
    topics: Annotated[
        str | None,
        typer.Option(
            "--topic", parser=topic_filter, metavar="FILTER", help="Only dead letters with a topic that matches."
        ),
    ] = None,
    since_us: Annotated[
        int | None,
        typer.Option(
            "--since",
            parser=point_in_time,
            metavar="TIME",
            help="Only dead letters from this time on (ISO 8601, UTC without a zone).",
        ),
    ] = None,
    until_us: Annotated[
        int | None,
        typer.Option("--until", parser=point_in_time, metavar="TIME", help="Only dead letters before this time."),
    ] = None,
    dry: Annotated[bool, typer.Option("--dry-run", help="Only show which dead letters would go back.")] = False,
    as_json: JsonOption = False,
    data: DataOption = None,
    config: ConfigOption = None,
) -> None:
    """Put dead letters back on the queues where they were going.

    Each goes back once, in one unit of work. If the broker refuses it again, or nobody would get it, it stays a dead
    letter, and the command says why. Dead letters for a target or for a client need a running gateway. --client finds
    only dead letters for a target, because the others name no client. Exit code 1 if some cannot go back.
    """
    selection = RedriveSelection(
        reason_code=reason, client=client, topic_filter=topics, since_us=since_us, until_us=until_us
    )
    folder = folder_with_store(config, data)
    with connected(folder) as queue_manager:
        result = _run(queue_manager, name, selection, dry=dry)
    if as_json:
        write_json(_result_json(result, dry=dry))
    else:
        _write_result(result, dry=dry)
    if result.refused:
        raise typer.Exit(ExitCode.FAILED)


def _run(queue_manager: QueueAdministration, name: str, selection: RedriveSelection, *, dry: bool) -> RedriveResult:
    """Puts dead letters back, with a progress bar on a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    work = Redrive(queue_manager, name, ways=_ways(queue_manager), now_us=lambda: time.time_ns() // 1000)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("looking" if dry else "putting back", total=queue_manager.depth(name))
        return work.run(selection, dry=dry, advance=lambda: progress.advance(task))


def _ways(queue_manager: QueueAdministration) -> Mapping[str, tuple[str, ...]]:
    """The transmission queues to the queue manager of each target, which a running gateway knows."""
    ways: dict[str, dict[int, str]] = {}
    for status in statuses(queue_manager, "*"):
        if status["type"] == "outbound" and status["queue_manager"]:
            shard = int(str(status["channel"]).rpartition(".")[2])
            ways.setdefault(str(status["queue_manager"]), {})[shard] = str(status["queue"])
    return {there: tuple(queues[shard] for shard in sorted(queues)) for there, queues in ways.items()}


def _result_json(result: RedriveResult, *, dry: bool) -> Json:
    return {
        "dry_run": dry,
        "put_back": result.put_back,
        "passed_over": result.passed_over,
        "refused": result.refused,
        "queues": dict(sorted(result.queues.items())),
        "reasons": [{"msg_id": msg_id.hex(), "reason": reason} for msg_id, reason in result.reasons],
    }


def _write_result(result: RedriveResult, *, dry: bool) -> None:
    for msg_id, reason in result.reasons:
        write_line(f"stays {msg_id.hex()}: {reason}")
    if result.refused > MAXIMUM_NAMED:
        write_line(f"and {result.refused - MAXIMUM_NAMED} more stay")
    for queue_name, number in sorted(result.queues.items()):
        write_line(f"{queue_name}: {counted(number, 'message')}")
    verb = "would go back" if dry else "put back"
    write_line(f"{verb}: {result.put_back}, cannot go back: {result.refused}, passed over: {result.passed_over}")
