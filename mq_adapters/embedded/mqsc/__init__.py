"""The command server: MQSC commands, and what DISPLAY shows."""
