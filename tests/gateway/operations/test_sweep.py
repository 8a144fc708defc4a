"""Ending registrations at a target: as many as there are, whatever a unit of work can hold."""

from pathlib import Path

from gateway.config import Settings
from gateway.operations.sweep import FoundRegistration, end_at_target
from mq_adapters.embedded.direct import Direct
from mq_adapters.transmission import read_transmission

TRANSMISSION_QUEUE = "RFHBRIDGE.XMIT.CENTRAL.0"


def test_more_registrations_are_ended_than_one_unit_of_work_holds(tmp_path: Path) -> None:
    settings = Settings.model_validate({"target": [{"name": "CENTRAL"}], "route": [{"target": "CENTRAL"}]})
    orphans = [
        FoundRegistration(sub_id="", topic="a", queue="RFHBRIDGE.SUBSCRIBER", correl_id=f"{number:048x}")
        for number in range(250)
    ]
    with Direct(tmp_path) as store:
        store.define(TRANSMISSION_QUEUE)
        assert store.mqsc("ALTER QMGR MAXUMSGS(120)").succeeded
        ended = end_at_target(store, settings, settings.target[0], [*orphans, orphans[0]], incarnation=bytes(12))
        assert ended == 250
        sent = [read_transmission(message, now_us=0).message for message in store.browse(TRANSMISSION_QUEUE)]
    assert [message.descriptor.correl_id.hex() for message in sent] == [orphan.correl_id for orphan in orphans]
    assert len({message.msg_id for message in sent}) == 250
    assert all(b"<RegOpt>DeregAll</RegOpt>" in message.body and message.is_persistent for message in sent)
