"""What follows from a reason code. The codes and what they ask for: IBM MQ, "API completion and reason codes"."""

import pickle

import pytest

from mq_adapters.reasons import Action, QueueManagerError, ReasonCode, what_to_do, what_to_do_after_commit


@pytest.mark.parametrize(
    ("reason_codes", "action"),
    [
        ((2033,), Action.CARRY_ON),
        ((2009, 2549), Action.OUTCOME_UNKNOWN),
        ((2059, 2538, 2537, 2543, 2161, 2162, 2202, 2203, 2548, 2601), Action.RECONNECT),
        ((2003,), Action.RETRY),
        ((2053, 2056, 2051, 2268, 2269, 2189, 2270, 2102, 2071, 2017, 2016, 2042), Action.RETRY_LATER),
        ((2024,), Action.SMALLER_BATCH),
        ((2041, 2052), Action.REOPEN),
        ((2030, 2031, 2218, 2048, 2013, 2026, 2334, 2421, 2110), Action.POISON),
        (
            (2085, 2082, 2086, 2087, 2184, 2058, 2540, 2539, 2035, 2063, 2392, 2393, 2396, 2398, 2371, 2495),
            Action.CONFIGURATION,
        ),
        ((2123, 2124, 2101), Action.ALARM),
        ((2018, 2019, 2219, 2500, 2046, 2173, 2186), Action.DEFECT),
    ],
)
def test_each_reason_has_its_action(reason_codes, action):
    assert {what_to_do(code) for code in reason_codes} == {action}


def test_no_message_is_thrown_out_for_a_code_that_is_unknown():
    assert what_to_do(9999) is Action.CONFIGURATION


@pytest.mark.parametrize("reason_code", [2009, 2102, 2162, 2195, 2018, 9999])
def test_a_commit_that_fails_may_have_taken_place(reason_code):
    assert what_to_do_after_commit(reason_code) is Action.OUTCOME_UNKNOWN


def test_a_commit_that_says_backed_out_did_not_take_place():
    assert what_to_do_after_commit(ReasonCode.MQRC_BACKED_OUT) is Action.RETRY
    assert what_to_do_after_commit(ReasonCode.MQRC_OUTCOME_MIXED) is Action.ALARM


def test_an_error_names_its_reason_and_what_to_do():
    assert str(QueueManagerError(2085, "open STREAM", "define it there")) == (
        "open STREAM: 2085 MQRC_UNKNOWN_OBJECT_NAME (define it there)"
    )
    assert str(QueueManagerError(9999, "open STREAM")) == "open STREAM: 9999 MQRC_9999"


def test_an_error_can_be_sent_to_another_process():
    error = pickle.loads(pickle.dumps(QueueManagerError(2085, "open STREAM", "define it there")))
    assert (error.reason_code, error.operation, error.hint) == (2085, "open STREAM", "define it there")
