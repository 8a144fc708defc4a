"""The header of a retained copy: the short way, for a header that this process wrote, gives what the long way gives."""

from itertools import product

import pytest

from mappings.commands.command import Dialect, Publish, write_command
from mappings.commands.options import NO_PUBLICATION_OPTIONS, PublicationOption
from mappings.headers.mqrfh2 import Folder
from mq_adapters.broker import delivered_header as module
from mq_adapters.broker.delivered_header import WantedHeader, delivered_header
from mq_adapters.command_header import WrittenCommand
from mq_adapters.message import MessageDescriptor
from tests.written_headers import compare

TOPICS = ("a/b", "ä/☃", "a b", "a&b<c>", '"a"', "x" * 2_000, "plant/" + "level/" * 50 + "end")
OPTIONS = (NO_PUBLICATION_OPTIONS, PublicationOption.RETAIN_PUBLICATION, PublicationOption.OTHER_SUBSCRIBERS_ONLY)
DESCRIBED = MessageDescriptor(format=b"MQHRF2  ", coded_char_set_id=1208, encoding=546)
USR = "<usr><colour>blue &amp; green</colour></usr>"


def _written(publish: Publish, folder: str) -> WrittenCommand:
    data = write_command(publish, Dialect.MQRFH2, extra_folders=(folder,) if folder else ())
    folders = (Folder(name="usr", raw=folder.encode()),) if folder else ()
    return WrittenCommand(publish, Dialect.MQRFH2, data, folders)


@pytest.mark.parametrize("marks", [True, False])
def test_the_short_way_gives_the_bytes_of_the_long_way(monkeypatch: pytest.MonkeyPatch, marks: bool) -> None:
    wanted = WantedHeader(dialect=Dialect.MQRFH2, marks_retained=marks, stream_name=None)
    cases = [
        _written(Publish(topics=(topic,), publication_options=options), folder)
        for topic, options, folder in product(TOPICS, OPTIONS, ("", USR))
    ]
    short = [delivered_header(published, wanted) for published in cases]
    assert all(module._marked(published) is not None for published in cases)
    monkeypatch.setattr(module, "_stays", lambda *_: False)
    long = [delivered_header(published, wanted) for published in cases]
    shown = [(each.data, each.format, each.coded_char_set_id, each.encoding, each.dropped) for each in short]
    assert shown == [(each.data, each.format, each.coded_char_set_id, each.encoding, each.dropped) for each in long]
    assert all((b"IsRetainedPub" in each.data) is marks for each in short)
    for each in short if marks else ():
        assert each.written is not None
        compare(each.written, each.written.message(DESCRIBED, b"", b""))


@pytest.mark.parametrize("more", [{"topics": ("a", "b")}, {"publication_time": "12"}, {"sequence_number": "7"}])
def test_a_header_that_says_more_goes_the_long_way(more: dict[str, object]) -> None:
    publish = Publish(**{"topics": ("a",), **more})
    assert module._marked(_written(publish, "")) is None
