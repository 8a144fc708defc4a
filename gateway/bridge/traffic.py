"""What passes between clients and bridge, in plain numbers: the metrics read them when they are asked for."""

from spark_audit.record import EVENTS, Kind


class Traffic:
    """Packets, and of those PUBLISHes by QoS, without the DISCONNECT or CONNACK that ends a connection."""

    __slots__ = ("answers", "delivered", "packets_received", "published", "repeated")

    def __init__(self) -> None:
        self.packets_received = 0
        #: Packets sent that are no PUBLISH.
        self.answers = 0
        #: PUBLISH packets that were received and not refused, and that were sent, repeats among them, by QoS.
        self.published = [0, 0, 0]
        self.delivered = [0, 0, 0]
        #: PUBLISH packets of QoS 2 whose identifier was held, by what they were (spark_audit.record.EVENTS).
        self.repeated = dict.fromkeys(EVENTS[Kind.REPEATED], 0)

    @property
    def packets_sent(self) -> int:
        return self.answers + sum(self.delivered)
