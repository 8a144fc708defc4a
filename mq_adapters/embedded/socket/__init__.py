"""The local socket through which other processes use the embedded queue manager."""
