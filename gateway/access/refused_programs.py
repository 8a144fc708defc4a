"""Why an MQ program may not connect."""

from enum import StrEnum

from mq_adapters.reasons import QueueManagerError, ReasonCode


class ProgramRefusal(StrEnum):
    """Why a program is refused: its channel, its credentials, its rights, or too many logins at once."""

    CHANNEL = "channel"
    WRONG_CREDENTIALS = "wrong_credentials"
    NOT_ALLOWED = "not_allowed"
    BUSY = "busy"


class ProgramRefused(QueueManagerError):
    """2035 at MQCONN. `rule` names what refuses it: a key of the configuration, or an attribute of its channel."""

    def __init__(self, refusal: ProgramRefusal, why: str, hint: str = "", *, rule: str = "") -> None:
        super().__init__(ReasonCode.MQRC_NOT_AUTHORIZED, why, hint)
        self.refusal, self.rule = refusal, rule
