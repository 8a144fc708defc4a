"""The daemon: MQTT in and out, the bridge to queued publish/subscribe, access, operations and the command line.

The top floor: it imports `mq_adapters`, `mappings` and the audit record of `spark_audit`; nothing imports it.
"""
