"""`rfhbridge queue`: the queues of the embedded queue manager, through a running gateway or without one."""

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Annotated, Final

import typer

from gateway.cli.application import CommandFailed
from gateway.cli.connection import connected
from gateway.cli.examples import epilog
from gateway.cli.files import read_input, write_output
from gateway.cli.message.descriptor_options import (
    CodedCharSetIdOption,
    CorrelationIdentifierOption,
    EncodingOption,
    FormatOption,
    MessageIdentifierOption,
    ReplyTo,
    expiry,
    identifier,
    message_type,
    persistence,
    reply_to,
)
from gateway.cli.message.descriptor_view import descriptor_json, descriptor_lines
from gateway.cli.message.inspection import inspect_message
from gateway.cli.message.view import inspection_json, inspection_lines
from gateway.cli.queue.redrive import redrive
from gateway.cli.queue.store import accept_rollback, backup, compact, verify
from gateway.cli.settings_options import ConfigOption, DataOption, JsonOption, folder_with_store, settings_for
from gateway.cli.terminal import Json, write_json, write_json_array, write_line, write_table
from mappings.headers.detection import Announcement
from mq_adapters.attributes import ObjectType
from mq_adapters.message import (
    MQCI_NONE,
    MQEI_UNLIMITED,
    MQENC_LITTLE_ENDIAN,
    MQFMT_NONE,
    MQMT_DATAGRAM,
    MQPER_PERSISTENCE_AS_Q_DEF,
    MQPRI_PRIORITY_AS_Q_DEF,
    UTF_8,
    Message,
    MessageDescriptor,
)
from mq_adapters.mqsc import quoted
from mq_adapters.queue_manager import QueueAdministration
from mq_adapters.reasons import QueueManagerError, ReasonCode
from mq_adapters.system_queues import QueueOwner, is_closed_to_applications

_US: Final = 1_000_000
_YEAR_S: Final = 31_536_000.0

QueueName = Annotated[str, typer.Argument(metavar="QUEUE", help="Name of the queue.")]
ByForce = Annotated[
    bool, typer.Option("--force", help="Do it even on a queue of the gateway. Default: ask on a terminal, else refuse.")
]
AsBytes = Annotated[bool, typer.Option("--raw", help="Write only the bytes of the message, headers and body.")]

queue = typer.Typer(
    help="Use the queues of the queue manager. If a gateway runs, these commands are its clients.",
    epilog=epilog("rfhbridge queue define ORDERS", "rfhbridge queue put ORDERS message.bin --format MQHRF2"),
    rich_markup_mode=None,
)


@queue.command("list", epilog=epilog("rfhbridge queue list", "rfhbridge queue list --json"))
def list_queues(data: DataOption = None, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List the queues: depth, oldest message, description."""
    with connected(folder_with_store(config, data)) as queue_manager:
        statuses = queue_manager.queues()
    if as_json:
        write_json(
            [
                {
                    "name": status.name,
                    "depth": status.depth,
                    "oldest_put_at": _time_of(status.oldest_put_us) or None,
                    "description": status.description,
                }
                for status in statuses
            ]
        )
        return
    rows = [(status.name, str(status.depth), _time_of(status.oldest_put_us), status.description) for status in statuses]
    write_table(("queue", "depth", "oldest message", "description"), rows)


@queue.command(epilog=epilog("rfhbridge queue define ORDERS --description 'orders of the shop'"))
def define(
    name: QueueName,
    description: Annotated[
        str, typer.Option("--description", metavar="TEXT", help="Text about the purpose of the queue.")
    ] = "",
    data: DataOption = None,
    config: ConfigOption = None,
) -> None:
    """Define a local queue.

    Error 2100 means that the queue exists already.
    """
    with connected(settings_for(config, data).data) as queue_manager:
        queue_manager.define(name, description=description)
    write_line(f"defined {name}")


@queue.command(epilog=epilog("rfhbridge queue depth ORDERS"))
def depth(name: QueueName, data: DataOption = None, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Print how many messages a queue holds."""
    with connected(folder_with_store(config, data)) as queue_manager:
        messages = queue_manager.depth(name)
    if as_json:
        write_json({"name": name, "depth": messages})
    else:
        write_line(str(messages))


@queue.command(epilog=epilog("rfhbridge queue browse ORDERS", "rfhbridge queue browse ORDERS --json"))
def browse(
    name: QueueName,
    msg_id: MessageIdentifierOption = None,
    correl_id: CorrelationIdentifierOption = None,
    as_json: JsonOption = False,
    as_bytes: AsBytes = False,
    data: DataOption = None,
    config: ConfigOption = None,
) -> None:
    """Show the messages of a queue.

    The oldest comes first. All of them stay on the queue.
    """
    _check_form(as_json, as_bytes)
    with connected(folder_with_store(config, data)) as queue_manager:
        messages = queue_manager.browse(name, msg_id=msg_id, correl_id=correl_id)
        if as_bytes:
            for message in messages:
                write_output(message.body)
        elif as_json:
            write_json_array(_message_json(message) for message in messages)
        else:
            for number, message in enumerate(messages, start=1):
                write_line(f"message {number}")
                _write_message(message)


@queue.command(epilog=epilog("rfhbridge queue get ORDERS --wait 5", "rfhbridge queue get ORDERS --raw > message.bin"))
def get(
    name: QueueName,
    wait_s: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", min=0.0, max=_YEAR_S, help="Time to wait for a message.")
    ] = 0.0,
    msg_id: MessageIdentifierOption = None,
    correl_id: CorrelationIdentifierOption = None,
    as_json: JsonOption = False,
    as_bytes: AsBytes = False,
    force: ByForce = False,
    data: DataOption = None,
    config: ConfigOption = None,
) -> None:
    """Take the oldest message and show it.

    Error 2033 means that there is no message. The message leaves the queue only after it was written out. From the
    gateway's own queues a message is taken only with --force. The audit trail records that, and who took a dead letter.
    Audit notes cannot be taken; browse shows them.
    """
    _check_form(as_json, as_bytes)
    with connected(folder_with_store(config, data)) as queue_manager:
        owner = _owner(queue_manager, name)
        if owner is QueueOwner.GATEWAY:
            _confirm(f"take a message off {name}", force=force)
        with _unit_of_work(queue_manager):
            if owner is not QueueOwner.NOBODY:
                queue_manager.operate("queue get")
            message = queue_manager.get(name, wait_s=wait_s, msg_id=msg_id, correl_id=correl_id)
            if as_bytes:
                write_output(message.body)
            elif as_json:
                write_json(_message_json(message))
            else:
                _write_message(message)


