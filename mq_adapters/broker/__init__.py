"""The queued publish/subscribe engine of the embedded queue manager: both dialects, streams, retained publications."""
