"""The sources of an MQTT user's password: a file, a prompt, standard input.

It never comes from the command line, which everybody on the machine can read.
"""

import sys
from pathlib import Path

from gateway.access.text_file import read_text_file
from gateway.cli.application import CommandFailed
from gateway.mqtt.wire import MAXIMUM_FIELD_BYTES


def read_password(file: Path) -> str:
    """The first line of a file. Raises CommandFailed, and ConfigurationError if the file cannot be read."""
    return _first_line(read_text_file(file), str(file))


def ask_password(name: str) -> str:
    """A new password: typed twice on a terminal, else the first line of standard input. Raises CommandFailed."""
    if not sys.stdin.isatty():
        return _first_line(_standard_input(), "standard input")
    from getpass import getpass

    password = getpass(f"Password of {name}: ")
    if getpass("Once more: ") != password:
        raise CommandFailed("the two passwords differ; nothing was changed (try again)")
    return _checked(password, "the terminal")


def _standard_input() -> str:
    try:
        return sys.stdin.buffer.readline(MAXIMUM_FIELD_BYTES + 2).decode()
    except UnicodeDecodeError:
        raise CommandFailed("the password on standard input is not UTF-8 (write it in UTF-8)") from None


def _first_line(text: str, source: str) -> str:
    return _checked(text.partition("\n")[0].removesuffix("\r"), source)


def _checked(password: str, source: str) -> str:
    """A password that a CONNECT can carry, which has two bytes for its length (MQTT 3.1.1 section 3.1.3.5)."""
    if not password:
        raise CommandFailed(f"the password from {source} is empty (give one)")
    if len(password.encode(errors="surrogateescape")) > MAXIMUM_FIELD_BYTES:
        raise CommandFailed(
            f"the password from {source} has more than {MAXIMUM_FIELD_BYTES} bytes (give a shorter one)"
        )
    return password
