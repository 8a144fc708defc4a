"""`rfhbridge check`: the configuration, the files that it names and the packaged tables, before anything starts."""

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.application import ExitCode
from gateway.cli.configuration_warnings import settings_for_nobody
from gateway.cli.configured_files import configured_files, warnings_about_files
from gateway.cli.refused_clients import refused_clients
from gateway.cli.risks import FoundRisk, Subject, found_risks
from gateway.cli.settings_options import ConfigOption
from gateway.cli.terminal import Json, write_json, write_line
from gateway.config import Settings, example_toml
from mq_adapters.reasons import QueueManagerError, StoreError

if TYPE_CHECKING:
    from gateway.channels.trial import Trial


def check(
    config: ConfigOption = None,
    example: Annotated[bool, typer.Option("--example", help="Print every key with its default, and end.")] = False,
    connect: Annotated[
        bool,
        typer.Option("--connect", help="Connect to each target too, and open the queues that the gateway needs there."),
    ] = False,
    timeout_s: Annotated[
        int,
        typer.Option(
            "--timeout", metavar="SECONDS", min=1, max=3600, help="Time limit for each target with --connect."
        ),
    ] = 30,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Name every risk, by its name; exit code 1 if there is one."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the effective settings as one JSON object.")] = False,
) -> None:
    """Validate configuration and mapping tables.

    The command also reads the files that the configuration names: users, access list, keys of tokens, certificates of
    listeners, keys of the trail, passwords of targets. Each problem is a line with its place in the file. An unknown
    key is a problem, and the line names the nearest known key; target#2.name is the name of the second target. Exit
    code 1 if there is a problem.

    The command warns of settings that work but may be mistakes: a missing client library of IBM MQ, a route that nobody
    can subscribe to, a client whose identifier belongs to another user. It also warns of risks, such as a port that is
    open to everybody, or a key that others may read. With --strict a risk gives exit code 1.

    --connect may run beside the gateway: it takes, puts and alters nothing at a target, and keeps no queue from others.
    """
    if example:
        sys.stdout.write(example_toml())
        return
    settings = Settings.load(config)
    found = configured_files(settings)
    risks = found_risks(Subject(settings=settings, file=config), strict=strict)
    warnings = [
        *settings_for_nobody(settings),
        *warnings_about_files(settings),
        *_routes_without_subscribers(settings),
        *_reserved_in_store(settings),
        *refused_clients(settings),
        *_missing_extras(settings),
        *(_missing_libraries(settings) if not connect else ()),
    ]
    trials = _trials(settings, timeout_s) if connect else []
    shown = [str(trial) for trial in trials] or ["targets: the configuration names none to connect to"] * connect
    if as_json:
        tried = {"targets": [trial.as_json() for trial in trials]} if connect else {}
        write_json(_as_json(settings, warnings, risks) | tried)
    else:
        told = [f"risk {each.risk.name}: {each.sentence}" if strict else f"warning: {each.sentence}" for each in risks]
        _show(config, settings, [*found, *(f"warning: {warning}" for warning in warnings), *told, *shown])
    if not all(trial.succeeded for trial in trials) or (strict and risks):
        raise typer.Exit(ExitCode.FAILED)


def _as_json(settings: Settings, warnings: list[str], risks: list[FoundRisk]) -> dict[str, Json]:
    from mappings.table import TABLE_VERSION

    return {
        "settings": settings.model_dump(mode="json", by_alias=True),
        "configuration_sha256": settings.configuration_sha256,
        "table_version": TABLE_VERSION,
        "warnings": list[Json]([*warnings, *(each.sentence for each in risks)]),
        "risks": [
            {"name": each.risk.name, "risk": each.sentence, "what_to_do": each.risk.what_to_do} for each in risks
        ],
    }


