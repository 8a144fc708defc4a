"""Calls that took place with a warning (MQCC_WARNING): the packages raise an error although the message was taken.

The stand-in gives no such warnings, so the package's own calls are made to, behind a real connection to it.
"""

import pytest

from mq_adapters.ibm_mq import IbmMq
from mq_adapters.message import Message, MessageDescriptor

ANY = MessageDescriptor()


@pytest.mark.parametrize("reason_code", [2110, 2119, 2079])
def test_a_message_that_was_got_with_a_warning_is_delivered(queue_manager, monkeypatch, reason_code):
    library = queue_manager._hconn.library
    get = library.Queue.get

    def get_with_warning(self, *arguments: object) -> bytes:
        body = get(self, *arguments)
        raise library.MQMIError(1, reason_code, message=body, original_length=len(body))

    msg_id = queue_manager.put("ORDERS", Message(ANY, b"not converted"))
    monkeypatch.setattr(library.Queue, "get", get_with_warning)
    queue_manager.begin()
    got = queue_manager.get("ORDERS")
    queue_manager.commit()
    assert (got.body, got.msg_id) == (b"not converted", msg_id)
    monkeypatch.undo()
    assert queue_manager.depth("ORDERS") == 0


def test_a_message_that_was_put_with_a_warning_is_put_once(queue_manager, monkeypatch, caplog):
    library = queue_manager._hconn.library
    put = library.Queue.put

    def put_with_warning(self, *arguments: object) -> None:
        put(self, *arguments)
        raise library.MQMIError(1, 2104)  # MQRC_UNKNOWN_REPORT_OPTION

    monkeypatch.setattr(library.Queue, "put", put_with_warning)
    chosen = MessageDescriptor(msg_id=b"m" * 24)
    assert queue_manager.put("ORDERS", Message(chosen, b"one")) == b"m" * 24
    assert "put succeeded with a warning queue=ORDERS reason=2104" in caplog.text
    assert [message.body for message in queue_manager.browse("ORDERS")] == [b"one"]


def test_a_connection_that_was_made_with_a_warning_is_used(control, settings, monkeypatch):
    with IbmMq(settings) as first:
        library = first._hconn.library
    connect = library.QueueManager.connect_with_options

    def connect_with_warning(self, *arguments: object, **keywords: object) -> None:
        connect(self, *arguments, **keywords)
        raise library.MQMIError(1, 2391)  # MQRC_SSL_ALREADY_INITIALIZED: by another thread's connection

    monkeypatch.setattr(library.QueueManager, "connect_with_options", connect_with_warning)
    with IbmMq(settings) as connected:
        assert connected.depth("ORDERS") == 0
    assert control.connections() == []


def test_what_a_package_raises_of_its_own_becomes_our_error(queue_manager, monkeypatch):
    library = queue_manager._hconn.library

    def refuse(*_arguments: object) -> None:
        raise library.PYIFError("not open")

    monkeypatch.setattr(library.Queue, "put", refuse)
    with pytest.raises(Exception, match=r"put on ORDERS: .*not open.*2019"):
        queue_manager.put("ORDERS", Message(ANY, b""))
