"""A second, independent reading of headers, commands and the field-mapping table, to re-perform conversions.

Typed from "Message formats" (aq19780_) and the specifications. It shares no code and no data file with the package
that it checks.
Entry: performance.reperform. Everything is pure: bytes and facts in, an Comparison out.
"""
