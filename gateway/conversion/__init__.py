"""Headers in the other format: the conversion service from queue to queue, and the conversion of one message."""
