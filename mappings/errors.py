"""The errors of mappings. Each says what is wrong with a header, a command or a conversion, and what to do.

Each has IBM's reason code, so that a broker can answer with it and an operator can look it up.
"""

from mappings.reasons import reason_name


class MappingError(Exception):
    """A message cannot be read, or cannot be written in the wanted format.

    `offset` is the byte offset in the data that was read, `parameter` the name or value at fault, `error_position` the
    zero-based position in an MQRFH NameValueString that a response reports as MQPSErrorPos.
    """

    def __init__(
        self,
        reason_code: int,
        hint: str,
        *,
        offset: int | None = None,
        parameter: str | None = None,
        error_position: int | None = None,
    ) -> None:
        super().__init__(int(reason_code), hint)
        self.reason_code = int(reason_code)
        self.hint = hint
        self.offset = offset
        self.parameter = parameter
        self.error_position = error_position

    @property
    def reason_name(self) -> str:
        """IBM's name of the reason code, for example MQRC_RFH_ERROR."""
        return reason_name(self.reason_code)

    def __str__(self) -> str:
        where = "" if self.offset is None else f" at byte {self.offset}"
        return f"{self.reason_name} ({self.reason_code}){where}: {self.hint}"


class HeaderError(MappingError):
    """The bytes are not the structure that they claim to be: the fault of whoever wrote the message."""


class NameValueError(MappingError):
    """A NameValueString breaks its grammar, or a value in it cannot be read: the fault of the application."""


class CommandError(MappingError):
    """The header is well formed, but what it asks for is not a valid command: the fault of the application."""


class ConversionError(MappingError):
    """The content is valid, but the other format has no way to say it."""
