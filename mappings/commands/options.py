"""Registration, publication and delete options: flags, wire tokens, decimal sums.

In both formats an option is a token (`CorrelAsId`) or a decimal sum of IBM's constants (`257`), and repeated fields are
ORed. We write tokens. Beware: bit 4 is Local in registration and delete options, but OtherSubsOnly in publication
options. Tokens, numbers and formats come from `options.toml`.
"""

import re
from enum import IntFlag

from mappings.errors import CommandError
from mappings.reasons import Reason
from mappings.table import OPTION_ROWS, Dialect, OptionRow, TableError


class RegistrationOption(IntFlag):
    """MQPSRegOpts and RegOpt (MQREGO_ constants)."""

    CORREL_ID_AS_IDENTITY = 1
    ANONYMOUS = 2
    LOCAL = 4
    DIRECT_REQUESTS = 8
    NEW_PUBLICATIONS_ONLY = 16
    PUBLISH_ON_REQUEST_ONLY = 32
    DEREGISTER_ALL = 64
    INCLUDE_STREAM_NAME = 128
    INFORM_IF_RETAINED = 256
    DUPLICATES_OK = 512
    NON_PERSISTENT = 1024
    PERSISTENT = 2048
    PERSISTENT_AS_PUBLISH = 4096
    PERSISTENT_AS_Q = 8192
    ADD_NAME = 16384
    NO_ALTERATION = 32768
    FULL_RESPONSE = 65536
    JOIN_SHARED = 131072
    JOIN_EXCLUSIVE = 262144
    LEAVE_ONLY = 524288
    VARIABLE_USER_ID = 1048576
    LOCKED = 2097152


class PublicationOption(IntFlag):
    """MQPSPubOpts and PubOpt (MQPUBO_ constants)."""

    CORREL_ID_AS_IDENTITY = 1
    RETAIN_PUBLICATION = 2
    OTHER_SUBSCRIBERS_ONLY = 4
    NO_REGISTRATION = 8
    IS_RETAINED_PUBLICATION = 16


class DeleteOption(IntFlag):
    """MQPSDelOpts and DelOpt (MQDELO_ constants)."""

    LOCAL = 4


NO_REGISTRATION_OPTIONS = RegistrationOption(0)
NO_PUBLICATION_OPTIONS = PublicationOption(0)
NO_DELETE_OPTIONS = DeleteOption(0)

Option = RegistrationOption | PublicationOption | DeleteOption
OptionClass = type[RegistrationOption] | type[PublicationOption] | type[DeleteOption]

NO_OPTIONS_TOKEN = "None"
OPTION_FIELDS = {"RegOpt": "registration", "PubOpt": "publication", "DelOpt": "delete"}  # field, and kind of option
_DECIMAL = re.compile(r"[0-9]{1,10}")

_KINDS: dict[OptionClass, str] = {
    RegistrationOption: "registration",
    PublicationOption: "publication",
    DeleteOption: "delete",
}
_REASONS: dict[OptionClass, Reason] = {
    RegistrationOption: Reason.MQRCCF_REG_OPTIONS_ERROR,
    PublicationOption: Reason.MQRCCF_PUB_OPTIONS_ERROR,
    DeleteOption: Reason.MQRCCF_DEL_OPTIONS_ERROR,
}


def rows_of(option_class: OptionClass, table: tuple[OptionRow, ...]) -> tuple[OptionRow, ...]:
    """The rows of one kind of options; TableError when they are not those of the flag class."""
    rows = tuple(row for row in table if row.kind == _KINDS[option_class])
    if {row.member: row.number for row in rows} != {member.name: member.value for member in option_class}:
        raise TableError(f"options.toml and {option_class.__name__} do not agree")
    return rows


_ROWS: dict[OptionClass, tuple[OptionRow, ...]] = {
    option_class: rows_of(option_class, OPTION_ROWS) for option_class in _KINDS
}
_NUMBERS: dict[OptionClass, dict[str, int]] = {
    option_class: {row.token: row.number for row in rows} | {NO_OPTIONS_TOKEN: 0}
    for option_class, rows in _ROWS.items()
}

_ALL_BITS: dict[OptionClass, int] = {
    option_class: sum(row.number for row in rows) for option_class, rows in _ROWS.items()
}


def option_rows(option: Option) -> tuple[OptionRow, ...]:
    """The table rows of the options that are set, in table order."""
    number = int(option)
    return tuple(row for row in _ROWS[type(option)] if row.number & number) if number else ()


def tokens_of(option: Option) -> tuple[str, ...]:
    """The wire tokens of the options that are set, in table order; none for 0."""
    return tuple(row.token for row in option_rows(option))


def option_number(option_class: OptionClass, value: str) -> int:
    """The number of one value from the wire: a token, or a decimal sum; hexadecimal is not accepted.

    Raises CommandError (MQRCCF_REG_OPTIONS_ERROR, PUB or DEL) for an unknown token or bit.
    """
    number = _NUMBERS[option_class].get(value)
    if number is not None:
        return number
    if not _DECIMAL.fullmatch(value) or int(value) & ~_ALL_BITS[option_class]:
        raise options_error(option_class, value, "is neither a known token nor a sum of known options")
    return int(value)


def check_option(option: Option, *, verb: str, dialect: Dialect) -> None:
    """CommandError for an option that the command or the format does not have."""
    if int(option) & ~_ALL_BITS[type(option)]:
        raise options_error(type(option), str(int(option)), "has a bit that stands for no option")
    for row in option_rows(option):
        if dialect not in row.formats:
            raise options_error(type(option), row.token, f"does not exist in {dialect.value}")
        if verb not in row.commands:
            raise options_error(type(option), row.token, f"is not an option of {verb}")


def options_error(option_class: OptionClass, value: str, problem: str) -> CommandError:
    """The error for a wrong option, with the offending value."""
    kind = _KINDS[option_class]
    return CommandError(_REASONS[option_class], f"{kind} option {value[:64]!a} {problem}", parameter=value)
