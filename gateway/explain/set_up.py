"""The MQSC that a target needs: channel, queues, streams, topics and the authority of the gateway's user.

The commands may be run again, because REPLACE keeps the messages of a queue. They are for IBM MQ 7 and later. The
topics of a Message Broker have access control lists of their own, so no TOPIC object is defined for it. Sources: IBM
MQ, "MQSC commands reference", "Starting queued publish/subscribe", "Adding a stream", "SET AUTHREC"; the attributes of
the state queue from the exactly-once channel (mq_adapters/channel).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from gateway.config import RouteSettings, TargetSettings
from gateway.config.routes import route_of
from mq_adapters.system_queues import DEAD_LETTER_QUEUE, DEFAULT_STREAM

#: The user in SET AUTHREC if the target names none: the operating system user that runs the gateway.
DEFAULT_USER: Final = "rfhbridge"
#: Streams that every queue manager has in SYSTEM.QPUBSUB.QUEUE.NAMELIST.
_STANDARD_STREAMS: Final = (DEFAULT_STREAM, "SYSTEM.BROKER.ADMIN.STREAM")
_LINE_CHARACTERS: Final = 72
_INDENT: Final = "       "
_BACK_OUT_THRESHOLD: Final = 5
_MAXIMUM_DEPTH: Final = 999_999_999


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Commands that belong together, and their purpose."""

    title: str
    commands: tuple[str, ...] = ()


def set_up(target: TargetSettings, routes: Iterable[RouteSettings], *, digest_queue: str = "") -> tuple[Section, ...]:
    """The sections for one target in the order to run them; `routes` are those to it.

    `digest_queue` is the queue there for the trail's digests, "" for none.
    """
    own = tuple(routes)
    sections = [
        _publish_subscribe(),
        *([_channel(target)] if target.mode == "client" and not target.ccdt_url else []),
        _gateway_queues(target),
        *_streams(target, own),
        *_topics(target, own),
        *([_digests(digest_queue)] if digest_queue else []),
        _authority(target, own, digest_queue),
    ]
    return tuple(section for section in sections if section.commands)


def mqsc_text(sections: Iterable[Section], *, heading: str) -> str:
    """Sections as a file for runmqsc: comments begin with an asterisk, a command goes on after a plus."""
    lines = [f"* {heading}"]
    for section in sections:
        lines += ["", *(f"* {line}" for line in section.title.splitlines())]
        for command in section.commands:
            lines += _folded(command)
    return "\n".join(lines) + "\n"


def heading(target: TargetSettings) -> str:
    """The head of the file: its purpose."""
    return f"What {target.queue_manager or 'the queue manager'} needs for rfhbridge, target {target.name}."


def state_queues(target: TargetSettings) -> tuple[str, ...]:
    """The state queue of each shard."""
    return tuple(f"{target.state_queue}.{shard}" for shard in range(target.shards))


def topic_objects(target: TargetSettings, routes: Iterable[RouteSettings]) -> tuple[tuple[str, str], ...]:
    """Name and topic string of the TOPIC object that stands over each route's topics.

    The empty topic string is that of SYSTEM.BASE.TOPIC, which is there always. A stream of its own has its name in
    front of its topics, and a TOPIC object of that name. In a Message Broker there are none.
    """
    found: dict[str, str] = {}
    for route in routes if target.streams != "message_broker" else ():
        if route.stream != DEFAULT_STREAM:
            found.setdefault(route.stream, route.stream)
            continue
        for topic_filter in route.topics:
            topic_string = fixed_levels(topic_filter)
            if topic_string not in found.values():
                name = f"RFHBRIDGE.{target.name}.{len(found) + 1}" if topic_string else "SYSTEM.BASE.TOPIC"
                found[name] = topic_string
    return tuple(found.items())


def fixed_levels(topic_filter: str) -> str:
    """The levels of a filter before its first wildcard: `plant/boiler` of `plant/boiler/+/#`."""
    levels = topic_filter.split("/")
    first = next((index for index, level in enumerate(levels) if level in ("+", "#")), len(levels))
    return "/".join(levels[:first])


