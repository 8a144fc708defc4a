"""`rfhbridge audit verify`: a trail, a pack or a proof, checked without Spark and without the gateway."""

import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from gateway.cli.application import CommandFailed
from gateway.cli.audit.proof_in_words import proof_in_words
from gateway.cli.durations import seconds_of
from gateway.cli.settings_options import ConfigOption, DataOption, JsonOption, folder_here, settings_for
from gateway.cli.terminal import Json, counted, write_json, write_line
from spark_audit.options import DIGESTS, PUBLIC_KEY
from spark_audit.trail.receipt import receipts_in

if TYPE_CHECKING:
    from spark_audit.verify import Anchor, AuditorsRule, Verification
    from spark_audit.verify.proof import ProofVerification


def verify(
    evidence: Annotated[
        Path | None,
        typer.Argument(metavar="[PACK]", help="Pack, or folder with a copied trail. Default: DATA/trail."),
    ] = None,
    data: DataOption = None,
    public_key: Annotated[Path | None, typer.Option(PUBLIC_KEY.flag, metavar="FILE", help=PUBLIC_KEY.help)] = None,
    digests: Annotated[
        Path | None, typer.Option(DIGESTS.flag, parser=folder_here, metavar="DIR", help=DIGESTS.help)
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option("--policy", metavar="FILE", help="Policy of the auditor: restores, and what [trail] asks."),
    ] = None,
    proof: Annotated[
        Path | None,
        typer.Option("--proof", metavar="FILE", help="Check a proof that `audit prove` wrote, not a trail."),
    ] = None,
    keep_at_least_s: Annotated[
        int | None,
        typer.Option(
            "--keep-at-least",
            parser=seconds_of,
            metavar="TIME",
            help="Report each segment that retention removed sooner than this after its last record: 365d.",
        ),
    ] = None,
    not_older_than_s: Annotated[
        int | None,
        typer.Option(
            "--not-older-than",
            parser=seconds_of,
            metavar="TIME",
            help="Report a last digest that is older than this: 30d, 12h, 45m or 90s.",
        ),
    ] = None,
    time_stamps: Annotated[
        Path | None,
        typer.Option(
            "--time-stamps",
            metavar="FILE",
            help="Check the trail's time-stamps against these certificates (PEM) of their authority.",
        ),
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check the trail without Spark.

    The command checks every hash, link, number, digest and signature, and names missing records and changed lines. The
    verdict is `anchored` if you give --public-key or --digests that were kept elsewhere, else `consistent, not
    anchored`. It is `restored` if the trail itself records a gap that the policy does not name. --keep-at-least and
    --not-older-than apply your own rule, whatever the gateway announced. Receipts of Git and S3 witnesses are held
    against the digests. Exit code 0: anchored or consistent; 1:
    violated or restored; 2: not evaluable; 3: wrong use.
    """
    from spark_audit.verify import Anchor, UnusableAnchor

    _check_use(evidence, data, digests, proof)
    _check_use_of_stamps(proof, time_stamps)
    accepted, rule = _asked_by(policy)
    rule = _rule(rule, keep_at_least_s, not_older_than_s, proof)
    try:
        anchor = Anchor.read(public_key_file=public_key, digests=digests)
    except UnusableAnchor as error:
        raise CommandFailed(str(error)) from None
    if proof is not None:
        _verify_proof(proof, anchor, as_json=as_json)
    verification = _verification(evidence, data, config, anchor, accepted, rule)
    verification = _with_receipts(verification, evidence, data, config)
    if time_stamps is not None:
        verification = _with_stamps(verification, evidence, data, config, time_stamps)
    if as_json:
        write_json(cast(Json, verification.as_dict()))
    else:
        _write(verification)
    raise typer.Exit(verification.verdict.exit_code)


def trail_in(folder: Path) -> Path:
    """The trail in a data folder, in an unpacked pack, or the folder itself."""
    from gateway.audit_trail.exporter import TRAIL_FOLDER

    inner = folder / TRAIL_FOLDER
    return inner if inner.is_dir() else folder


def _check_use(evidence: Path | None, data: Path | None, digests: Path | None, proof: Path | None) -> None:
    if evidence is not None and data is not None:
        raise typer.BadParameter("name a pack or --data, not both")
    if proof is not None and (evidence or data or digests):
        raise typer.BadParameter("a proof is checked without its trail: with --proof give only --public-key")


def _check_use_of_stamps(proof: Path | None, time_stamps: Path | None) -> None:
    if time_stamps is not None and proof is not None:
        raise typer.BadParameter("--time-stamps is for a trail or a pack; a proof has no time-stamps")


def _with_receipts(
    verification: "Verification", evidence: Path | None, data: Path | None, config: Path | None
) -> "Verification":
    """What Git and S3 witnesses have, as far as nobody has to be asked."""
    from gateway.audit_trail.exporter import TRAIL_FOLDER
    from spark_audit.verify.packed_trail import UnusablePack, packed_receipts
    from spark_audit.verify.receipts import digest_in, with_receipts

    try:
        if evidence is not None and evidence.is_file():
            receipts, digests = packed_receipts(evidence)
            return with_receipts(verification, receipts, digests.get)
        trail = settings_for(config, data).data / TRAIL_FOLDER if evidence is None else trail_in(evidence)
        return with_receipts(verification, receipts_in(trail), partial(digest_in, trail))
    except (UnusablePack, OSError):
        return verification  # what cannot be read was said before


def _with_stamps(
    verification: "Verification", evidence: Path | None, data: Path | None, config: Path | None, authority: Path
) -> "Verification":
    from gateway.audit_trail.exporter import TRAIL_FOLDER
    from spark_audit.verify import Verdict
    from spark_audit.verify.packed_trail import UnusablePack, packed_stamps
    from spark_audit.verify.time_stamp import UnusableAuthority, stamped_digests, with_time_stamps

    if evidence is not None and evidence.is_file():
        digests = packed_stamps(evidence)
    else:
        trail = settings_for(config, data).data / TRAIL_FOLDER if evidence is None else trail_in(evidence)
        digests = stamped_digests(trail)
    try:
        return with_time_stamps(verification, digests, authority)
    except UnusablePack as error:
        if verification.verdict is Verdict.NOT_EVALUABLE:
            return verification  # it says so itself
        raise CommandFailed(f"{evidence}: {error}") from None
    except (UnusableAuthority, OSError) as error:
        raise CommandFailed(str(error)) from None


def _rule(
    rule: "AuditorsRule", keep_at_least_s: int | None, not_older_than_s: int | None, proof: Path | None
) -> "AuditorsRule":
    """The auditor's own rule, by this machine's clock: options go before the policy."""
    if proof is not None and (keep_at_least_s is not None or not_older_than_s is not None):
        raise typer.BadParameter("a proof is about one message; --keep-at-least and --not-older-than are for a trail")
    if 0 in (keep_at_least_s, not_older_than_s):
        raise typer.BadParameter("--keep-at-least and --not-older-than must be more than 0")
    keep_us, fresh_us = ((seconds or 0) * 1_000_000 for seconds in (keep_at_least_s, not_older_than_s))
    return replace(
        rule,
        keep_at_least_us=keep_us or rule.keep_at_least_us,
        not_older_than_us=fresh_us or rule.not_older_than_us,
        now_us=time.time_ns() // 1_000,
    )


def _asked_by(policy: Path | None) -> "tuple[frozenset[str], AuditorsRule]":
    """The restores that a policy names, and what it asks of a trail."""
    from spark_audit.verify.auditors_rule import UnusableRule, rule_of
    from spark_audit.verify.restores import UnusableRestore, accepted_restores, read_tables

    try:
        tables = {} if policy is None else read_tables(policy)
        return accepted_restores(tables), rule_of(tables)
    except (UnusableRestore, UnusableRule) as error:
        raise CommandFailed(f"{policy}: {error}") from None


def _verification(
    evidence: Path | None,
    data: Path | None,
    config: Path | None,
    anchor: "Anchor",
    accepted: frozenset[str],
    rule: "AuditorsRule",
) -> "Verification":
    from gateway.audit_trail.exporter import TRAIL_FOLDER
    from spark_audit.trail.witness_note import notes_beside
    from spark_audit.verify import verify as verify_trail
    from spark_audit.verify import verify_pack

    if evidence is None:
        trail = settings_for(config, data).data / TRAIL_FOLDER
        found = verify_trail(trail, anchor, accepted=accepted, rule=rule)
        return replace(found, notes=(*found.notes, *map(str, notes_beside(trail))))
    check = partial(verify_trail, trail_in(evidence)) if evidence.is_dir() else partial(verify_pack, evidence)
    return check(anchor, accepted=accepted, rule=rule)


def _verify_proof(path: Path, anchor: "Anchor", *, as_json: bool) -> None:
    from spark_audit.verify.proof import LARGEST_PROOF_BYTES, verify_proof

    with path.open("rb") as file:
        result = verify_proof(file.read(LARGEST_PROOF_BYTES + 1), anchor.public_key)
    if as_json:
        write_json(cast(Json, result.as_dict()))
    else:
        _write_proof(result)
    raise typer.Exit(result.verdict.exit_code)


def _write_proof(result: "ProofVerification") -> None:
    write_line(f"{result.verdict}: {result.reason}")
    for problem in result.problems[1:]:  # the first one is the reason
        write_line(f"  {problem}")
    for key in result.public_keys:
        write_line(f"signed by {key}")
    proved, missing = proof_in_words(result.records)
    for words in proved:  # without a public key somebody may have written all of it
        write_line(f"{'proved' if result.verdict.value == 'anchored' else 'told'}: {words}")
    for words in missing:
        write_line(f"not in the proof: {words}")
    for line in result.records:
        write_line(f"  {line}")


def _write(verification: "Verification") -> None:
    from spark_audit.period import second_text
    from spark_audit.verify.verdict import Verdict

    write_line(f"{verification.verdict}: {verification.reason}")
    for problem in verification.problems:
        if str(problem) != verification.reason:  # the first one is the reason of a violated trail
            write_line(f"  {problem}")
    if (untold := verification.problem_count - len(verification.problems)) > 0:
        write_line(f"  and {counted(untold, 'problem')} more")
    if verification.verdict is Verdict.NOT_EVALUABLE and not verification.segments:
        write_line("name the gateway's data folder with --data, or a pack or the folder of a copied trail")
        return
    counts = (
        counted(verification.segments, "segment"),
        counted(verification.records, "record"),
        counted(verification.digests, "digest"),
    )
    write_line(f"{', '.join(counts)}, head {verification.head}")
    if verification.digests:
        at, keys = second_text(verification.last_digest_at_us), " then ".join(verification.public_keys)
        by = f"keys that begin with {' then '.join(verification.chains)}, and " if verification.chains else ""
        write_line(f"last digest {verification.digest_head}, of {at}, signed by {by}{keys}")
    for note in verification.notes:
        write_line(note)
    write_line(verification.limits)
