"""`rfhbridge audit prove`: one message's life, for somebody without the trail and without the gateway."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gateway.cli.application import AuditExitCode, CommandFailed
from gateway.cli.audit.trails import trail_of
from gateway.cli.files import write_output, write_whole
from gateway.cli.settings_options import ConfigOption, DataOption, settings_for
from gateway.cli.terminal import counted

if TYPE_CHECKING:
    from spark_audit.verify.proof import Proof

_MESSAGE_ID_BYTES: Final = 24


def message_identifier(text: str) -> str:
    """An MQMD.MsgId in hex, as the trail has it."""
    try:
        identifier = bytes.fromhex(text)
    except ValueError:
        identifier = b""
    if len(identifier) != _MESSAGE_ID_BYTES:
        raise typer.BadParameter(f"a message identifier must have {2 * _MESSAGE_ID_BYTES} hex digits")
    return identifier.hex()


def prove(
    message_id: Annotated[
        str, typer.Argument(metavar="MESSAGE-ID", parser=message_identifier, help="MQMD.MsgId in hex.")
    ],
    data: DataOption = None,
    pack: Annotated[
        Path | None, typer.Option("--pack", metavar="FILE", help="Pack with the trail, instead of --data.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="File for the proof. Default: standard output.")
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Prove one message's life to a third party.

    The proof has the records of the message, of its publication's acceptance, of its copies, their deliveries and what
    was acknowledged, their paths to the Merkle roots of their segments, and the signed digests. `audit verify --proof
    FILE --public-key FILE` checks it without the trail, and says in words what is proved and what is not in it. Exit
    code 0: written; 1: the trail contradicts its digests; 2: there is nothing to prove yet; 3: wrong use.
    """
    from spark_audit.verify.proof import BrokenSegment

    if pack is not None and data is not None:
        raise typer.BadParameter("give --pack or --data, not both")
    try:
        with _failing_in_our_words():
            proof, not_signed = _proof(message_id, pack, data, config)
    except BrokenSegment as error:
        typer.echo(f"rfhbridge: {error}", err=True)
        raise typer.Exit(AuditExitCode.VIOLATIONS) from None
    if out is None:
        write_output(proof.to_bytes())
    else:
        write_whole(out, proof.to_bytes())
    told = f"proved {counted(len(proof.life().records), 'record')}"
    if not_signed:
        told += f"; {counted(not_signed, 'line')} more have no digest yet (prove again when their file is closed)"
    typer.echo(told, err=True)


def _proof(message_id: str, pack: Path | None, data: Path | None, config: Path | None) -> tuple["Proof", int]:
    from spark_audit.verify.packed_trail import open_pack
    from spark_audit.verify.proof import prove as prove_records
    from spark_audit.verify.source import TrailFolder

    if pack is None:
        trail = trail_of(settings_for(config, data).data)
        return prove_records(lambda: TrailFolder(trail), message_id)
    with pack.open("rb") as file:
        return prove_records(lambda: open_pack(file), message_id)


@contextmanager
def _failing_in_our_words() -> Iterator[None]:
    from spark_audit.trail.segment_forms import DamagedSegment
    from spark_audit.verify.packed_trail import UnusablePack
    from spark_audit.verify.proof import ProofError
    from spark_audit.verify.source import LineTooLong

    try:
        yield
    except (ProofError, UnusablePack, DamagedSegment, LineTooLong) as error:
        raise CommandFailed(str(error)) from None
