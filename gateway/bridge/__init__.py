"""The bridge: MQTT events become publish/subscribe commands on queues, publications on queues become packets."""
