"""MQRFH, MQRFH2 and the chain of headers before a message's data: bytes to values, and back."""
