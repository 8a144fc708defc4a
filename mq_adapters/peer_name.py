"""SSLPEER: the distinguished name that a client's certificate must have, with wildcards.

    CN=pump-*, O=Plant, OU=North

Each attribute that is named must be in the certificate's subject with that value. A `*` at the end of a value stands
for anything. Attributes that are not named may have any value. A comma, a quotation mark or a backslash in a value has
a backslash in front. Source: IBM MQ, "IBM MQ rules for SSLPEER values".
"""

import re
from dataclasses import dataclass
from typing import Final

#: The attributes that a subject can be asked for, as RFC 4514 names them, and IBM's other names of them.
_NAMES: Final = frozenset({"CN", "C", "DC", "L", "O", "OU", "ST", "STREET", "UID"})
_OTHER_NAMES: Final = {"S": "ST", "SP": "ST", "USERID": "UID"}
_PART: Final = re.compile(r"\s*([A-Za-z]+)\s*=\s*((?:[^,\\]|\\.)*)(?:,|\Z)")
_ESCAPED: Final = re.compile(r"\\(.)")

#: A certificate's subject: attributes with their values, in any order.
Subject = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class PeerName:
    """The attributes that are asked for, each with its value."""

    parts: Subject

    @classmethod
    def parse(cls, text: str) -> "PeerName":
        """Reads a value of SSLPEER. ValueError says what is wrong."""
        parts: list[tuple[str, str]] = []
        position = 0
        while position < len(text):
            found = _PART.match(text, position)
            if found is None:
                raise ValueError(f"{text[position:]!r} is no attribute with a value, such as CN=pump-7")
            name = found[1].upper()
            name = _OTHER_NAMES.get(name, name)
            value = _ESCAPED.sub(r"\1", found[2].rstrip())
            if name not in _NAMES or not value:
                raise ValueError(f"{found[1]} must be one of {', '.join(sorted(_NAMES))}, with a value")
            parts.append((name, value))
            position = found.end()
        return cls(tuple(parts))

    def matches(self, subject: Subject) -> bool:
        """Whether a subject has every attribute that is asked for; one that is asked for twice, twice."""
        left = list(subject)
        for name, value in self.parts:
            found = next((each for each in left if each[0] == name and _is_like(each[1], value)), None)
            if found is None:
                return False
            left.remove(found)
        return True


def _is_like(value: str, wanted: str) -> bool:
    return value.startswith(wanted[:-1]) if wanted.endswith("*") else value == wanted
