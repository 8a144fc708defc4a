"""The operator's fault. This module loads nothing else, because short-lived processes use it and read no settings."""


class ConfigurationError(Exception):
    """The configuration is wrong, by the operator's fault. `problems` are complete sentences; `hint` says what to do.

    `lines` are the lines of the problems in the file, from 1. 0 or an empty tuple means that no line is known.
    """

    def __init__(self, source: str, problems: tuple[str, ...], hint: str, lines: tuple[int, ...] = ()) -> None:
        super().__init__(source, problems, hint)
        self.source = source
        self.problems = problems
        self.hint = hint
        self.lines = lines or (0,) * len(problems)

    def __str__(self) -> str:
        return f"{self.source}: {'; '.join(self.problems)} ({self.hint})"

    @property
    def complaints(self) -> tuple[str, ...]:
        """One problem each, in the order of the lines, with file and line; the last one has the hint."""
        placed = sorted(zip(self.lines, self.problems, strict=True), key=lambda each: each[0])
        complaints = [f"{self.source}:{line}: {what}" if line else f"{self.source}: {what}" for line, what in placed]
        return (*complaints[:-1], f"{complaints[-1]} ({self.hint})")
