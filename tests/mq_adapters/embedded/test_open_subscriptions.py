"""Subscriptions that programs have open."""

from pathlib import Path

import pytest

from mq_adapters.embedded.application import Application
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.open_subscriptions import OpenSubscriptions
from mq_adapters.reasons import QueueManagerError, ReasonCode


def test_one_program_has_a_subscription_or_all_share_it(data_folder: Path) -> None:
    engine = Engine.open(data_folder, name="RFHB")
    one, two = Application(engine), Application(engine)
    known = OpenSubscriptions()
    known.add("kept", "first", one, is_shared=True)
    known.check("kept", is_shared=True)
    known.check("other", is_shared=False)
    with pytest.raises(QueueManagerError) as error:
        known.check("kept", is_shared=False)
    assert error.value.reason_code == ReasonCode.MQRC_SUBSCRIPTION_IN_USE
    known.add("kept", "second", two, is_shared=True)
    assert (known.others("kept", "first"), known.others("kept", "second")) == ([two], [one])
    known.remove("kept", "first")
    known.remove("kept", "first")
    known.remove("kept", "second")
    known.check("kept", is_shared=False)
    known.add("kept", "third", one, is_shared=False)
    with pytest.raises(QueueManagerError):
        known.check("kept", is_shared=True)
    engine.close()
