"""`rfhbridge balance`: whether every message that came in went out, waits, or ended for a reason."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gateway.cli.application import CommandFailed, ExitCode, NotEvaluable
from gateway.cli.settings_options import ConfigOption, DataOption, folder_with_store, settings_for
from gateway.cli.terminal import Json, write_json, write_line, write_table
from mq_adapters.reasons import StoreError

if TYPE_CHECKING:
    from mq_adapters.embedded.balance import Balance, Messages, PublicationBalance, QueueBalance

#: Columns that are shown only if a line has a number in them.
_RARE: Final = frozenset(
    {"begin", "forwarded", "redriven", "expired", "cleared", "dead_lettered", "dropped_by_rule", "session_ended"}
    | {"gone_at_a_stop"}
)


def balance(
    data: DataOption = None,
    config: ConfigOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with every counter.")] = False,
) -> None:
    """Show the fate of all messages, and how many are missing.

    The command works with or without a running gateway. Exit code 0: it adds up; 1: it does not add up, or the store
    went back to an earlier state; 2: there is nothing to judge.
    """
    found = _read(data, config)
    _check_not_gone_back(settings_for(config, data).data)
    if as_json:
        write_json(_as_json(found))
    else:
        _show(found)
    if not found.adds_up:
        raise typer.Exit(ExitCode.FAILED)


def _read(data: DataOption, config: ConfigOption) -> "Balance":
    """Reads the balance. Raises NotEvaluable if there is none."""
    from mq_adapters.embedded.balance import read_balance

    try:
        found = read_balance(folder := folder_with_store(config, data))
    except (CommandFailed, StoreError) as error:
        raise NotEvaluable(str(error)) from error
    if found is None:
        raise NotEvaluable(f"the store in {folder} counts nothing yet (start a gateway of this version on it once)")
    return found


def _check_not_gone_back(folder: Path) -> None:
    """Raises CommandFailed if the store went back. Its counters went back with its messages, so they always add up."""
    from mq_adapters.embedded.store.verification import contradictions_of

    found, _ = contradictions_of(folder)
    if found:
        raise CommandFailed(
            f"the store went back, and its counters with it: {'; '.join(found)} (see 'rfhbridge queue verify')"
        )


# -- for people --------------------------------------------------------------------------------------------------------


def _show(found: "Balance") -> None:
    lines = [line for queue in found.queues for line in _lines(queue) if _has_any(line[2])] + _lines(found.in_all)
    names = [name for name in lines[0][2].names() if name not in _RARE or any(_of(each[2], name) for each in lines)]
    rows = [
        (name, kind, *(str(_of(messages, column)) for column in names), str(messages.difference))
        for name, kind, messages in lines
    ]
    write_table(("queue", "messages", *map(_words, names), "missing"), rows)
    write_line()
    publications = found.publications
    columns = [name for name in publications.names() if name in _ALWAYS or _of(publications, name)]
    row = [str(_of(publications, name)) for name in columns]
    write_table(("publications", *map(_words, columns), "missing"), [("MQTT", *row, str(publications.difference))])
    write_line()
    write_line(_verdict(found))


def _lines(queue: "QueueBalance") -> list[tuple[str, str, "Messages"]]:
    return [(queue.name, "stored", queue.persistent), (queue.name, "in memory", queue.not_persistent)]


#: Counters of publications that are shown even if they are 0.
_ALWAYS: Final = frozenset({"received", "published", "refused", "held"})


def _has_any(messages: "Messages") -> bool:
    return bool(messages.difference) or any(_of(messages, name) for name in messages.names())


def _of(line: "Messages | PublicationBalance", name: str) -> int:
    number: int = getattr(line, name)
    return number


def _words(name: str) -> str:
    return name.replace("_", " ")


def _verdict(found: "Balance") -> str:
    if found.adds_up:
        return "It adds up: no message and no publication is missing."
    wrong = [queue.name for queue in found.queues if not queue.adds_up]
    parts = [f"{found.in_all.together.difference} messages in all, on {', '.join(wrong)}"] if wrong else []
    if found.publications.difference:
        parts.append(f"{found.publications.difference} publications")
    return f"It does not add up. Missing (below 0: too many): {'; '.join(parts)}."


# -- for programs ------------------------------------------------------------------------------------------------------


def _as_json(found: "Balance") -> Json:
    publications = found.publications
    return {
        "adds_up": found.adds_up,
        "queues": [_queue_json(queue) for queue in found.queues],
        "in_all": _queue_json(found.in_all),
        "publications": {
            **{name: _of(publications, name) for name in publications.names()},
            "difference": publications.difference,
        },
    }


def _queue_json(queue: "QueueBalance") -> dict[str, Json]:
    return {
        "name": queue.name,
        "persistent": _messages_json(queue.persistent),
        "not_persistent": _messages_json(queue.not_persistent),
    }


def _messages_json(messages: "Messages") -> dict[str, Json]:
    return {**{name: _of(messages, name) for name in messages.names()}, "difference": messages.difference}
