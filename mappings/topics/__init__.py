"""Topic names, filters and patterns of MQTT and MQ, streams, and the index that finds who matches."""
