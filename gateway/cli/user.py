"""`rfhbridge user`: the password file of the MQTT server's users, and the tokens of applications."""

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import typer

from gateway.access.application_tokens import (
    TokenHash,
    new_token,
    parse_application_tokens,
    read_application_tokens,
)
from gateway.access.password_hash import PasswordHash
from gateway.access.text_file import read_text_file
from gateway.access.users import Users, check_user_name, with_user, without_user
from gateway.cli.application import CommandFailed
from gateway.cli.examples import epilog
from gateway.cli.files import write_whole
from gateway.cli.password import ask_password, read_password
from gateway.cli.settings_options import ConfigOption, JsonOption
from gateway.cli.terminal import write_json, write_line, write_table
from gateway.config import Settings

#: The owner may read hashes, and perhaps a group, such as that of the gateway.
_MODE: Final = 0o600
_MODE_WITH_GROUP: Final = 0o640


def user_name(text: str) -> str:
    """A name that can stand in the file."""
    try:
        check_user_name(text)
    except ValueError as problem:
        raise typer.BadParameter(str(problem)) from None
    return text


UserName = Annotated[str, typer.Argument(metavar="NAME", callback=user_name, help="User name, as the client sends it.")]
FileOption = Annotated[
    Path | None,
    typer.Option("--file", metavar="FILE", readable=False, help="Password file. Default: the configured file."),
]

user = typer.Typer(
    help="Maintain the password file. A running gateway takes a change up within two seconds.",
    epilog=epilog("rfhbridge user add pump-7 --file users", "rfhbridge user list --file users"),
    rich_markup_mode=None,
)


@user.command(
    epilog=epilog(
        "rfhbridge user add pump-7 --file users",
        "rfhbridge user add pump-7 --file users --password-file pump-7.password",
        "openssl rand -hex 16 | rfhbridge user add pump-7 --file users",
    ),
    context_settings={"allow_extra_args": True},
)
def add(
    context: typer.Context,
    name: UserName,
    file: FileOption = None,
    config: ConfigOption = None,
    password_file: Annotated[
        Path | None,
        typer.Option("--password-file", metavar="FILE", readable=False, help="File whose first line is the password."),
    ] = None,
) -> None:
    """Add a user, or change a user's password.

    On a terminal the command asks for the password; elsewhere it reads the first line of standard input. The file keeps
    the Argon2id hash of the password.
    """
    if context.args:  # the message does not repeat the word, which is a password
        raise typer.BadParameter("never give a password on the command line, where others see it", context)
    path = _password_file(file, config)
    if path.exists():
        Users.read(path)  # errors in the file come before the question for a password
    password = ask_password(name) if password_file is None else read_password(password_file)
    entry = PasswordHash.of(password.encode(errors="surrogateescape"))
    with _locked(path):
        text = read_text_file(path) if path.exists() else ""
        is_known = name in Users.parse(text, str(path)).hashes
        write_whole(path, with_user(text, name, entry).encode(), mode=_mode(path))
    write_line(f"changed the password of {name}" if is_known else f"added {name}")


@user.command(epilog=epilog("rfhbridge user remove pump-7 --file users"))
def remove(name: UserName, file: FileOption = None, config: ConfigOption = None) -> None:
    """Remove a user.

    A running gateway closes the user's connections.
    """
    path = _password_file(file, config)
    with _locked(path):
        text = read_text_file(path)
        if name not in Users.parse(text, str(path)).hashes:
            raise CommandFailed(f"there is no user {name!r} in {path} (see 'rfhbridge user list')")
        write_whole(path, without_user(text, name).encode(), mode=_mode(path))
    write_line(f"removed {name}")


