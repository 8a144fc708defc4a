"""The language of queued publish/subscribe: headers, commands, the field-mapping table, conversion.

Floor 0 of the house: bytes in, values out, and back. Nothing here reads a clock, a setting or a socket; the only thing
read is the packaged pair of tables `fields.toml` and `options.toml`, once, at import.
On the way of a PUBLISH this is step 4 (command to header bytes) and, inside the broker, step 7a.
"""
