"""The example in the package's docstring is run as it stands, against a gateway with its broker."""

import textwrap

import mq_adapters
from mappings.commands.command import FORMAT_MQRFH2, Dialect, Publish, write_command
from mappings.commands.options import PublicationOption
from mq_adapters.broker.broker import Broker
from mq_adapters.delivery_listener import Unheard
from mq_adapters.embedded.socket.client import SocketClient
from mq_adapters.message import Message, MessageDescriptor


def test_the_example_of_an_mq_application_gets_what_was_published(gateway_class, tmp_path, monkeypatch, capsys):
    gateway = gateway_class(tmp_path / "var")
    gateway.call(lambda: Broker(gateway.engine, listener=Unheard()).attach())
    publish = Publish(topics=("boiler/7",), publication_options=PublicationOption.RETAIN_PUBLICATION)
    with SocketClient(tmp_path / "var") as sensor:
        header = write_command(publish, Dialect.MQRFH2)
        sensor.put("SYSTEM.BROKER.DEFAULT.STREAM", Message(MessageDescriptor(format=FORMAT_MQRFH2), header + b"97.5"))
    monkeypatch.chdir(tmp_path)
    lines = mq_adapters.__doc__.splitlines(keepends=True)
    exec(textwrap.dedent("".join(line for line in lines if line.startswith("    ") or line == "\n")))
    shown = capsys.readouterr().out
    gateway.stop()
    assert shown.startswith("b'MQHRF   ' b'RFH ")
    assert "boiler/7" in shown
    assert shown.endswith("97.5'\n")