def _show(config: Path | None, settings: Settings, lines: list[str]) -> None:
    from mappings.table import FIELD_ROWS, OPTION_ROWS, TABLE_VERSION

    source = "the defaults" if config is None else str(config)
    write_line(f"configuration: {source}, valid, SHA-256 {settings.configuration_sha256}")
    for line in lines:
        write_line(line)
    write_line(f"mapping tables: version {TABLE_VERSION}, {len(FIELD_ROWS)} fields, {len(OPTION_ROWS)} options, valid")


def _trials(settings: Settings, timeout_s: int) -> "list[Trial]":
    from gateway.channels.trial import tried

    return tried(settings, timeout_s=timeout_s)


def _missing_extras(settings: Settings) -> Iterator[str]:
    """A sentence for each part of the trail whose library is not installed."""
    for witness in settings.audit.witness:
        if witness.type == "s3" and find_spec("botocore") is None:
            how = "pip install '.[s3]' in a clone of the repository"
            yield f"witness {witness.name}: botocore is not installed ({how})"
    if settings.audit.signing_token.type == "pkcs11" and find_spec("pkcs11") is None:
        how = "pip install '.[pkcs11]' in a clone of the repository"
        yield f"audit.signing_token: python-pkcs11 is not installed ({how})"


def _missing_libraries(settings: Settings) -> Iterator[str]:
    """A sentence for each package of a target that does not load."""
    from mq_adapters.ibm_mq.binding import load

    for binding in dict.fromkeys(target.binding for target in settings.target):
        names = ", ".join(target.name for target in settings.target if target.binding == binding)
        try:
            load(binding)
        except QueueManagerError as error:
            yield f"target {names}: {error}"


def _routes_without_subscribers(settings: Settings) -> list[str]:
    """Routes that publications can take, but whose topics no client can subscribe to, not even with `#`."""
    from gateway.config.routes import Routes

    return [
        f"route to {destination.target.name}, stream {destination.stream}: every SUBSCRIBE that concerns its topics is"
        f" refused: {destination.why_nobody_can_subscribe}"
        for destination in Routes(settings.routes, settings.target).destinations
        if destination.target is not None and destination.why_nobody_can_subscribe
    ]


def _reserved_in_store(settings: Settings) -> list[str]:
    """Subscriptions and retained messages of the store (if there is one) whose topics are reserved."""
    from gateway.access.dollar_topics import DollarTopics
    from gateway.bridge.sessions.session_store import SessionRow, SubscriptionRow
    from gateway.mqtt.topics import share_of
    from gateway.operations.sweep import groups_of
    from mq_adapters.broker.topic_spaces import BrokerDialect, TopicSpaces
    from mq_adapters.embedded.socket.snapshot import keys_of, states_of
    from mq_adapters.embedded.store.store import FILE_NAME
    from mq_adapters.embedded.unit_of_work import StateKind

    if not (settings.data / FILE_NAME).is_file():
        return []
    space = TopicSpaces(dialect=BrokerDialect(settings.broker.dialect)).space(settings.publish.stream)
    try:
        _, rows = states_of(settings.data, StateKind.SESSION)
        sessions = [(key.decode(), SessionRow.unpack(row)) for key, row in rows]
        subscriptions = [(client, asked) for client, row in sessions for asked in row.subscriptions]
        client_of = {row.epoch: client for client, row in sessions}
        for key in keys_of(settings.data, StateKind.SESSION_SUBSCRIPTION):
            epoch, asked = SubscriptionRow.read_key(key)
            subscriptions.append((client_of[epoch], asked))
        names = [key.decode().split("\0") for key in keys_of(settings.data, StateKind.BROKER_RETAINED)]
        shares = [(group.client, share) for group in groups_of(settings.data) if (share := share_of(group.client))]
    except StoreError as error:
        return [f"the store could not be searched for reserved topics: {error}"]
    subscriptions += [(name, share.topic_filter) for name, share in shares]
    retained = [topic for where, topic, *_ in names if where == space]
    return list(DollarTopics.of(settings.mqtt).cautions(subscriptions, retained))