@queue.command(
    epilog=epilog(
        "rfhbridge queue put ORDERS message.bin --format MQHRF2 --reply-to ANSWERS",
        "printf hello | rfhbridge queue put ORDERS - --format MQSTR",
    )
)
def put(
    name: QueueName,
    message: Annotated[
        str, typer.Argument(metavar="FILE|-", help="Message data, headers first; - for standard input.")
    ],
    format: FormatOption = None,
    answer_to: Annotated[
        ReplyTo | None,
        typer.Option("--reply-to", parser=reply_to, metavar="QUEUE[@QMGR]", help="MQMD.ReplyToQ and ReplyToQMgr."),
    ] = None,
    correl_id: Annotated[
        bytes | None, typer.Option("--correl-id", parser=identifier, metavar="HEX", help="MQMD.CorrelId.")
    ] = None,
    msg_type: Annotated[
        int | None,
        typer.Option(
            "--msg-type",
            parser=message_type,
            metavar="TYPE",
            help="MQMD.MsgType: datagram, request, reply, report or a number.",
        ),
    ] = None,
    persistence_number: Annotated[
        int | None,
        typer.Option(
            "--persistence",
            parser=persistence,
            metavar="P",
            help="MQMD.Persistence: persistent, not-persistent, as-queue or 0 to 2.",
        ),
    ] = None,
    expiry_tenths: Annotated[
        int | None,
        typer.Option(
            "--expiry", parser=expiry, metavar="TENTHS", help="MQMD.Expiry: tenths of a second, or unlimited."
        ),
    ] = None,
    priority: Annotated[
        int,
        typer.Option(
            "--priority", metavar="0-9", min=-1, max=9, help="MQMD.Priority; -1 is the priority of the queue."
        ),
    ] = MQPRI_PRIORITY_AS_Q_DEF,
    encoding: EncodingOption = MQENC_LITTLE_ENDIAN,
    coded_char_set_id: CodedCharSetIdOption = UTF_8,
    as_json: JsonOption = False,
    data: DataOption = None,
    config: ConfigOption = None,
) -> None:
    """Put one message and print its MsgId."""
    descriptor = MessageDescriptor(
        format=MQFMT_NONE if format is None else format,
        reply_to_q="" if answer_to is None else answer_to.queue,
        reply_to_q_mgr="" if answer_to is None else answer_to.queue_manager,
        correl_id=MQCI_NONE if correl_id is None else correl_id,
        msg_type=MQMT_DATAGRAM if msg_type is None else msg_type,
        persistence=MQPER_PERSISTENCE_AS_Q_DEF if persistence_number is None else persistence_number,
        expiry=MQEI_UNLIMITED if expiry_tenths is None else expiry_tenths,
        priority=priority,
        encoding=MQENC_LITTLE_ENDIAN if encoding is None else encoding,
        coded_char_set_id=UTF_8 if coded_char_set_id is None else coded_char_set_id,
    )
    body = _message_data(message)
    with connected(settings_for(config, data).data) as queue_manager:
        msg_id = queue_manager.put(name, Message(descriptor, body))
    if as_json:
        write_json({"msg_id": msg_id.hex()})
    else:
        write_line(msg_id.hex())


