"""PUB and SUB of topic objects towards sensors, and the user of an application: what a gateway makes of them."""

import os
import pwd
import struct

from mq_adapters import connect as connect_queue_manager
from mq_adapters.message import MQMT_REQUEST, MQPER_PERSISTENT, Message, MessageDescriptor
from tests.end_to_end.conftest import Connect
from tests.end_to_end.gateway_process import Gateway

PATIENCE_S = 30.0
NOT_AUTHORIZED = 3081
#: Where an MQDLH has the reason (offset 8), and where it ends.
DEAD_LETTER_REASON, DEAD_LETTER_BYTES = slice(8, 12), 172


def test_sensor_is_acknowledged_and_what_nobody_may_publish_is_kept_with_its_reason(
    gateway: Gateway, connect: Connect
) -> None:
    with connect_queue_manager(gateway.data) as queue_manager:
        assert queue_manager.mqsc("DEFINE TOPIC(SHUT) TOPICSTR('shut') PUB(DISABLED) SUB(DISABLED)").succeeded
        client = connect(gateway)
        client.send("connects", "10 10 0004 'MQTT' 04 02 003C 0004 'shut'")
        client.expect("is accepted", "20 02 00 00")
        client.send("subscribes below what is shut", "82 0B 0001 0006 'shut/a' 01")
        client.expect("is refused", "90 03 0001 80")
        client.send("subscribes to all", "82 06 0002 0001 '#' 01")
        client.expect("is granted QoS 1", "90 03 0002 01")
        client.send("publishes below what is shut", "32 0C 0006 'shut/a' 0001 'no'")
        client.expect("gets PUBACK all the same", "40 02 0001")
        dead = queue_manager.get("SYSTEM.DEAD.LETTER.QUEUE", wait_s=PATIENCE_S)
        assert struct.unpack("<i", dead.body[DEAD_LETTER_REASON]) == (NOT_AUTHORIZED,)
        assert dead.body[DEAD_LETTER_BYTES:].endswith(b"no")
        assert queue_manager.mqsc("ALTER TOPIC(SHUT) PUB(ENABLED)").succeeded
        client.send("publishes there again", "32 0D 0006 'shut/a' 0002 'yes'")
        client.expect("gets PUBACK and its own publication", "40 02 0002", "32 0D 0006 'shut/a' 0001 'yes'")


def test_subscription_belongs_to_the_user_of_the_application_that_registered_it(gateway: Gateway) -> None:
    name = pwd.getpwuid(os.geteuid()).pw_name
    user = name if len(name) <= 12 else "UNKNOWN"  # MQMD.UserIdentifier has 12 characters
    folder = b"<psc><Command>RegSub</Command><QName>APP</QName><Topic>a</Topic></psc>  "
    header = b"RFH " + struct.pack("<iiii8sii", 2, 40 + len(folder), 546, 1208, b" " * 8, 0, 1208)
    message = header + struct.pack("<i", len(folder)) + folder
    with connect_queue_manager(gateway.data) as queue_manager:
        for queue_name in ("APP", "APP.REPLY"):
            queue_manager.define(queue_name)
        for user_identifier, answer in (("", b">ok<"), ("somebody", b"<Reason>3078</Reason><UserId>somebody<")):
            descriptor = MessageDescriptor(
                msg_type=MQMT_REQUEST,
                persistence=MQPER_PERSISTENT,
                format=b"MQHRF2  ",
                reply_to_q="APP.REPLY",
                user_identifier=user_identifier,
            )
            queue_manager.put("SYSTEM.BROKER.CONTROL.QUEUE", Message(descriptor, message))
            assert answer in queue_manager.get("APP.REPLY", wait_s=PATIENCE_S).body
        shown = "\n".join(queue_manager.mqsc("DISPLAY SUB(*) SUBUSER DEST WHERE(DEST EQ APP)").lines)
    assert f"SUBUSER({user})" in shown.replace("'", "")
