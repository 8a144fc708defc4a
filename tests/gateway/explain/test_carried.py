"""Folders of JMS in explanations: only where the option of the topic's route asks for them."""

from functools import partial

import pytest

import tests.headers
from gateway.config import Settings
from gateway.explain.command import Question
from gateway.explain.explanation import explain
from gateway.mqtt.properties import PublishProperties

SETTINGS = {
    "publish": {"jms_folders": True},
    "target": [{"name": "NEW", "jms_folders": True}, {"name": "OLD"}],
    "route": [{"target": "NEW", "topics": ["new/#"]}, {"target": "OLD", "topics": ["old/#"]}],
}
TEXT = PublishProperties(payload_format_indicator=1)


@pytest.mark.parametrize("topic", ["new/a", "here/a"])
def test_the_folders_stand_where_the_bridge_would_write_them(topic: str) -> None:
    asked = Question(topic=topic, properties=TEXT)
    publish = explain(Settings.model_validate(SETTINGS), asked).commands[0]
    folders = (
        f"<psc><Command>Publish</Command><Topic>{topic}</Topic></psc>",
        "<mcd><Msd>jms_text</Msd></mcd>",
        f"<jms><Dst>topic://{topic}</Dst><Tms>0</Tms><Pri>0</Pri><Dlv>2</Dlv></jms>",
        f"<mqps><Top>{topic}</Top></mqps>",
    )
    assert tuple(part for part in publish.header_text[:4]) == folders
    assert publish.header_text[4].startswith("<usr>")


def test_without_the_option_there_are_none() -> None:
    publish = explain(Settings.model_validate(SETTINGS), Question(topic="old/a")).commands[0]
    assert publish.header == partial(tests.headers.mqrfh2, format=tests.headers.NO_FORMAT)(
        "<psc><Command>Publish</Command><Topic>old/a</Topic></psc>",
        "<usr><rfhbQos dt='i4'>1</rfhbQos><rfhbClient>sensor</rfhbClient><rfhbSeq dt='i8'>1</rfhbSeq></usr>",
    )