# -- sections ----------------------------------------------------------------------------------------------------------


def _publish_subscribe() -> Section:
    return Section(
        title="Queued publish/subscribe must run; without it no command is ever answered.",
        commands=("ALTER QMGR PSMODE(ENABLED)", "DISPLAY PUBSUB"),
    )


def _channel(target: TargetSettings) -> Section:
    security = f" SSLCIPH({target.cipher}) SSLCAUTH(OPTIONAL)" if target.cipher else ""
    return Section(
        title="The gateway's channel: one conversation a socket, a heartbeat that finds a dead network.\n"
        "Narrow ADDRESS('*') to the gateway's own address.",
        commands=(
            f"DEFINE CHANNEL({target.channel}) CHLTYPE(SVRCONN) TRPTYPE(TCP) "
            f"DESCR('rfhbridge') SHARECNV(1) HBINT(30){security} REPLACE",
            f"SET CHLAUTH({target.channel}) TYPE(ADDRESSMAP) ADDRESS('*') USERSRC(CHANNEL) "
            "CHCKCLNT(REQUIRED) ACTION(REPLACE)",
        ),
    )


def _gateway_queues(target: TargetSettings) -> Section:
    return Section(
        title="The gateway's own queues: one message on each state queue says what was delivered.\n"
        "Never clear a state queue while the gateway has messages to deliver.",
        commands=_own_queues(target),
    )


def _own_queues(target: TargetSettings) -> tuple[str, ...]:
    back_out = _back_out_queue(target)
    arrivals = (
        f"MSGDLVSQ(FIFO) DEFSOPT(EXCL) NOSHARE MAXDEPTH({_MAXIMUM_DEPTH}) BOTHRESH({_BACK_OUT_THRESHOLD}) "
        f"BOQNAME({back_out}) REPLACE"
    )
    states = (
        f"DEFINE QLOCAL({name}) DESCR('rfhbridge: how far the gateway has come') DEFPSIST(YES) "
        "DEFSOPT(EXCL) NOSHARE BOTHRESH(0) REPLACE"
        for name in state_queues(target)
    )
    return (
        *states,
        f"DEFINE QLOCAL({back_out}) DESCR('rfhbridge: messages that could not be taken') REPLACE",
        f"DEFINE QLOCAL({target.subscriber_queue}) DESCR('rfhbridge: publications') {arrivals}",
        f"DEFINE QLOCAL({target.reply_queue}) DESCR('rfhbridge: answers of the broker') {arrivals}",
    )


def queue_definitions(target: TargetSettings, routes: tuple[RouteSettings, ...], digest_queue: str) -> tuple[str, ...]:
    """DEFINE QLOCAL of every queue that the gateway needs, but for those of the queue manager."""
    digests = _digests(digest_queue).commands if digest_queue else ()
    return (*_own_queues(target), *_publication_definitions(target, routes), *digests)


def _publication_definitions(target: TargetSettings, routes: tuple[RouteSettings, ...]) -> tuple[str, ...]:
    queues = _publication_queues(target, routes)
    return tuple(f"DEFINE QLOCAL({name}) MSGDLVSQ(FIFO) REPLACE" for name in queues if not name.startswith("SYSTEM."))


def _streams(target: TargetSettings, routes: tuple[RouteSettings, ...]) -> Iterator[Section]:
    streams = tuple(dict.fromkeys(route.stream for route in routes if route.stream != DEFAULT_STREAM))
    commands = [*_publication_definitions(target, routes)]
    if target.streams == "queue" and streams:
        names = ", ".join(f"'{name}'" for name in (*_STANDARD_STREAMS, *streams))
        commands += [
            f"DEFINE TOPIC({name}) TOPICSTR('{name}') REPLACE" for name in streams
        ]  # in front of the namelist: the queue manager looks for both when the list changes
        commands += [
            "DISPLAY NAMELIST(SYSTEM.QPUBSUB.QUEUE.NAMELIST) NAMES",
            f"ALTER NAMELIST(SYSTEM.QPUBSUB.QUEUE.NAMELIST) NAMES({names})",
        ]
    yield Section(
        title="Streams. ALTER NAMELIST replaces the list: add what DISPLAY shows before it.",
        commands=tuple(commands),
    )


