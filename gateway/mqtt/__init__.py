"""MQTT without I/O: bytes in, events out; no socket and no clock.

Step 2 on the way of a PUBLISH: the listener hands in the bytes of the socket (`connection.Connection.receive_data`),
and gets back events in the order of the packets. The connection's `writer`, or `packets`, makes the answers. The caller
sends them, after the commit for which they stand. Protocol levels 3 ("MQIsdp", MQTT 3.1), 4 ("MQTT", MQTT 3.1.1) and 5
("MQTT", MQTT 5.0) are rows of one table in `levels`; `Connection(levels=...)` says which may connect.
"""