@queue.command(epilog=epilog("rfhbridge queue clear ORDERS"))
def clear(
    name: QueueName,
    force: ByForce = False,
    data: DataOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove every message of a queue.

    The command prints how many there were, and the audit trail records it. A queue of the gateway is cleared only with
    --force, and the queue of audit notes never. A batch in doubt keeps its messages until 'rfhbridge channel resolve'.
    """
    with connected(folder_with_store(config, data)) as queue_manager:
        if _owner(queue_manager, name) is QueueOwner.GATEWAY:
            _confirm(f"clear {name}", force=force)
        messages = queue_manager.clear(name)
    if as_json:
        write_json({"name": name, "cleared": messages})
    else:
        write_line(f"cleared {messages}")


def _owner(queue_manager: QueueAdministration, name: str) -> QueueOwner:
    """The owner of the messages on the queue of that name, or behind that alias. The operator is asked before they go.

    Nobody is asked about a queue that is closed to every application, because the queue manager refuses anyway.
    """
    base = queue_manager.inquire(name)
    if base.object_type != ObjectType.QLOCAL or is_closed_to_applications(base.name):
        return QueueOwner.NOBODY
    shown = " ".join(queue_manager.mqsc(f"DISPLAY QLOCAL({quoted(base.name)}) OWNER").lines)
    return next(
        (owner for owner in (QueueOwner.GATEWAY, QueueOwner.OPERATOR) if f"OWNER({owner})" in shown), QueueOwner.NOBODY
    )


def _confirm(act: str, *, force: bool) -> None:
    """Goes on with --force, or if the person at the terminal agrees. CommandFailed says what to do."""
    if force:
        return
    why = "the messages on it are the gateway's, which has acknowledged them"
    if not sys.stdin.isatty():
        raise CommandFailed(f"not done: {act}: {why} (--force does it anyway)")
    typer.confirm(f"{act}: {why}. Do it anyway?", abort=True)


@contextmanager
def _unit_of_work(queue_manager: QueueAdministration) -> Iterator[None]:
    """Commits the work. Backs it out if the work, or the output about it, failed."""
    queue_manager.begin()
    try:
        yield
    except BaseException:
        with suppress(QueueManagerError):  # the connection is broken, so the unit of work is backed out
            queue_manager.back_out()
        raise
    queue_manager.commit()


def _message_data(name: str) -> bytes:
    """The data to put. QueueManagerError 2030 if it is longer than a message may be."""
    try:
        return read_input(name)
    except OSError as error:
        if error.errno != errno.EFBIG:
            raise
        operation = f"put {error.filename}: {error.strerror}"
        raise QueueManagerError(ReasonCode.MQRC_MSG_TOO_BIG_FOR_Q, operation) from None


def _check_form(as_json: bool, as_bytes: bool) -> None:
    """Checks that the user asks for one form only."""
    if as_json and as_bytes:
        raise typer.BadParameter("give one of them", param_hint="'--json' and '--raw'")


def _message_json(message: Message) -> dict[str, Json]:
    inspection = inspect_message(message.body, _announcement_of(message))
    return {"md": descriptor_json(message), **inspection_json(inspection, message.body)}


def _write_message(message: Message) -> None:
    for line in descriptor_lines(message):
        write_line(line)
    for line in inspection_lines(inspect_message(message.body, _announcement_of(message)), message.body):
        write_line(line)


def _announcement_of(message: Message) -> Announcement:
    descriptor = message.descriptor
    return Announcement(
        format=descriptor.format, coded_char_set_id=descriptor.coded_char_set_id, encoding=descriptor.encoding
    )


def _time_of(put_us: int) -> str:
    """UTC to the second; nothing for an empty queue."""
    return datetime.fromtimestamp(put_us // _US, UTC).isoformat() if put_us else ""


# -- the store, and dead letters ---------------------------------------------------------------------------------------

queue.command(epilog=epilog("rfhbridge queue verify", "rfhbridge queue verify --json"))(verify)
queue.command(epilog=epilog("rfhbridge queue backup monday.sqlite"))(backup)
queue.command(epilog=epilog("rfhbridge queue compact", "rfhbridge queue compact --json"))(compact)
queue.command(
    "accept-rollback", epilog=epilog("rfhbridge queue accept-rollback", "rfhbridge queue accept-rollback --yes --json")
)(accept_rollback)
queue.command(
    epilog=epilog("rfhbridge queue redrive --dry-run", "rfhbridge queue redrive --reason 2053 --topic 'plant/#'")
)(redrive)
