"""The options of every command that runs on Spark, once: one table.

`python -m spark_audit` takes them as they stand (commands/arguments.py). `rfhbridge audit` makes its own options of the
same rows (gateway/cli/audit/spark_commands.py), and hands them on as `words_of` writes them. A report's command that
audits the same again is written by `words_of` too, and a session of Spark begins with `master`, `remote` and `memory`
as they are named here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

#: Memory of Spark's driver: enough for ten million records on two cores.
MEMORY: Final = "2g"


class Kind(Enum):
    """What the value of an option is."""

    FOLDER = "DIR"
    FILE = "FILE"
    TEXT = "TEXT"
    MOMENT = "TIME"  # ISO 8601
    COUNT = "N"  # a whole number from 1
    SIZE = "SIZE"  # of memory as Java takes it: 512m, 2g
    FLAG = ""  # no value


@dataclass(frozen=True, slots=True)
class Option:
    """One option. `destination` is the name of its value, where `name` is a word of Python or of another meaning."""

    name: str
    kind: Kind
    help: str
    metavar: str = ""
    default: str | int = ""
    choices: tuple[str, ...] = ()
    destination: str = ""
    is_required: bool = False
    repeats: bool = False

    @property
    def flag(self) -> str:
        """The option as it is typed."""
        return f"--{self.name}"

    @property
    def key(self) -> str:
        """The name of its value."""
        return self.destination or self.name.replace("-", "_")


@dataclass(frozen=True, slots=True)
class SparkCommand:
    """One command: what it does in a line, and its options in the order of the help."""

    help: str
    options: tuple[Option, ...]


_FORMATS: Final = ("mqrfh", "mqrfh2")
DATA: Final = Option("data", Kind.FOLDER, "Data folder of a gateway; repeat it for several.", repeats=True)
TRAIL: Final = Option("trail", Kind.FOLDER, "Folder of segments that were copied; repeat it for several.", repeats=True)
_REPORT: Final = Option("out", Kind.FOLDER, "Folder for result.json and the reports.", is_required=True)
_POLICY: Final = Option("policy", Kind.FILE, "Scope, thresholds and severities of the controls (TOML).")
PERSONAL_KEY: Final = Option(
    "personal-key", Kind.FILE, "Key that opens personal data, for a trail that has it encrypted."
)
PUBLIC_KEY: Final = Option(
    "public-key", Kind.FILE, "Public key of the gateway, as it was kept elsewhere: one line of hex."
)
DIGESTS: Final = Option("digests", Kind.FOLDER, "Digests of the trail, as they were copied elsewhere.")
_JSON: Final = Option("json", Kind.FLAG, "Print result.json, not the summary.", destination="as_json")
#: The bits that files and folders of an output do not get, by who may read it (umask(2)).
MASKS: Final = {"owner": 0o077, "group": 0o027, "everybody": 0o022}
READABLE_BY: Final = Option(
    "readable-by",
    Kind.TEXT,
    "Who may read what is written: owner (files 0600, folders 0700), group or everybody.",
    choices=tuple(MASKS),
    default="owner",
)
_SPARK: Final = (
    READABLE_BY,
    Option("master", Kind.TEXT, "Spark's master: spark://host:7077, local[4]. Default: this machine.", metavar="URL"),
    Option("remote", Kind.TEXT, "Spark Connect: sc://host:15002 (needs pyspark[connect]).", metavar="URL"),
    Option(
        "memory",
        Kind.SIZE,
        "Memory of Spark's driver; on this machine, of all of Spark.",
        default=MEMORY,
    ),
)
_ARCHIVE: Final = Option(
    "in",
    Kind.FOLDER,
    "Messages: one a file, or Parquet with path or id, data, format, ccsid, encoding.",
    destination="source",
    is_required=True,
)
_MODE: Final = Option(
    "mode",
    Kind.TEXT,
    "strict copies the nine mapped fields, extended the names of subscriptions too.",
    choices=("strict", "extended"),
    default="strict",
)

COMMANDS: Final[dict[str, SparkCommand]] = {
    "run": SparkCommand(
        "audit trails with every control",
        (
            DATA,
            TRAIL,
            Option("parquet", Kind.FOLDER, "Folder that `audit ingest` made, in place of trails."),
            _REPORT,
            _POLICY,
            Option(
                "from", Kind.MOMENT, "Findings from this time on (ISO 8601, with its zone).", destination="from_time"
            ),
            Option("until", Kind.MOMENT, "Findings before this time.", destination="until_time"),
            PUBLIC_KEY,
            DIGESTS,
            PERSONAL_KEY,
            *_SPARK,
            _JSON,
        ),
    ),
    "ingest": SparkCommand(
        "bring trails into Parquet",
        (
            DATA,
            TRAIL,
            Option("to", Kind.FOLDER, "Folder of the Parquet, and of nothing else.", is_required=True),
            Option(
                "compact", Kind.FLAG, "Merge small files of one date and gateway as soon as there are two, not eight."
            ),
            *_SPARK,
            Option("json", Kind.FLAG, "Print what was done as one JSON object.", destination="as_json"),
        ),
    ),
    "stream": SparkCommand(
        "audit closed segments as they come",
        (
            DATA,
            TRAIL,
            Option("out", Kind.FOLDER, "Folder that gets a folder for each batch.", is_required=True),
            Option(
                "checkpoint",
                Kind.FOLDER,
                "Folder that remembers what was read and reported, and holds nothing else.",
                is_required=True,
            ),
            Option("every-s", Kind.COUNT, "Seconds between two looks for closed segments.", default=10),
            Option(
                "history-hours",
                Kind.COUNT,
                "Hours before a batch that are read too; what began earlier stays pending.",
                default=6,
            ),
            Option("once", Kind.FLAG, "End when every closed segment was judged."),
            _POLICY,
            PERSONAL_KEY,
            *_SPARK,
            Option("json", Kind.FLAG, "Print a line of JSON for each batch.", destination="as_json"),
        ),
    ),
    "bulk": SparkCommand(
        "audit an archive of captured messages",
        (
            _ARCHIVE,
            _REPORT,
            Option(
                "converted",
                Kind.FOLDER,
                "Their conversions, under the same names. Default: column converted, where there is one.",
            ),
            Option(
                "to",
                Kind.TEXT,
                "Format of the conversions. Default: for each message the format that it does not have.",
                choices=_FORMATS,
            ),
            _MODE,
            *_SPARK,
            _JSON,
        ),
    ),
    "convert": SparkCommand(
        "convert an archive of messages",
        (
            _ARCHIVE,
            _MODE,
            Option("to", Kind.TEXT, "Format of the new headers.", choices=_FORMATS, is_required=True),
            Option("out", Kind.FOLDER, "New folder for the result, in Parquet.", is_required=True),
            READABLE_BY,
        ),
    ),
}
#: Options that say nothing about what is judged.
_OF_THE_RUN: Final = frozenset({"memory", "as_json", "readable_by"})


def words_of(command: str, values: Mapping[str, object]) -> Iterator[str]:
    """The words of a command line with these values; those that are missing, empty or the default are left out."""
    for option in COMMANDS[command].options:
        value = values.get(option.key)
        if value in (None, False, "", option.default):
            continue
        for each in value if isinstance(value, list | tuple) else (value,):
            yield option.flag
            if option.kind is not Kind.FLAG:
                yield str(each)


def repeatable(command: str, values: Mapping[str, object]) -> tuple[str, ...]:
    """The command that audits the same again, for its report."""
    judged = {key: value for key, value in values.items() if key not in _OF_THE_RUN}
    return ("rfhbridge", "audit", command, *words_of(command, judged))
