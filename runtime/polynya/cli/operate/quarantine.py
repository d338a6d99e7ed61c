"""`polynya quarantine`: rejected records."""

from __future__ import annotations

from typing import Final

from polynya.cli.context import CommandContext, Context, verb_app
from polynya.cli.exit_codes import ExitCode
from polynya.cli.operate.rejected import (
    Quarantine,
    as_entry,
    groups,
    identified,
    place_in_file,
    summary,
)
from polynya.cli.options import usage_error
from polynya.model.documents.problems import suggest

#: Records that people are shown below the summary unless they ask for more.
_SHOWN: Final = 20

app = verb_app("quarantine", "Rejected records: list, show, replay.")


@app.command(name="list")
def list_(
    dataset: str | None = None,
    *,
    rule: str | None = None,
    file: str | None = None,
    limit: int | None = None,
    context: Context,
) -> int:
    """List quarantined records: numbers by dataset, rule and file, then the first records.

    Needs no Java. With `--json`, a line for each record.

    For example: `polynya quarantine list bank.accounts --rule bad_value`.

    Args:
        dataset: `schema.name`. Default: all datasets.
        rule: only records that this rule rejected.
        file: only records of files that match this glob.
        limit: number of records to list; default 20, with `--json` all.
        context: given by `main`.
    """
    if limit is not None and limit < 0:
        raise usage_error("`--limit` is not less than 0")
    most = limit if limit is not None or context.output.is_json else _SHOWN
    found = [one.chosen(rule, file) for one in _quarantines(context, dataset)]
    total = sum(one.records.num_rows for one in found)
    if not context.output.is_json:
        none = "no quarantined record is like that" if rule or file else "the quarantine is empty"
        context.output.result("quarantine", {}, summary(groups(found)) if total else none)
    listed = 0
    for one in found:
        for row in one.rows(None if most is None else most - listed):
            context.output.result("quarantined", row, as_entry(row))
            listed += 1
    if listed < total:
        context.output.note(f"{total - listed:,} more; `--limit`, `--rule` and `--file` choose")
    return ExitCode.OK


@app.command
def show(identifier: str, /, *, context: Context) -> int:
    """Show one quarantined record as it was, with its origin, the rule and the error.

    Needs no Java.

    For example: `polynya quarantine show 3f2a9c1b77e0`.

    Args:
        identifier: id of the record, as `list` prints it, or its first characters.
        context: given by `main`.
    """
    name, row = identified(_quarantines(context, None), identifier)
    raw = (row.pop("raw") or b"").decode("utf-8", errors="backslashreplace")
    text = (
        f"{row['id']}  {name}\nfile    {row['file']}\nrecord  {place_in_file(row)}\n"
        f"rule    {row['rule']}\nerror   {row['error']}\n\n{raw}"
    )
    context.output.result("quarantined", {"dataset": name, **row, "raw": raw}, text)
    return ExitCode.OK


@app.command
def replay(
    *identifiers: str, all_: bool = False, dataset: str | None = None, context: Context
) -> int:
    """Reread quarantined records with the present settings.

    Good records are copied as if they always had been good. Bad records stay in quarantine. The
    next run rereads a file that was quarantined whole.

    For example: `polynya quarantine replay --all`.

    Args:
        identifiers: ids of the records, or their first characters.
        all_: every record.
        dataset: only records of this `schema.name`.
        context: given by `main`.
    """
    if bool(identifiers) == all_:
        raise usage_error("name the records, or give `--all`")
    # Start-up time: pyspark.
    from polynya.engine.collaborators import start_engine
    from polynya.engine.plan.inventory import inventory
    from polynya.engine.verbs.replay import replay as replay_entry
    from polynya.lake.spark.catalog import python_catalog

    found = _quarantines(context, dataset)
    if all_:
        chosen = {(one.dataset, row["id"]) for one in found for row in one.rows()}
    else:
        named = [identified(found, identifier) for identifier in identifiers]
        chosen = {(name, row["id"]) for name, row in named}
    if not chosen:
        context.output.note("the quarantine is empty")
        return ExitCode.OK
    project = context.load(tolerant=True)
    with context.starting(project):
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


def _quarantines(context: CommandContext, dataset: str | None) -> list[Quarantine]:
    """What is quarantined, by dataset; only of the one that is named."""
    # Start-up time: PyIceberg.
    from polynya.engine.plan.inventory import inventory
    from polynya.lake.read.inspect import quarantine
    from polynya.lake.spark.catalog import has_tables, python_catalog

    project = context.load(tolerant=True)
    catalog = python_catalog(project.target) if has_tables(project.target) else None
    entries = list(inventory(project, catalog))
    if dataset is not None and not any(entry.name == dataset for entry in entries):
        names = [entry.name for entry in entries]
        raise usage_error(f"no dataset is called `{dataset}`", suggest(dataset, names))
    return [
        Quarantine(entry.name, quarantine(entry.table))
        for entry in entries
        if entry.table is not None and dataset in (None, entry.name)
    ]
