"""A trail told in the words of its records: what clients, broker and channels did, each with the fields it needs."""

import pytest

SUM, OTHER_SUM = "ab" * 32, "cd" * 32


class Story:
    """Adds records to a trail (see TrailBuilder); every method returns the sequence of the record that it adds."""

    def __init__(self, trail) -> None:
        self.trail = trail
        self.add = trail.add

    def accepted(self, exchange: int, qos: int, **fields: object) -> int:
        standard = {"packet_type": 3, "exchange": exchange, "qos": qos, "payload_sha256": SUM, "payload_bytes": 2}
        return self.add("accepted", **_BOILER | standard | fields)

    def repeated(self, exchange: int, event: str, **fields: object) -> int:
        standard = {"packet_type": 3, "exchange": exchange, "qos": 2, "payload_sha256": SUM, "payload_bytes": 2}
        return self.add("repeated", **_BOILER | standard | {"event": event} | fields)

    def put(self, exchange: int, qos: int, **fields: object) -> int:
        standard = {
            "packet_type": 3,
            "exchange": exchange,
            "qos": qos,
            "command": "Publish",
            "queue": "STREAM",
            "payload_sha256": SUM,
            "payload_bytes": 2,
            "message_id": message(exchange),
        }
        return self.add("put", **_BOILER | standard | fields)

    def published(self, exchange: int, qos: int, **fields: object) -> int:
        """Accepted and put; the sequence is the put's."""
        self.accepted(exchange, qos, **fields)
        return self.put(exchange, qos, **fields)

    def confirmed(self, packet_type: int, *ranges: list[int], **fields: object) -> int:
        return self.add("confirmed", **_BOILER | {"packet_type": packet_type, "exchanges": list(ranges)} | fields)

    def copied(self, publication: int, copy: int, **fields: object) -> int:
        standard = {"message_id": message(copy), "source_message_id": message(publication), "queue": "Q"}
        return self.add("put", **standard | {"conversion": "header_to_header"} | fields)

    def delivered(self, exchange: int, qos: int, number: int, **fields: object) -> int:
        standard = {"packet_type": 3, "exchange": exchange, "qos": qos, "message_id": message(number), "topic": "a/b"}
        return self.add("delivered", **_SCREEN | standard | fields)

    def acknowledged(self, exchange: int, packet_type: int = 4, **fields: object) -> int:
        return self.add("acknowledged", **_SCREEN | {"exchange": exchange, "packet_type": packet_type} | fields)

    def operated(self, command: str, queue: str, messages: int, **fields: object) -> int:
        on_queue = {"queue": queue} if queue else {"object": "screen"}
        act = {"command": command, "operator": "ann", "messages": messages}
        return self.add("operated", **on_queue | act | fields)

    def dropped_by_operator(self, queue: str, count: int, **fields: object) -> int:
        """The sequence is that of the first."""
        reason = {"queue": queue, "reason": "an operator destroyed it: CLEAR QLOCAL"}
        told = [self.add("dropped", message_id=message(900 + each), **reason | fields) for each in range(count)]
        return told[0]

    def session(self, event: str, **fields: object) -> int:
        return self.add("session", **{"client": "screen", "session_epoch": 2, "event": event} | fields)

    def forwarded(self, number: int, **fields: object) -> int:
        standard = {"message_id": message(number), "queue": "STOCK", "queue_manager": "QM1_2026"}
        return self.add("forwarded", **standard | fields)

    def received(self, number: int, target_message_id: str, **fields: object) -> int:
        standard = {"queue": "SUBSCRIBER", "queue_manager": "QM1_2026", "target_message_id": target_message_id}
        return self.add("received", message_id=message(number), **standard | fields)

    def started(self, **fields: object) -> int:
        standard = {"code_version": "0.1.0", "table_version": "1", "configuration_sha256": "0a" * 32}
        return self.add("started", **standard | fields)


_BOILER = {"direction": "in", "client": "boiler", "session_epoch": 1}
_SCREEN = {"direction": "out", "client": "screen", "session_epoch": 2}


def message(number: int) -> str:
    """A MsgId of the store: its last 16 digits are the number."""
    return f"52464842{'0a' * 12}{number:016x}"


@pytest.fixture
def story(trail) -> Story:
    return Story(trail)
