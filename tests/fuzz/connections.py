"""A coverage-guided fuzzer of MQTT connections at every level: whatever the bytes, events or a PeerError.

Run by `make fuzz`; see the README beside this. What an input says stands in mqtt_peer.py. What must hold: no exception,
the same events and the same last packet however the bytes are cut, nothing behind the last event, and what a PUBLISH
says of its own bytes.
"""

import sys
from pathlib import Path

import atheris

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT))

with atheris.instrument_imports(include=["gateway.mqtt"]):
    from gateway.mqtt.events import DisconnectReceived, PublishReceived, Violated
    from tests.fuzz.campaign import run
    from tests.fuzz.mqtt_peer import Peer, seeds, whole_and_cut

LONGEST_BYTES = 1_024


def check(peer: Peer) -> None:
    for number, event in enumerate(peer.events):
        if isinstance(event, PublishReceived):
            assert event.header[0] >> 4 == 3
            assert event.topic
            assert (event.qos > 0) == (event.packet_identifier > 0)
        if isinstance(event, Violated | DisconnectReceived):
            assert number == len(peer.events) - 1
            peer.receive(b"\xc0\x00")
            assert number == len(peer.events) - 1


def read_everything(given: bytes) -> None:
    """One input of the fuzzer."""
    if len(given) < 2:
        return
    whole, cut = whole_and_cut(given)
    check(whole)
    check(cut)
    assert whole.outcome() == cut.outcome()


if __name__ == "__main__":
    run("connections", read_everything, seeds(), longest_bytes=LONGEST_BYTES)