def _topics(target: TargetSettings, routes: tuple[RouteSettings, ...]) -> Iterator[Section]:
    streams = {route.stream for route in routes}
    own = [item for item in topic_objects(target, routes) if item[1] and item[0] not in streams]
    yield Section(
        title="Topics of the routes, so that authority can be given for them alone.",
        commands=tuple(f"DEFINE TOPIC({name}) TOPICSTR('{_quoted(text)}') REPLACE" for name, text in own),
    )


def _digests(digest_queue: str) -> Section:
    return Section(
        title="Digests of the gateway's audit trail: evidence for its auditors, out of the gateway's reach.",
        commands=(
            f"DEFINE QLOCAL({digest_queue}) DESCR('rfhbridge: signed digests of the trail') "
            f"MSGDLVSQ(FIFO) MAXDEPTH({_MAXIMUM_DEPTH}) REPLACE",
        ),
    )


def authorities(target: TargetSettings, routes: tuple[RouteSettings, ...], digest_queue: str) -> dict[str, str]:
    """The words of AUTHADD that the gateway's user needs, by the names of queues."""
    identity = ",SETID" if target.set_identity else ""
    queues: dict[str, str] = dict.fromkeys(state_queues(target), "GET,BROWSE,PUT,INQ")
    queues |= dict.fromkeys((target.subscriber_queue, target.reply_queue), "GET,BROWSE,PUT,INQ")
    queues |= {_back_out_queue(target): "PUT", target.control_queue: "PUT,INQ"}
    queues |= dict.fromkeys(_publication_queues(target, routes), f"PUT,BROWSE,INQ{identity}")
    return queues | ({digest_queue: "PUT"} if digest_queue else {})


def _authority(target: TargetSettings, routes: tuple[RouteSettings, ...], digest_queue: str) -> Section:
    user = target.user or DEFAULT_USER
    identity = ",SETID" if target.set_identity else ""
    queues = authorities(target, routes, digest_queue)
    grants = [("QMGR", "", f"CONNECT,INQ{identity}"), *(("QUEUE", name, what) for name, what in queues.items())]
    grants += [("TOPIC", name, "PUB,SUB") for name, _ in topic_objects(target, routes)]
    return Section(
        title="All rights that the gateway's user needs. The dead-letter queue is for messages from\n"
        "the broker that the gateway cannot take; name your own if DEADQ says another.",
        commands=(
            *(_grant(kind, name, user, what) for kind, name, what in grants),
            _grant("QUEUE", DEAD_LETTER_QUEUE, user, "PUT"),
        ),
    )


def _back_out_queue(target: TargetSettings) -> str:
    """An object name has at most 48 characters."""
    return f"{target.subscriber_queue[:40]}.BACKOUT"


def _grant(object_type: str, name: str, user: str, authority: str) -> str:
    profile = f"PROFILE({name}) " if name else ""
    return f"SET AUTHREC {profile}OBJTYPE({object_type}) PRINCIPAL('{_quoted(user)}') AUTHADD({authority})"


def _publication_queues(target: TargetSettings, routes: tuple[RouteSettings, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(route_of(route, target).queue for route in routes))


def _quoted(text: str) -> str:
    """Text for a place between single quotes of MQSC."""
    return text.replace("'", "''")


def _folded(command: str) -> Iterator[str]:
    """One command over as many lines as it needs; a plus at the end of a line goes on at the next one's first word."""
    line = ""
    for word in _words(command):
        longer = f"{line} {word}" if line else word
        if line and len(longer) + len(" +") > _LINE_CHARACTERS:
            yield f"{line} +"
            longer = f"{_INDENT}{word}"
        line = longer
    yield line


def _words(command: str) -> Iterator[str]:
    """The blank-separated words of a command; blanks between quotes separate nothing."""
    word, is_quoted = "", False
    for character in command:
        is_quoted ^= character == "'"
        if character == " " and not is_quoted:
            yield word
            word = ""
        else:
            word += character
    yield word
