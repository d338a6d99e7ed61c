"""`polynya quarantine`: rejected records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.table import Table

from polynya.cli.context import CommandContext, Context, verb_app
from polynya.cli.exit_codes import ExitCode
from polynya.cli.options import usage_error
from polynya.model.errors import OperationError

app = verb_app("quarantine", "Rejected records: list, show, replay.")


@app.command(name="list")
def list_(dataset: str | None = None, *, context: Context) -> int:
    """List quarantined records: where they came from and which rule rejected them. Needs no Java.

    For example: `polynya quarantine list bank.accounts`.

    Args:
        dataset: `schema.name`; all datasets when it is not given.
        context: given by `main`.
    """
    table = Table("id", "dataset", "file", "record", "rule", "error")
    for name, row in _records(context, dataset):
        data = {"dataset": name, **_without_raw(row)}
        if context.output.is_json:
            context.output.result("quarantined", data)
        place = "whole file" if row["offset"] < 0 else str(row["offset"] + 1)
        table.add_row(row["id"], name, row["file"], place, row["rule"], row["error"])
    if not context.output.is_json:
        context.output.result(
            "quarantine", {}, table if table.row_count else "the quarantine is empty"
        )
    return ExitCode.OK


@app.command
def show(identifier: str, /, *, context: Context) -> int:
    """Show one quarantined record as it was, with its origin, the rule and the error.

    Needs no Java.

    For example: `polynya quarantine show 3f2a9c1b77e0`.

    Args:
        identifier: id of the record, as `list` prints it.
        context: given by `main`.
    """
    for name, row in _records(context, None):
        if row["id"] == identifier:
            raw = (row["raw"] or b"").decode("utf-8", errors="backslashreplace")
            text = (
                f"{row['id']}  {name}\nfile    {row['file']}\nrecord  {row['offset'] + 1}\n"
                f"rule    {row['rule']}\nerror   {row['error']}\n\n{raw}"
            )
            context.output.result(
                "quarantined", {"dataset": name, **_without_raw(row), "raw": raw}, text
            )
            return ExitCode.OK
    raise _unknown(identifier)


@app.command
def replay(
    *identifiers: str, all_: bool = False, dataset: str | None = None, context: Context
) -> int:
    """Read quarantined records again with today's settings.

    What is good now is copied as if it always had been. What is still bad stays in the quarantine.
    A file that was quarantined whole is read again by the next run.

    For example: `polynya quarantine replay --all`.

    Args:
        identifiers: ids of the records.
        all_: every record.
        dataset: only records of this `schema.name`.
        context: given by `main`.
    """
    if bool(identifiers) == all_:
        raise usage_error("name the records, or give `--all`")
    # Start-up time: pyspark.
    from polynya.engine.plan.inventory import inventory
    from polynya.engine.start import start_engine
    from polynya.engine.verbs.replay import replay as replay_entry
    from polynya.lake.spark.catalog import python_catalog

    chosen = {
        (name, row["id"])
        for name, row in _records(context, dataset)
        if all_ or row["id"] in identifiers
    }
    for identifier in identifiers:
        if not any(identifier == found for _, found in chosen):
            raise _unknown(identifier)
    project = context.load(tolerant=True)
    engine = start_engine(project)
    for entry in inventory(project, python_catalog(project.target)):
        wanted = [identifier for name, identifier in chosen if name == entry.name]
        if not wanted:
            continue
        result = replay_entry(engine, entry, wanted)
        data = {
            "dataset": entry.name,
            "records": result.records,
            "copied": result.copied,
            "quarantined": result.quarantined,
            "files": list(result.files),
        }
        text = (
            f"{entry.name}: {result.records} read again, {result.copied} copied, "
            f"{result.quarantined} still bad"
        )
        if result.files:
            text += f"; the next run reads {', '.join(result.files)} again"
        context.output.result("replayed", data, text)
    return ExitCode.OK


def _records(context: CommandContext, dataset: str | None) -> Iterator[tuple[str, dict[str, Any]]]:
    # Start-up time: PyIceberg.
    from polynya.engine.plan.inventory import inventory
    from polynya.lake.read.inspect import quarantine
    from polynya.lake.spark.catalog import python_catalog

    project = context.load(tolerant=True)
    entries = list(inventory(project, python_catalog(project.target)))
    if dataset is not None and not any(entry.name == dataset for entry in entries):
        raise usage_error(
            f"no dataset is called `{dataset}`", ", ".join(entry.name for entry in entries)
        )
    for entry in entries:
        if entry.table is not None and dataset in (None, entry.name):
            for row in quarantine(entry.table):
                yield entry.name, row


def _without_raw(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "raw"}


def _unknown(identifier: str) -> OperationError:
    return OperationError(
        "POLYNYA-QUA-001",
        f"no quarantined record has the id {identifier}",
        state="nothing was changed",
        fix="`polynya quarantine list` shows the ids",
    )
