"""Marks of the queue manager's commands for MQSUB, and of the copies that they bring."""

import pytest

from mq_adapters.message import MQAT_BROKER, MQAT_UNIX, MessageDescriptor
from mq_adapters.subscription_mark import (
    COPY_MARK,
    MQPRI_PRIORITY_AS_PUBLISHED,
    MqsubMark,
    is_marked_copy,
    mark_of_command,
    marked_command,
)


@pytest.mark.parametrize("priority", [MQPRI_PRIORITY_AS_PUBLISHED, 0, 9])
@pytest.mark.parametrize("is_durable", [True, False])
def test_a_command_says_the_priority_of_its_copies_and_whether_it_lasts(priority: int, is_durable: bool) -> None:
    mark = MqsubMark(priority, is_durable)
    descriptor = marked_command(MessageDescriptor(correl_id=b"c" * 24), mark)
    assert (descriptor.correl_id, len(descriptor.appl_origin_data)) == (b"c" * 24, 4)
    assert mark_of_command(descriptor) == mark


@pytest.mark.parametrize("origin", ["", "MS", "MS10", "MSxx", "MX01", COPY_MARK])
def test_other_commands_say_none(origin: str) -> None:
    marked = marked_command(MessageDescriptor(), MqsubMark(3, True))
    assert mark_of_command(marked.replace(put_appl_type=MQAT_UNIX)) is None
    assert mark_of_command(marked.replace(appl_origin_data=origin)) is None


def test_a_copy_is_known_by_its_mark_and_its_putter() -> None:
    copy = MessageDescriptor(put_appl_type=MQAT_BROKER, appl_origin_data=COPY_MARK)
    assert is_marked_copy(copy)
    assert not is_marked_copy(copy.replace(put_appl_type=MQAT_UNIX))
    assert not is_marked_copy(copy.replace(appl_origin_data=""))
