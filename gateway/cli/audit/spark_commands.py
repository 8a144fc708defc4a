"""`rfhbridge audit run`, `ingest`, `stream` and `bulk`: the commands on Spark or DuckDB, each in a process of its own.

Their options are rows of spark_audit's table, so that the help, the command line of the process and the process itself
cannot drift apart. The gateway adds three things: the configuration names the data folder by default, the report goes
into the data folder, and notes that wait on the audit queue are first written to the trail.
"""

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from gateway.cli.audit.pending_notes import export_pending
from gateway.cli.audit.spark_process import audited, duckdb_environment, exit_code_of, spark_command, spark_environment
from gateway.cli.audit.trails import CONFIGURED, data_folders, location, trail_of
from gateway.cli.settings_options import ConfigOption, folder_here
from spark_audit.options import COMMANDS, Kind, Option

#: The folder of the report in the data folder, unless --out names another.
_REPORT_FOLDER: Final = "report"
#: The gateway's defaults for options that are not given. So none of these options is required here.
_DEFAULTS: Final = {
    ("run", "data"): CONFIGURED,
    ("run", "out"): "DATA/report",
    ("ingest", "data"): CONFIGURED,
    ("stream", "data"): CONFIGURED,
}
_PARSERS: Final = {Kind.LOCATION: location, Kind.FOLDER: folder_here}

#: The values of a command's options by their keys, `config` among them.
Values = Mapping[str, Any]


def run(values: Values) -> int:
    """Judge trails by every control, on Spark or DuckDB.

    The audit performs every conversion again. It writes result.json, report.html, junit.xml, audit.sarif, and every
    violation to exceptions.parquet. First it writes notes that wait on the audit queue to the trail; a running gateway
    does this itself. With a period the audit also reads the day before and the day after, and reports cases that are
    open at its edges as pending. Exit code 0: clean; 1: violations; 2: not evaluable; 3: wrong use.
    """
    environment = _environment(values)
    if values["parquet"] is not None and (values["data"] or values["trail"]):
        raise typer.BadParameter("name --parquet or trails, not both")
    folders = () if values["parquet"] else _data_folders(values)
    if values["out"] is None and (values["trail"] or len(folders) != 1):
        raise typer.BadParameter("name the folder of the report with --out")
    for folder in folders:
        export_pending(folder)
    report_folder = values["out"] or folders[0] / _REPORT_FOLDER
    return audited(spark_command("run", {**values, "data": folders, "out": report_folder}), environment)


def ingest(values: Values) -> int:
    """Bring closed segments into Parquet, each once.

    The files are by date and gateway, sorted by sequence; `audit run --parquet DIR` audits them. A segment that is
    there already is read and compared, and not ingested again. Exit code 0: done; 1: a segment was changed after it was
    ingested; 2: not evaluable, because there was nothing to ingest; 3: wrong use.
    """
    environment = spark_environment(values["remote"])
    folders = _data_folders(values)
    for folder in folders:
        export_pending(folder)
        trail_of(folder)
    return exit_code_of(spark_command("ingest", {**values, "data": folders}), environment)


def stream(values: Values) -> int:
    """Judge each closed segment when it comes, on Spark or DuckDB.

    The controls are those of `audit run`. Each batch gets a folder DIR/NNNNNNNN with findings.jsonl, result.json and a
    seal, and goes on from the state in the checkpoint: it costs its own records and what is open. After a restart or a
    kill the same command continues, and reports nothing twice. Exit code 0: no violation; 1: violations, or a trail was
    rewritten or cut; 2: not evaluable; 3: wrong use.
    """
    environment = _environment(values)
    folders = _data_folders(values)
    for folder in folders:
        trail_of(folder)
    return exit_code_of(spark_command("stream", {**values, "data": folders}), environment)


def bulk(values: Values) -> int:
    """Judge an archive of captured messages.

    These messages never passed the gateway. The audit names, with IBM's reason codes, messages that are malformed, that
    the other format cannot express, or that would lose fields there. It performs conversions again, compares them byte
    for byte, and writes the same files as `audit run`. An archive that is empty, half written or without messages is
    not evaluable. Exit code 0: clean; 1: violations; 2: not evaluable; 3: wrong use.
    """
    environment = spark_environment(values["remote"])
    return audited(spark_command("bulk", values), environment)


def _environment(values: Values) -> dict[str, str]:
    """The environment of a command that runs on either engine. Raises CommandFailed."""
    return duckdb_environment() if values["engine"] == "duckdb" else spark_environment(values["remote"])


def _data_folders(values: Values) -> tuple[Path, ...]:
    return data_folders(values["data"], values["trail"], values["config"])


# -- rows of the table as options of a command -------------------------------------------------------------------------


def command_of(work: Callable[[Values], int]) -> Callable[..., None]:
    """The function behind a typer command. Its parameters are rows of the table, and --config for trails."""

    def command(**values: Any) -> None:
        raise typer.Exit(work(values))

    name = work.__name__
    options = COMMANDS[name].options
    parameters = [_parameter(option, _DEFAULTS.get((name, option.name), "")) for option in options]
    if any(option.repeats for option in options):
        parameters.append(_keyword("config", ConfigOption, None))
    command.__name__, command.__doc__ = name, work.__doc__
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # what typer reads
    return command


def _parameter(option: Option, default: str) -> Parameter:
    """A row as a parameter; `default` describes the gateway's default in words."""
    shown: dict[str, Any] = {"help": f"{option.help} Default: {default}." if default else option.help}
    if option.kind in _PARSERS:
        shown["parser"] = _PARSERS[option.kind]
    if option.kind is Kind.COUNT:
        shown["min"] = 1
    if option.kind is not Kind.FLAG and not option.choices:
        shown["metavar"] = option.metavar or option.kind.value
    kind, value = _type_of(option)
    is_required = option.is_required and not default
    if value is None and not is_required:
        kind = kind | None
    annotation = Annotated[kind, typer.Option(option.flag, **shown)]  # type: ignore[valid-type]  # made of the row
    return _keyword(option.key, annotation, Parameter.empty if is_required else value)


def _type_of(option: Option) -> tuple[Any, Any]:
    """The type of an option's value, and its default; None for no value."""
    if option.choices:
        return Literal[option.choices], option.default or None
    match option.kind:
        case Kind.FLAG:
            return bool, False
        case Kind.COUNT:
            return int, option.default
        case Kind.LOCATION:
            return list[str] if option.repeats else str, None
        case Kind.FOLDER | Kind.FILE:
            return list[Path] if option.repeats else Path, None
        case _:
            return str, option.default


def _keyword(name: str, annotation: Any, default: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
