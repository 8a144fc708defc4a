"""The page of the HTTP API, from the OpenAPI document that the gateway serves."""

import json
from importlib.resources import files
from typing import Any, Final

from docs.generator.markdown import code, sentence, table

INTRODUCTION: Final = """
The gateway serves this API where `[http] enabled = true`, on 127.0.0.1:8080 unless `[http] listen` says otherwise.
`GET /openapi.json` answers the same as an OpenAPI 3.1 document.
""".strip()


def lines() -> list[str]:
    """The page, without its title."""
    document = json.loads(files("gateway.operations").joinpath("openapi.json").read_bytes())
    return [
        *INTRODUCTION.splitlines(),
        document["info"]["description"],
        *(
            line
            for path, operations in document["paths"].items()
            for method, operation in operations.items()
            for line in _operation(f"{method.upper()} {path}", operation, document)
        ),
        "",
        "## Answers in JSON",
        *(line for name, schema in document["components"]["schemas"].items() for line in _schema(name, schema)),
    ]


def _operation(title: str, operation: dict[str, Any], document: dict[str, Any]) -> list[str]:
    described = [operation["description"]] if "description" in operation else []
    lines = ["", f"## `{title}`", "", operation["summary"], *described]
    parameters = operation.get("parameters", [])
    if parameters:
        rows = [(code(each["name"]), each["in"], _values(each), each["description"]) for each in parameters]
        lines += ["", *table(["Parameter", "In", "Values", "Meaning"], rows)]
    if "requestBody" in operation:
        lines += ["", f"Body: {_lowered(operation['requestBody']['description'])}"]
    answers = [(status, *_answer(status, _resolved(each, document))) for status, each in operation["responses"].items()]
    return [*lines, "", *table(["Status", "Meaning", "Media types"], answers)]


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


def _resolved(part: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    """What `$ref` stands for."""
    found: Any = document
    for name in part["$ref"].removeprefix("#/").split("/") if "$ref" in part else ():
        found = found[name]
    return found if "$ref" in part else part


def _answer(status: str, answer: dict[str, Any]) -> tuple[str, str]:
    """Meaning and media types; of a description for several statuses (`400: ...; 413: ...`) the part for this one."""
    by_status = dict(part.split(": ", 1) for part in answer["description"].rstrip(".").split("; ") if ": " in part)
    headers = answer.get("headers", {}).items()
    said = [
        sentence(by_status.get(status, answer["description"])),
        *(f"{code(name)}: {_lowered(each['description'])}" for name, each in headers),
    ]
    return " ".join(said), ", ".join(code(media) for media in answer.get("content", {}))


def _values(parameter: dict[str, Any]) -> str:
    schema = parameter["schema"]
    if "enum" in schema:
        values = " or ".join(code(str(value)) for value in schema["enum"])
    else:
        values = schema["type"] + "".join(
            f", for example {code(str(value))}" for value in schema.get("examples", [])[:1]
        )
    if parameter.get("required"):
        return f"{values}; required"
    return f"{values}; default {code(str(schema['default']))}" if "default" in schema else values


def _schema(name: str, schema: dict[str, Any]) -> list[str]:
    required = schema.get("required", [])
    rows = [
        (code(key), _type(each), "always" if key in required else "", sentence(each.get("description", "")))
        for key, each in schema.get("properties", {}).items()
    ]
    return ["", f"### {name}", "", *table(["Key", "Type", "Present", "Meaning"], rows)]


def _type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(code(str(value)) for value in schema["enum"])
    kinds = schema.get("type", "object" if "$ref" in schema else "any")
    return " or ".join(kinds) if isinstance(kinds, list) else kinds
