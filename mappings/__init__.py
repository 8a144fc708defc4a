"""The language of queued publish/subscribe: headers, commands, the field-mapping table, conversion.

Floor 0 of the house: bytes in, values out, and back. Nothing here reads a clock, a setting or a socket. Two packaged
tables, `fields.toml` and `options.toml`, are read once, at import. README.md describes the rooms.
On the way of a PUBLISH this is step 4 (command to header bytes) and, inside the broker, step 7a.
"""
