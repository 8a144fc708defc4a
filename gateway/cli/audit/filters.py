"""The search of `audit explain` and `audit show`: their common options, and names under a key."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gateway.cli.application import CommandFailed
from gateway.cli.durations import point_in_time
from gateway.cli.queue.redrive import topic_filter
from gateway.cli.settings_options import folder_here
from mappings.topics.wildcards import Scheme, matches
from spark_audit.options import PERSONAL_KEY
from spark_audit.personal import PersonalKey, UnusablePersonalKey

if TYPE_CHECKING:
    from spark_audit.fates import Wanted
    from spark_audit.segment_index import SegmentIndex

_WILDCARDS: Final = ("+", "#")

ClientOption = Annotated[
    str, typer.Option("--client", metavar="CLIENT", help="Only what this client published or is sent.")
]
TopicOption = Annotated[
    str | None,
    typer.Option("--topic", metavar="FILTER", parser=topic_filter, help="Only these topics, for example plant/#."),
]
SinceOption = Annotated[
    int | None,
    typer.Option("--since", metavar="TIME", parser=point_in_time, help="Only from this time on (ISO 8601)."),
]
UntilOption = Annotated[
    int | None,
    typer.Option("--until", metavar="TIME", parser=point_in_time, help="Only before this time (ISO 8601)."),
]
IndexOption = Annotated[
    Path | None,
    typer.Option(
        "--index",
        parser=folder_here,
        metavar="DIR",
        help="Folder of your own, where the command keeps what each closed file holds, so that the next search opens "
        "only the files concerned.",
    ),
]
PersonalKeyOption = Annotated[Path | None, typer.Option(PERSONAL_KEY.flag, metavar="FILE", help=PERSONAL_KEY.help)]


def personal_key_in(path: Path | None) -> PersonalKey | None:
    """The key in a file; None without a file. Raises CommandFailed."""
    if path is None:
        return None
    try:
        return PersonalKey.read(path)
    except UnusablePersonalKey as error:
        raise CommandFailed(f"{path}: {error}") from None


def index_in(folder: Path | None) -> "SegmentIndex | None":
    """The index in a folder; None without a folder. Raises CommandFailed."""
    if folder is None:
        return None
    from spark_audit.segment_index import SegmentIndex, UnsafeIndex

    try:
        return SegmentIndex(folder)
    except UnsafeIndex as error:
        raise CommandFailed(f"{error} (name a folder that only you may write)") from None


def wanted_of(client: str, topic: str, since_us: int, until_us: int, key: PersonalKey | None) -> "Wanted":
    """What to search for. With a key, names are also compared with their keyed hashes."""
    from spark_audit.fates import Wanted
    from spark_audit.segment_index import topic_beginning

    if until_us and since_us >= until_us:
        raise typer.BadParameter("--until must be later than --since")
    hashed = {key.name(topic)} if key is not None and topic and not _has_wildcards(topic) else set()
    beginning = topic_beginning(topic) if topic else None
    return Wanted(
        clients=frozenset({client, key.name(client)} if key is not None and client else {client} - {""}),
        matches=partial(_matches, topic, frozenset(hashed)) if topic else None,
        topic_beginnings=None if beginning is None else frozenset({beginning, *hashed}),
        since_us=since_us,
        until_us=until_us,
    )


def hidden_names(
    client: str, topic: str, key: PersonalKey | None, *, has_keyed_clients: bool, has_keyed_topics: bool
) -> list[str]:
    """Notes on names that could not be compared, because the trail has them as keyed hashes."""
    hidden = []
    if client and has_keyed_clients and key is None:
        hidden.append("the trail has clients as keyed hashes: give the key with --personal-key")
    if topic and has_keyed_topics and key is None:
        hidden.append("the trail has topics as keyed hashes: give the key with --personal-key")
    elif topic and has_keyed_topics and _has_wildcards(topic):
        hidden.append("the trail has topics as keyed hashes, which no wildcard can match: give a whole topic")
    return hidden


def _matches(topic_filter: str, hashes: frozenset[str], topic: str) -> bool:
    return topic in hashes or matches(topic_filter, topic, Scheme.MQTT)


def _has_wildcards(topic: str) -> bool:
    return any(level in _WILDCARDS for level in topic.split("/"))
