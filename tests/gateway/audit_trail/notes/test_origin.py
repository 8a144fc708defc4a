"""Private origins: who pays for a dead letter stands behind the client, and is gone when the message goes back."""

from gateway.audit_trail.notes.origin import ORIGIN, client_of, payer_of, with_payer, without_payer
from mq_adapters.message import Message, MessageDescriptor

OF_CLIENT = ORIGIN.pack(7, 8, 9, 2) + b"pump-7"


def test_a_payer_is_read_back_and_taken_off() -> None:
    marked = with_payer(Message(MessageDescriptor(), b"", OF_CLIENT), b"uanna")
    assert (client_of(marked), payer_of(marked), without_payer(marked)) == ("pump-7", b"uanna", OF_CLIENT)
    again = with_payer(Message(MessageDescriptor(), b"", marked), b"nnetwork")
    assert (payer_of(again), without_payer(again)) == (b"nnetwork", OF_CLIENT)


def test_an_applications_publication_has_no_origin_after_its_letter_went_back() -> None:
    """With one its QoS and RETAIN would be read from there, and no longer from its header."""
    marked = with_payer(Message(MessageDescriptor(), b"", b""), b"uanna")
    assert (client_of(marked), payer_of(marked), without_payer(marked)) == ("", b"uanna", b"")


def test_an_origin_without_a_payer_stays_as_it_is() -> None:
    assert [without_payer(each) for each in (b"", OF_CLIENT)] == [b"", OF_CLIENT]
