"""Marks of the queue manager's commands for MQSUB, and of the copies that they bring."""

import pytest

from mq_adapters.message import MQAT_BROKER, MQAT_UNIX, MessageDescriptor
from mq_adapters.subscription_mark import (
    COPY_MARK,
    MQPRI_PRIORITY_AS_PUBLISHED,
    is_marked_copy,
    marked_command,
    priority_of_command,
)


@pytest.mark.parametrize("priority", [MQPRI_PRIORITY_AS_PUBLISHED, 0, 9])
def test_a_command_says_the_priority_of_its_copies(priority: int) -> None:
    descriptor = marked_command(MessageDescriptor(correl_id=b"c" * 24), priority)
    assert (descriptor.correl_id, len(descriptor.appl_origin_data)) == (b"c" * 24, 4)
    assert priority_of_command(descriptor) == priority


@pytest.mark.parametrize("origin", ["", "MS", "MS10", "MSxx", COPY_MARK])
def test_other_commands_say_none(origin: str) -> None:
    marked = marked_command(MessageDescriptor(), 3)
    assert priority_of_command(marked.replace(put_appl_type=MQAT_UNIX)) is None
    assert priority_of_command(marked.replace(appl_origin_data=origin)) is None


def test_a_copy_is_known_by_its_mark_and_its_putter() -> None:
    copy = MessageDescriptor(put_appl_type=MQAT_BROKER, appl_origin_data=COPY_MARK)
    assert is_marked_copy(copy)
    assert not is_marked_copy(copy.replace(put_appl_type=MQAT_UNIX))
    assert not is_marked_copy(copy.replace(appl_origin_data=""))
