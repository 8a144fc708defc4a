"""Whose a client identifier is: a user's own are its name, and its name with `:` and more behind it.

Where nobody is told to keep to that, any user may take the identifier of another's device and lock its owner out. So
`reserved` keeps for each known user what is its own, and leaves all other identifiers to whoever comes first: a fleet
of devices that share a user goes on as it was. `true` leaves a user nothing but its own.
"""

from collections.abc import Callable, Iterator
from typing import Final, Literal

#: [access] bind_client_identifier.
Binding = Literal[False, "reserved", True]

#: Between the user name and the rest of its client identifiers; no user name of the password file holds it.
SEPARATOR: Final = ":"
#: Users of tokens and certificates may have it in their names; further ones in an identifier are not looked at.
_SEPARATORS: Final = 16
#: The longest user name, in characters.
_LONGEST_OWNER: Final = 256


def why_refused(binding: Binding, user: str | None, client: str, is_known: Callable[[str], bool]) -> str:
    """Why a user (None: a client without one) may not have a client identifier; "" where it may.

    `is_known`: whether there is a user of that name. Of several whose name the identifier begins with, the longest name
    is the owner's.
    """
    if binding is False or not client:
        return ""
    for owner in _owners(client):
        if owner == user:
            return ""
        if is_known(owner):
            return f"client identifier {client!r} belongs to user {owner!r}"
    if binding is True and user is not None:
        return f"client identifier {client!r} is not user {user!r}, alone or with ':' and more behind it"
    return ""


def _owners(client: str) -> Iterator[str]:
    """The names of the users that the identifier may belong to, the longest first."""
    ends: list[int] = []
    at = -1
    while len(ends) < _SEPARATORS and 0 <= (at := client.find(SEPARATOR, at + 1)) <= _LONGEST_OWNER:
        ends.append(at)
    if len(client) <= _LONGEST_OWNER:
        ends.append(len(client))
    return (client[:end] for end in reversed(ends) if end)
