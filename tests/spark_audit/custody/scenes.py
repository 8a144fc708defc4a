"""Records of a gateway for tests of custody: a small language for who does what."""

import base64
from collections.abc import Iterator
from typing import Any

from spark_audit.custody.commands import row_of
from tests.headers import mqrfh2

Record = dict[str, Any]
STREAM, CONTROL, LANES = "SYSTEM.BROKER.DEFAULT.STREAM", "SYSTEM.BROKER.CONTROL.QUEUE", "RFHBRIDGE.SUBSCRIBER"
MQHRF2 = "MQHRF2"


def record(kind: str, **fields: Any) -> Record:
    """A record with these fields; bytes become base64, and a field that is None is left out."""
    told = {name: value for name, value in fields.items() if value is not None}
    encoded = {name: base64.b64encode(v).decode() if isinstance(v, bytes) else v for name, v in told.items()}
    described = {f"{side}_{name}": value for side in _SIDES if side in told for name, value in _DESCRIBED.items()}
    return {"kind": kind, "batch": 1, "sequence": 1, "gateway": "g"} | described | encoded


_SIDES = ("input", "output")
_DESCRIBED = {"ccsid": 1208, "encoding": 546}


class Scene:
    """Writes the trail of a gateway, commit by commit. Numbers are given as the gateway gives them."""

    def __init__(self, *, is_whole: bool = True) -> None:
        self.records: list[Record] = []
        self._batch = 0
        self._number = 0
        self._sequence = 0 if is_whole else 10
        if is_whole:
            self.commit(record("started"), record("stock", event="queues", messages=0))

    def commit(self, *records: Record) -> None:
        """One commit of these records."""
        self._batch += 1
        for each in records:
            self._sequence += 1
            self.records.append(each | {"batch": self._batch, "sequence": self._sequence})

    def skip(self, records: int) -> None:
        """So many records are missing."""
        self._sequence += records

    def number(self) -> str:
        """The MsgId of the next message."""
        self._number += 1
        return f"52464842{self._number:040x}"

    def rows(self) -> Iterator[Record]:
        """What the replay reads of it."""
        return map(row_of, self.records)

    # -- what clients do -----------------------------------------------------------------------------------------------

    def session(self, client: str, event: str, epoch: int = 1) -> None:
        self.commit(_session(client, event, epoch))

    def subscribe(self, client: str, topic: str, qos: int = 1, *, options: str = "", epoch: int = 1) -> list[Record]:
        """A RegSub that a SUBSCRIBE asks for, in no commit yet."""
        entry = len(topic).to_bytes(2, "big") + topic.encode() + bytes([qos])
        return [self._command(client, epoch, "RegSub", 8, topic, options, entry)]

    def unsubscribe(self, client: str, topic: str, epoch: int = 1) -> list[Record]:
        entry = len(topic).to_bytes(2, "big") + topic.encode()
        return [self._command(client, epoch, "DeregSub", 10, topic, "", entry)]

    def deregister_all(self, client: str, epoch: int = 1) -> list[Record]:
        return [self._command(client, epoch, "DeregSub", 14, "", "<RegOpt>DeregAll</RegOpt>", b"")]

    def _command(
        self, client: str, epoch: int, verb: str, packet_type: int, topic: str, options: str, entry: bytes
    ) -> Record:
        topics = f"<Topic>{topic}</Topic>" if topic else ""
        header = mqrfh2(
            f"<psc><Command>{verb}</Command><RegOpt>CorrelAsId</RegOpt>{options}<QName>{LANES}</QName>{topics}</psc>"
        )
        return record(
            "put",
            direction="in",
            client=client,
            session_epoch=epoch,
            packet_type=packet_type,
            packet_identifier=1 if entry else None,
            topic=topic,
            command=verb,
            queue=CONTROL,
            message_id=self.number(),
            correlation_id=lane(client, epoch),
            conversion="packet_to_header",
            persistent=True,
            input=entry or None,
            output=header,
            output_format=MQHRF2,
        )

    def publish(self, client: str, topic: str, *copies: str, qos: int = 1, retain: bool = False) -> list[Record]:
        """A publication and its copies, for these clients (with `/2`: of their second session) or `queue:NAME`."""
        option = "<PubOpt>RetainPub</PubOpt>" if retain else ""
        header = mqrfh2(f"<psc><Command>Publish</Command>{option}<Topic>{topic}</Topic></psc>")
        put = record(
            "put",
            direction="in",
            client=client,
            session_epoch=1,
            packet_type=3,
            qos=qos,
            retain=retain,
            topic=topic,
            command="Publish",
            queue=STREAM,
            message_id=self.number(),
            persistent=qos > 0,
            conversion="packet_to_header",
            output=header,
            output_format=MQHRF2,
        )
        return [put, *(self.copy(put, each) for each in copies)]

    def copy(self, put: Record, target: str, *, is_retained: bool = False) -> Record:
        queue, correlation_id = (target[6:], BROKERS) if target.startswith("queue:") else (LANES, lane(target))
        return record(
            "put",
            topic=put["topic"],
            command="Publish",
            queue=queue,
            message_id=self.number(),
            correlation_id=correlation_id,
            source_message_id=put["message_id"],
            conversion="header_to_header",
            output_format=MQHRF2,
            is_retained=is_retained,
        )

    def deliver(self, copy: Record, client: str, qos: int = 1, *, exchange: int = 0, epoch: int = 1) -> Record:
        return record(
            "delivered",
            direction="out",
            client=client,
            session_epoch=epoch,
            exchange=exchange or int(copy["message_id"][-6:], 16),
            packet_type=3,
            qos=qos,
            granted_qos=qos,
            topic=copy["topic"],
            queue=copy["queue"],
            message_id=copy["message_id"],
            correlation_id=copy["correlation_id"],
        )

    def acknowledge(self, delivery: Record, packet_type: int = 4) -> Record:
        names = ("client", "session_epoch", "exchange", "message_id")
        return record("acknowledged", direction="out", packet_type=packet_type) | {n: delivery[n] for n in names}

    def stock(self, **waiting: int) -> None:
        """A stock-take, in which so many messages wait for clients."""
        depths = [[lane(client), str(number), "0"] for client, number in waiting.items()]
        rows = [record("stock", event="queues", messages=sum(waiting.values()), queues=int(bool(waiting)))]
        if waiting:
            of_queue = {"messages": sum(waiting.values()), "subscribers": len(waiting)}
            rows.append(record("stock", event="queue", queue=LANES, **of_queue))
            rows.append(
                record("stock", event="subscribers", queue=LANES, messages=sum(waiting.values()), depths=depths)
            )
        self.commit(*rows)


BROKERS = b"RFHBSUBS".hex() + "00" * 16


def lane(client: str, epoch: int = 1) -> str:
    """The CorrelId of a client's session; `client/2` is the second one."""
    name, _, number = client.partition("/")
    return (b"RFHS" + f"{name}{number or epoch}".encode().ljust(20, b"\0")).hex()


def _session(client: str, event: str, epoch: int) -> Record:
    return record("session", client=client, session_epoch=epoch, event=event)


def session_record(client: str, event: str, epoch: int = 1) -> Record:
    """A session record, in no commit yet."""
    return _session(client, event, epoch)


def connected(*clients: str, is_whole: bool = True) -> Scene:
    """A trail in which these clients have just connected."""
    scene = Scene(is_whole=is_whole)
    for client in clients:
        scene.session(client, "opened")
    return scene