@user.command("list", epilog=epilog("rfhbridge user list --file users", "rfhbridge user list --file users --json"))
def list_users(
    file: FileOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the users and the cost of their hashes.

    A check of a password takes m KiB of memory, and t passes over it in p lanes. The command does not show hashes.
    """
    users = Users.read(_password_file(file, config))
    if as_json:
        write_json([{"name": name, "hash": "argon2id", "cost": entry.cost} for name, entry in users.hashes.items()])
        return
    write_table(("user", "hash", "cost"), [(name, "argon2id", entry.cost) for name, entry in users.hashes.items()])


token = typer.Typer(
    help="Maintain the tokens of applications. A running gateway takes a change up within two seconds.",
    epilog=epilog("rfhbridge user token add billing --file tokens", "rfhbridge user token list --file tokens"),
    rich_markup_mode=None,
)
user.add_typer(token, name="token")
TokenFileOption = Annotated[
    Path | None,
    typer.Option("--file", metavar="FILE", readable=False, help="File of tokens. Default: the configured file."),
]
ApplicationName = Annotated[
    str,
    typer.Argument(metavar="NAME", callback=user_name, help="Name of the application, as in [[application]]."),
]


@token.command("add", epilog=epilog("rfhbridge user token add billing --file tokens > billing.token"))
def add_token(name: ApplicationName, file: TokenFileOption = None, config: ConfigOption = None) -> None:
    """Make a token for an application, and print it.

    The application gives it when it connects: rfhbridge.connect(FOLDER, token=TOKEN). The file has only its hash, so
    nobody can show the token again. A second token replaces the first, and ends its connections.
    """
    made = new_token()
    path = _token_file(file, config)
    with _locked(path):
        text = read_text_file(path) if path.exists() else ""
        parse_application_tokens(text, str(path))
        write_whole(path, with_user(text, name, TokenHash.of(made)).encode(), mode=_mode(path))
    write_line(made)


@token.command("remove", epilog=epilog("rfhbridge user token remove billing --file tokens"))
def remove_token(name: ApplicationName, file: TokenFileOption = None, config: ConfigOption = None) -> None:
    """Remove the token of an application.

    A running gateway closes the connections that were made with it.
    """
    path = _token_file(file, config)
    with _locked(path):
        text = read_text_file(path)
        if name not in parse_application_tokens(text, str(path)):
            raise CommandFailed(f"there is no token of {name!r} in {path} (see 'rfhbridge user token list')")
        write_whole(path, without_user(text, name).encode(), mode=_mode(path))
    write_line(f"removed {name}")


@token.command("list", epilog=epilog("rfhbridge user token list --file tokens --json"))
def list_tokens(file: TokenFileOption = None, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List the applications that have a token."""
    names = list(read_application_tokens(_token_file(file, config)))
    if as_json:
        write_json([{"name": name, "hash": "sha256"} for name in names])
        return
    write_table(("application", "hash"), [(name, "sha256") for name in names])


def _token_file(file: Path | None, config: Path | None) -> Path:
    """The file that the options name, or the configuration."""
    configured = "" if file is not None else Settings.load(config).queue_manager.token_file
    if file is None and not configured:
        raise CommandFailed("no file of tokens is named (name it with --file, or a configuration with --config)")
    return file or Path(configured)


def _password_file(file: Path | None, config: Path | None) -> Path:
    """The file that the options name, or the configuration."""
    if file is not None:
        if (file.exists() or file.is_symlink()) and not file.is_file():
            raise OSError(errno.EINVAL, "not a regular file", str(file))
        return file
    configured = Settings.load(config).access.password_file
    if not configured:
        raise CommandFailed("no password file is named (name it with --file, or a configuration with --config)")
    return Path(configured)


def _mode(path: Path) -> int:
    """The permissions of the new file. A file that everybody may read was made by mistake, so it does not stay so."""
    is_a_groups = path.exists() and stat.S_IMODE(path.stat().st_mode) == _MODE_WITH_GROUP
    return _MODE_WITH_GROUP if is_a_groups else _MODE


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Admits one command at a time to the file's folder, because each replaces the whole file.

    The lock ends with the process.
    """
    descriptor = os.open(path.resolve().parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
