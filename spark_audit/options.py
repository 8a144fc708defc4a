"""The options of every command that runs on Spark, once: one table.

`python -m spark_audit` takes them as they are (commands/arguments.py). `rfhbridge audit` makes its own options from the
same rows (gateway/cli/audit/spark_commands.py), and passes them on in the words of `words_of`. `words_of` also writes
the command in a report that repeats the audit. A session of Spark begins with `master`, `remote` and `memory` by these
names.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

#: Memory of Spark's driver. It is enough for ten million records on two cores.
MEMORY: Final = "2g"


class Kind(Enum):
    """The kind of an option's value."""

    FOLDER = "DIR"  # of this machine
    LOCATION = "DIR|URI"  # a folder of this machine, or a place that a URI names
    FILE = "FILE"
    TEXT = "TEXT"
    MOMENT = "TIME"  # ISO 8601
    COUNT = "N"  # a whole number from 1
    SIZE = "SIZE"  # of memory in Java's form: 512m, 2g
    FLAG = ""  # no value


@dataclass(frozen=True, slots=True)
class Option:
    """One option. `destination` is the name of its value if `name` is a word of Python or has another meaning."""

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
        """The option as people type it."""
        return f"--{self.name}"

    @property
    def key(self) -> str:
        """The name of its value."""
        return self.destination or self.name.replace("-", "_")


@dataclass(frozen=True, slots=True)
class SparkCommand:
    """One command: its effect in a line, and its options in the order of the help."""

    help: str
    options: tuple[Option, ...]


_FORMATS: Final = ("mqrfh", "mqrfh2")
DATA: Final = Option("data", Kind.FOLDER, "Data folder of a gateway; repeat it for several.", repeats=True)
TRAIL: Final = Option(
    "trail", Kind.LOCATION, "Folder of segments that were copied; repeat it for several.", repeats=True
)
_REPORT: Final = Option("out", Kind.LOCATION, "Folder for result.json and the reports.", is_required=True)
_POLICY: Final = Option("policy", Kind.FILE, "Scope, thresholds and severities of the controls (TOML).")
PERSONAL_KEY: Final = Option(
    "personal-key", Kind.FILE, "Key that opens personal data, for a trail that has it encrypted."
)
PUBLIC_KEY: Final = Option(
    "public-key", Kind.FILE, "Public key of the gateway that was kept elsewhere: one line of hex."
)
DIGESTS: Final = Option("digests", Kind.FOLDER, "Copies of the trail's digests that were kept elsewhere.")
_JSON: Final = Option("json", Kind.FLAG, "Print result.json, not the summary.", destination="as_json")
#: The bits that files and folders of an output do not get, by its readers (umask(2)).
MASKS: Final = {"owner": 0o077, "group": 0o027, "everybody": 0o022}
READABLE_BY: Final = Option(
    "readable-by",
    Kind.TEXT,
    "Readers of the output: owner (files 0600, folders 0700), group or everybody.",
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
        "Memory of Spark's driver; without --master and --remote that of all of Spark.",
        default=MEMORY,
    ),
)
_ENGINE: Final = Option(
    "engine",
    Kind.TEXT,
    "Engine of the controls: spark; or duckdb, here and without Java, with --memory for its tables.",
    choices=("spark", "duckdb"),
    default="spark",
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
    "strict copies the nine mapped fields, extended also the names of subscriptions.",
    choices=("strict", "extended"),
    default="strict",
)

COMMANDS: Final[dict[str, SparkCommand]] = {
    "run": SparkCommand(
        "audit trails with every control",
        (
            DATA,
            TRAIL,
            Option("parquet", Kind.LOCATION, "Folder that `audit ingest` made, in place of trails."),
            _REPORT,
            _POLICY,
            Option(
                "from", Kind.MOMENT, "Findings from this time on (ISO 8601, with a time zone).", destination="from_time"
            ),
            Option("until", Kind.MOMENT, "Findings before this time.", destination="until_time"),
            PUBLIC_KEY,
            DIGESTS,
            PERSONAL_KEY,
            _ENGINE,
            Option("sign", Kind.FILE, "Private key (PEM; Ed25519 or P-256) that signs the results, in seal.json."),
            Option("with-state", Kind.FLAG, "Write state.zst too, with which the next audit can go on (needs --sign)."),
            Option(
                "since-state",
                Kind.FILE,
                "Go on from the state.zst of an earlier audit: read the segments that were closed since, and write a"
                " state again (needs --sign, with the same key).",
            ),
            *_SPARK,
            _JSON,
        ),
    ),
    "ingest": SparkCommand(
        "bring trails into Parquet",
        (
            DATA,
            TRAIL,
            Option("to", Kind.LOCATION, "Folder for the Parquet alone.", is_required=True),
            Option(
                "table-format",
                Kind.TEXT,
                "parquet, or delta: the folder `records` is a Delta table too, from now on.",
                choices=("parquet", "delta"),
                default="parquet",
            ),
            Option("compact", Kind.FLAG, "Merge small files of one date and gateway from two on, not from eight on."),
            *_SPARK,
            Option("json", Kind.FLAG, "Print the result as one JSON object.", destination="as_json"),
        ),
    ),
    "stream": SparkCommand(
        "audit each closed segment when it comes",
        (
            DATA,
            TRAIL,
            Option("out", Kind.FOLDER, "Folder that gets a folder for each batch.", is_required=True),
            Option(
                "checkpoint",
                Kind.FOLDER,
                "Folder for the progress of the stream alone: the state of each trail.",
                is_required=True,
            ),
            Option("every-s", Kind.COUNT, "Seconds between two looks for closed segments.", default=10),
            Option("once", Kind.FLAG, "End when every closed segment was judged."),
            _POLICY,
            PERSONAL_KEY,
            _ENGINE,
            Option(
                "sign",
                Kind.FILE,
                "Private key (PEM; Ed25519 or P-256) that signs the states. Default: a key of the checkpoint's own.",
            ),
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
                "Their conversions, under the same names. Default: column converted, if there is one.",
            ),
            Option(
                "to",
                Kind.TEXT,
                "Format of the conversions. Default: the format that each message does not have.",
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
#: The variable of the environment that names a file, which `run` and `bulk` make when they have written their result.
RECEIPT: Final = "RFHBRIDGE_AUDIT_RECEIPT"
#: Options without an effect on the result.
_OF_THE_RUN: Final = frozenset({"memory", "as_json", "readable_by"})


def words_of(command: str, values: Mapping[str, object]) -> Iterator[str]:
    """The words of a command line with these values, without missing, empty and default values."""
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
