"""The forms of an explanation: lines that are never wrapped, JSON, and the set-up as MQSC."""

from collections.abc import Iterator
from typing import Final

from gateway.cli.terminal import Json, counted
from gateway.config import Settings, TargetSettings
from gateway.explain.command import ExplainedCommand
from gateway.explain.explanation import Explanation
from gateway.explain.hub import set_up_of
from gateway.explain.set_up import heading, mqsc_text
from mq_adapters.message import MQEI_UNLIMITED, MQMT_DATAGRAM, MQMT_REQUEST, MessageDescriptor

_MESSAGE_TYPES: Final = {MQMT_REQUEST: "MQMT_REQUEST", MQMT_DATAGRAM: "MQMT_DATAGRAM"}
_PERSISTENCES: Final = ("MQPER_NOT_PERSISTENT", "MQPER_PERSISTENT")
_REPORTS: Final = {0: "MQRO_NONE", 2: "MQRO_NAN"}
_SHARED: Final = "one subscriber at MQTT 5, registered by its first member; before, a filter like any other"
_ASSUMED: Final = "no configuration names a target, so one with the default names is assumed"


def set_up_text(settings: Settings) -> str:
    """The MQSC of every target, one after another."""
    texts = (
        mqsc_text(
            set_up_of(
                target,
                (route for route in settings.routes if route.target == target.name),
                digest_queue=settings.audit.digest_queue_at(target.name),
            ),
            heading=heading(target),
        )
        for target in settings.target
    )
    return "\n".join(texts)


def explanation_lines(explanation: Explanation, *, is_assumed: bool) -> Iterator[str]:
    """An explanation for people, and behind it the MQSC for the topic as in a file."""
    question = explanation.question
    yield f"{'filter' if question.is_filter else 'topic'}   {question.topic}"
    if question.is_shared:
        yield f"group   {_SHARED}"
    if is_assumed:
        yield f"target  {_ASSUMED}"
    if explanation.route is not None:
        yield f"route   {_route_text(explanation)}"
    for target, _ in explanation.sections:
        yield f"target  {_target_text(target)}"
    for command in explanation.commands:
        yield ""
        yield from _command_lines(command)
    if explanation.refusal:
        yield ""
        yield f"SUBSCRIBE is refused: {explanation.refusal}"
    for target, sections in explanation.sections:
        yield ""
        yield from mqsc_text(sections, heading=heading(target)).splitlines()


def explanation_json(explanation: Explanation, *, is_assumed: bool) -> Json:
    """The same for programs; headers in hexadecimal and as text."""
    question, route = explanation.question, explanation.route
    return {
        "topic": question.topic,
        "client": question.client,
        "shared": question.is_shared,
        "assumed_target": is_assumed,
        "route": None
        if route is None
        else {
            "topics": list(route.topics),
            "target": "" if route.target is None else route.target.name,
            "queue": route.queue,
        },
        "commands": [_command_json(command) for command in explanation.commands],
        "subscribe_refused": explanation.refusal,
        "mqsc": {
            target.name: mqsc_text(sections, heading=heading(target)) for target, sections in explanation.sections
        },
    }


def _route_text(explanation: Explanation) -> str:
    route = explanation.route
    assert route is not None, "a filter has no route of its own"
    if route.target is None:
        return "no route takes it, so it stays at the embedded broker"
    return f"{', '.join(route.topics)} to target {route.target.name}, queue {route.queue}"


def _target_text(target: TargetSettings) -> str:
    way = target.ccdt_url or f"{', '.join(target.connections)}, channel {target.channel}"
    name = target.queue_manager or "any queue manager that answers"
    return f"{target.name}: {name}, {way if target.mode == 'client' else 'bindings'}, {target.header.upper()}"


def _command_lines(command: ExplainedCommand) -> Iterator[str]:
    where = f"at target {command.target}" if command.target else "at the embedded broker"
    yield f"{command.packet} becomes {command.verb} on queue {command.queue} {where}"
    for name, value in _descriptor_fields(command.descriptor):
        yield f"  MQMD {name:<16} {value}"
    for found in command.properties:
        yield f"  {found.name:<23} in {found.place}: {found.value}"
    yield f"  header, {counted(len(command.header), 'byte')}, in front of the payload"
    yield from (f"    text  {line}" for line in command.header_text)
    yield f"    hex   {command.header.hex()}"


def _command_json(command: ExplainedCommand) -> Json:
    return {
        "packet": command.packet,
        "command": command.verb,
        "topics": list(command.topics),
        "target": command.target,
        "queue": command.queue,
        "mqmd": dict(_descriptor_fields(command.descriptor)),
        "properties": [found._asdict() for found in command.properties],
        "header_hex": command.header.hex(),
        "header_text": list(command.header_text),
    }


def _descriptor_fields(descriptor: MessageDescriptor) -> Iterator[tuple[str, str]]:
    yield "Format", descriptor.format.decode().rstrip()
    yield "CodedCharSetId", str(descriptor.coded_char_set_id)
    yield "Encoding", str(descriptor.encoding)
    yield "MsgType", f"{descriptor.msg_type} {_MESSAGE_TYPES[descriptor.msg_type]}"
    yield "Report", f"{descriptor.report} {_REPORTS[descriptor.report]}"
    yield "Persistence", f"{descriptor.persistence} {_PERSISTENCES[descriptor.persistence]}"
    yield "Expiry", _expiry_text(descriptor.expiry)
    yield "Priority", str(descriptor.priority)
    yield "MsgId", descriptor.msg_id.hex()
    yield "CorrelId", descriptor.correl_id.hex()
    yield "ReplyToQ", descriptor.reply_to_q
    yield "UserIdentifier", descriptor.user_identifier or "the gateway's own user"


def _expiry_text(expiry: int) -> str:
    return f"{expiry} MQEI_UNLIMITED" if expiry == MQEI_UNLIMITED else f"{expiry} tenths of a second"
