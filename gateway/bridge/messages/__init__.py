"""Messages as MQTT needs them: publications off a queue, and the properties that folder usr carries."""
