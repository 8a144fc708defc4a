"""The protocol of IBM MQ's clients on a server-connection channel: bytes in, events out, no socket and no clock.

IBM has not published it. What stands here is how IBM MQ's client was observed (com.ibm.mq.allclient 9.4.5.0), with the
names of Wireshark's MQ dissector, and IBM's published structures of the MQI (MQMD, MQOD, MQGMO, MQPMO, MQSD).
"""
