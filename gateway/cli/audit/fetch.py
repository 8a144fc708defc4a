"""`rfhbridge audit fetch`: copies the digests of a bucket with object lock, for `verify` and `run`."""

import re
from pathlib import Path
from typing import Annotated, Final

import typer

from gateway.cli.application import CommandFailed
from gateway.cli.settings_options import folder_here
from gateway.cli.terminal import counted, write_line

_PLACE: Final = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/([^/].*?))?/?")


def fetch(
    place: Annotated[str, typer.Argument(metavar="s3://BUCKET/PREFIX", help="Bucket and prefix of the witness.")],
    to: Annotated[
        Path,
        typer.Argument(parser=folder_here, metavar="DIR", help="Folder for the digests; those in it stay as they are."),
    ],
    endpoint: Annotated[
        str, typer.Option("--endpoint", metavar="URL", help="Address of the server. Default: that of the environment.")
    ] = "",
    credentials: Annotated[
        Path | None,
        typer.Option("--credentials", metavar="FILE", help="File of credentials. Default: those of the environment."),
    ] = None,
) -> None:
    """Copy the digests that a witness of type s3 has.

    Of each digest the command takes the earliest version, the one that nobody could replace; `aws s3 sync` takes the
    latest. Give the folder to `audit verify --digests`. Use your own account, not the gateway's. Without --credentials
    the command takes the credentials from the environment, or from the files of Amazon's tools. Exit code 0: copied; 2:
    not copied; 3: wrong use.
    """
    from gateway.audit_trail.witnesses.s3_objects import Bucket, BucketError, fetch_digests

    named = _PLACE.fullmatch(place)
    if named is None:
        raise typer.BadParameter("write s3://BUCKET/PREFIX, as the witness has them")
    try:
        count, new = fetch_digests(
            Bucket(
                bucket=named[1],
                prefix=named[2] or "",
                endpoint=endpoint,
                credentials_file="" if credentials is None else str(credentials),
            ),
            to,
        )
    except BucketError as error:
        raise CommandFailed(f"{place}: {error} (check the bucket, --endpoint and --credentials)") from None
    if not count:
        raise CommandFailed(f"{place} has no digest")
    write_line(f"{counted(count, 'digest')}, {new} of them new, in {to}")
