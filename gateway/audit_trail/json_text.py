"""Values as JSON text: what lines of the trail are put together from."""

import binascii

import orjson


def json_text(text: str) -> str:
    """A JSON string with its quotes; what UTF-8 cannot say (lone surrogates) becomes a question mark."""
    try:
        return orjson.dumps(text).decode()
    except orjson.JSONEncodeError:
        return orjson.dumps(text.encode(errors="replace").decode()).decode()


def truth_text(value: object) -> str:
    return "true" if value else "false"


def base64_text(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode()


def digest_text(value: bytes | str) -> str:
    return value if isinstance(value, str) else value.hex()
