"""A real queue manager behind the port, over IBM's MQ client with ibmmq or pymqi, or over mq_adapters/native.

    settings = ConnectionSettings(connections=("mq1.example.com(1414)",), channel="RFHBRIDGE.SVRCONN")
    with IbmMq(settings) as queue_manager:
        queue_manager.put("ORDERS", Message(MessageDescriptor(), b"one"))

Each thread has an IbmMq of its own. Neither package is imported before the first connection, so that a plain install
works without IBM's libraries.
"""

from mq_adapters.ibm_mq.connection import ConnectionSettings
from mq_adapters.ibm_mq.queue_manager import IbmMq, Use

__all__ = ["ConnectionSettings", "IbmMq", "Use"]
