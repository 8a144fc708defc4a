"""The end of a command's help: its examples, and the options that every command takes."""

from typing import Final

_EVERYWHERE: Final = """\b
Everywhere:
  --log-level debug|info|warning|error  least important events on standard error
  --log-format text|json                key=value, or one JSON object a line
  --version                             print the version and end"""


def epilog(*examples: str) -> str:
    """The end of a command's help. Each example is a command line that works as written."""
    lines = "\n".join(f"  {example}" for example in examples)
    return f"\b\nExample:\n{lines}\n\n{_EVERYWHERE}"
