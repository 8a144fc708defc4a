"""Checks of several tables of a configuration against each other."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.config.applications import application_problems
from gateway.config.listeners import listener_problems
from gateway.config.mq_listeners import mq_listener_problems
from mq_adapters.system_queues import CONTROL_QUEUE, DEFAULT_STREAM, SYSTEM_QUEUES

if TYPE_CHECKING:
    from gateway.config.settings import Settings
    from gateway.config.targets import RouteSettings, TargetSettings

#: Queues that no setting may name, and why.
_TAKEN: Final = {row.name: row.use for row in SYSTEM_QUEUES.values() if not row.is_stream}
#: Queues on which the gateway itself puts messages, and no conversion may.
_OWN_OUTPUT: Final = frozenset(_TAKEN) - {CONTROL_QUEUE}


def problems_of(settings: "Settings") -> Iterator[str]:
    """Every problem, as a sentence that begins with the key."""
    if settings.rescue is not None and settings.rescue.is_relative_to(settings.data.absolute()):
        yield f"rescue_folder: {settings.rescue_folder!r} is in the data folder, and would disappear with it"
    if settings.publish.jms_folders and settings.header != "mqrfh2":
        yield 'publish.jms_folders: an MQRFH has no folders; write header = "mqrfh2"'
    yield from listener_problems(settings)
    yield from mq_listener_problems(settings)
    yield from _queue_problems(settings)
    yield from application_problems(settings)
    yield from _conversion_problems(settings)
    yield from _target_problems(settings)
    yield from _audit_problems(settings)
    yield from _access_problems(settings)


def _queue_problems(settings: "Settings") -> Iterator[str]:
    """Problems of the gateway's own queues with a name that is taken, and of addresses that are given twice."""
    own = {
        "publish.stream": settings.publish.stream,
        "subscribe.queue": settings.subscribe.queue,
        "subscribe.reply_queue": settings.subscribe.reply_queue,
    }
    for key, name in own.items():
        if name in _TAKEN:
            yield f"{key}: {name!r} cannot be used: {_TAKEN[name]}"
        for other, other_name in own.items():
            if other > key and other_name == name:
                yield f"{other}: {name!r} is the queue of {key} already; name another queue"
    streams = {DEFAULT_STREAM, settings.publish.stream, *settings.broker.all_input_queues}
    for key in ("subscribe.queue", "subscribe.reply_queue"):
        if own[key] in streams and own[key] != own["publish.stream"]:
            yield f"{key}: {own[key]!r} is a stream, whose messages the broker takes; name another queue"
    addresses = [listener.address for listener in settings.all_listeners]
    if settings.http.enabled and any(map(settings.http.address.takes_port_of, addresses)):
        yield f"http.listen: {settings.http.listen} is the address of a listener already"


def _conversion_problems(settings: "Settings") -> Iterator[str]:
    """Problems of conversions from a queue that is taken, to a queue that is reserved, or in a circle."""
    if not settings.conversion:
        return
    streams = (DEFAULT_STREAM, settings.publish.stream, *settings.broker.all_input_queues)
    taken = {
        **_TAKEN,
        settings.subscribe.queue: "the gateway receives its publications on it",
        settings.subscribe.reply_queue: "the gateway receives its answers on it",
        **dict.fromkeys(streams, "it is a stream, whose messages the broker takes"),
    }
    targets: dict[str, str] = {}
    for index, conversion in enumerate(settings.conversion):
        source, target = conversion.source, conversion.target
        if source in taken:
            yield f"conversion#{index + 1}.from: {source!r} cannot be converted: {taken[source]}"
        if target in _OWN_OUTPUT:
            yield f"conversion#{index + 1}.to: {target!r} takes only messages of the gateway itself"
        if source in targets:
            yield f"conversion#{index + 1}.from: {source!r} has a conversion already; one queue, one conversion"
        targets.setdefault(source, target)
        if _leads_back(targets, source):
            yield f"conversion#{index + 1}: messages from {source!r} come back to it, again and again"


def _leads_back(targets: Mapping[str, str], source: str) -> bool:
    """Whether messages from a queue come back to it."""
    queue = source
    for _ in targets:
        queue = targets.get(queue, "")
        if queue == source:
            return True
    return False


def _target_problems(settings: "Settings") -> Iterator[str]:
    """Problems of targets and routes that contradict each other."""
    names = [target.name for target in settings.target]
    for index, name in enumerate(names):
        if name in names[:index]:
            yield f"target#{index + 1}.name: there is a target {name!r} already"
    for index, target in enumerate(settings.target):
        if target.subscriber_queue == target.reply_queue:
            yield f"target#{index + 1}.reply_queue: {target.reply_queue!r} is the queue of subscriber_queue already"
        if target.queue_manager == settings.queue_manager.name:
            yield f"target#{index + 1}.queue_manager: {target.queue_manager!r} is the embedded one; take another name"
    for index, route in enumerate(settings.route):
        yield from _route_queue_problems(index, route, settings.target)
        if route.target not in names:
            known = ", ".join(names) or "none"
            yield f"route#{index + 1}.target: there is no target {route.target!r}; known: {known}"
    if len(names) > 1 and not settings.route:
        yield "route: is missing; with several targets, routes say which topics go where"


def _route_queue_problems(index: int, route: "RouteSettings", targets: "tuple[TargetSettings, ...]") -> Iterator[str]:
    """Problems of routes to a queue of the gateway. Publications would come back, or forge a channel's state."""
    for target in (each for each in targets if each.name == route.target):
        taken = {target.subscriber_queue: "subscriber_queue", target.reply_queue: "reply_queue"}
        taken |= {f"{target.state_queue}.{shard}": "a state queue" for shard in range(target.shards)}
        for key, name in (("queue", route.queue), ("stream", route.stream)):
            if name in taken:
                yield f"route#{index + 1}.{key}: {name!r} is {taken[name]} of target {target.name!r}"


def _audit_problems(settings: "Settings") -> Iterator[str]:
    """Problems of digests for an unknown target, and of copies of the trail in the folder that they protect."""
    audit = settings.audit
    names = [target.name for target in settings.target]
    if audit.digest_target and audit.digest_target not in names:
        yield f"audit.digest_target: there is no target {audit.digest_target!r}; known: {', '.join(names) or 'none'}"
    if bool(audit.digest_target) != bool(audit.digest_queue):
        yield "audit.digest_queue: needs audit.digest_target, and the other way round; name both, or none"
    witnesses = [witness.name for witness in audit.witness]
    for index, name in enumerate(witnesses):
        if name in witnesses[:index]:
            yield f"audit.witness#{index + 1}.name: there is a witness {name!r} already"
    if audit.copy_folder and Path(audit.copy_folder).absolute().is_relative_to(settings.data.absolute()):
        yield f"audit.copy_folder: {audit.copy_folder!r} is in the data folder; name a folder elsewhere"


def _access_problems(settings: "Settings") -> Iterator[str]:
    """Problems of rules for users if nothing tells users apart."""
    access = settings.access
    has_users = access.tells_users or settings.has_certificate_users
    if not has_users and (access.anonymous is False or access.bind_client_identifier is True):
        yield (
            "access: anonymous = false and bind_client_identifier = true need a password_file, keys of tokens, or a"
            " listener that takes users from certificates"
        )
