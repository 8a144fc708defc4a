"""Why an MQ program may not connect."""

from gateway.access.refused_programs import ProgramRefusal, ProgramRefused
from mq_adapters.reasons import ReasonCode


def test_a_program_is_told_2035_and_the_log_what_to_do() -> None:
    refused = ProgramRefused(ProgramRefusal.NOT_ALLOWED, "connect as 'eve'", "name the user", rule="channel#1.users")
    assert (refused.reason_code, refused.rule) == (ReasonCode.MQRC_NOT_AUTHORIZED, "channel#1.users")
    assert str(refused) == "connect as 'eve': 2035 MQRC_NOT_AUTHORIZED (name the user)"
