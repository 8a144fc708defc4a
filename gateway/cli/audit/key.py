"""`rfhbridge audit key`: the public key for an auditor (show), and another configured key (rotate)."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from gateway.cli.application import CommandFailed
from gateway.cli.audit.trails import trail_of
from gateway.cli.connection import connected, tell_order
from gateway.cli.examples import epilog
from gateway.cli.settings_options import ConfigOption, DataOption, has_store, settings_for
from gateway.cli.terminal import write_line

if TYPE_CHECKING:
    from gateway.audit_trail.plan import TrailPlan

#: Seconds that a running gateway has to countersign a new key, which it does each second; and between two looks.
ROTATION_WAIT_S: Final = 15.0
_LOOK_AGAIN_S: Final = 0.1

key = typer.Typer(
    help="The keys that sign the trail's digests.",
    epilog=epilog("rfhbridge audit key show > gateway.pub", "rfhbridge audit key rotate --data var"),
    rich_markup_mode=None,
)


@key.command(epilog=epilog("rfhbridge audit key show > gateway.pub", "rfhbridge audit key show --data var"))
def show(data: DataOption = None, config: ConfigOption = None) -> None:
    """Print the first public key of the trail, for an auditor.

    It is one line of hex, for `audit verify --public-key`. Keep it where the gateway cannot write. Each digest has a
    key of its own. So if you have this key from before a break-in, nobody can rewrite what was signed before it. Exit
    code 0: printed; 2: there is no key; 3: wrong use.
    """
    from gateway.audit_trail.keys.key_chain import living_key
    from spark_audit.trail.digest import DIGEST_FOLDER, anchor_key_of

    trail, _ = _trail_and_plan(data, config)
    public_key = anchor_key_of(trail / DIGEST_FOLDER) or living_key(trail, 1)
    if not public_key:
        raise CommandFailed(f"there is no key for {trail} (the gateway makes the key when it starts)")
    write_line(public_key)


@key.command(epilog=epilog("rfhbridge audit key rotate --data var"))
def rotate(data: DataOption = None, config: ConfigOption = None) -> None:
    """Hand over to a new configured key.

    The old key countersigns the hand-over in the trail; a running gateway does this itself. The file of the old key is
    replaced. The command prints the new public key. The key that `key show` prints stays the same. Exit code 0: done;
    2: not done; 3: wrong use.
    """
    from gateway.audit_trail.digests import key_in_force
    from gateway.audit_trail.keys.signing_key import make_next_key

    trail, plan = _trail_and_plan(data, config)
    if plan.signing_token is not None:
        raise CommandFailed(
            "the configured key is a token's: configure the new one as [audit.signing_token] and this one as"
            " [audit.former_signing_token], and start the gateway again"
        )
    before = key_in_force(trail)
    if before is None:
        when = "when it closes its first file, or when it ends"
        raise CommandFailed(f"nothing in {trail} is signed yet (the gateway signs it {when})")
    new = make_next_key(Path(plan.signing_key)).public_key
    if has_store(trail.parent):
        with connected(trail.parent) as queue_manager:
            tell_order(queue_manager, "audit key rotate", f"{before} hands over to {new}")
    _hand_over(trail, plan)
    if key_in_force(trail) != new:
        raise CommandFailed("another rotation came first (its key is in force)")
    typer.echo(f"{before} has handed over; the new public key follows", err=True)
    write_line(new)


def _trail_and_plan(data: Path | None, config: Path | None) -> "tuple[Path, TrailPlan]":
    """The trail of a data folder, and its gateway's plan for it. Raises CommandFailed if there is no trail."""
    from gateway.audit_trail.plan import TrailPlan

    trail = trail_of(settings_for(config, data).data)
    return trail, TrailPlan.kept(trail)


def _hand_over(trail: Path, plan: "TrailPlan") -> None:
    """Hands over to the new key under the trail's lock.

    If a gateway has the lock, this waits until the gateway has done so.
    """
    from gateway.audit_trail.keys.signing_key import next_key_path
    from gateway.audit_trail.segment import Trail, TrailInUse
    from gateway.operations.rollback import known_head

    path = Path(plan.signing_key)
    deadline_s = time.monotonic() + ROTATION_WAIT_S
    while next_key_path(path).exists():
        try:
            opened = Trail.open(
                trail,
                limits=plan.limits,
                signing_key=path,
                provenance=plan.provenance(),
                known=known_head(trail.parent),
            )
            with opened:
                opened.tend()
        except TrailInUse:
            if time.monotonic() >= deadline_s:
                raise CommandFailed(
                    f"the gateway has not signed the new key within {ROTATION_WAIT_S:g} s, but will (see its log)"
                ) from None
            time.sleep(_LOOK_AGAIN_S)
