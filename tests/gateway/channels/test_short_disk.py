"""A disk that is short of space: what targets publish stays at their queue managers, and nothing else is held up."""

from pathlib import Path

import pytest

from gateway.channels.channels import Channels
from gateway.config import Settings
from mq_adapters.embedded.engine import Engine
from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError
from tests.mq_adapters.channel.faults import Connection

ANY = Message(MessageDescriptor(persistence=MQPER_PERSISTENT), b"publication")


def test_publications_are_refused_until_there_is_room(tmp_path: Path) -> None:
    engine = Engine.open(tmp_path)
    subscriber, reply = (engine.ensure(name, "") for name in ("RFHBRIDGE.SUBSCRIBER", "RFHBRIDGE.REPLY"))
    settings = Settings.model_validate({"data": str(tmp_path), "target": [{"name": "CENTRAL"}]})
    channels = Channels(engine, settings, subscriber_queue=subscriber, reply_queue=reply, command=("false",))
    hand = Connection(engine, "channel")
    channels.disk_space_changed(True)
    with pytest.raises(QueueManagerError) as refused:
        hand.put(subscriber.name, ANY)
    assert refused.value.reason_code == 2056
    for name in (reply.name, "RFHBRIDGE.CHANNEL.STATE", "SYSTEM.DEAD.LETTER.QUEUE"):
        hand.put(name, ANY)
    channels.disk_space_changed(False)
    hand.put(subscriber.name, ANY)
    hand.close()
    engine.close()
