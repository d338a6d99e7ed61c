"""`polynya quarantine`: list, show and replay rejected records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

from polynya.cli.context import CommandContext, Context, command_group
from polynya.cli.exit_codes import ExitCode
from polynya.model.config.derived import DerivedTask
from polynya.model.documents.problems import suggest
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.error_catalogue.derived import QUERY_ROW_NOT_REPLAYABLE
from polynya.model.error_catalogue.operation import NO_SUCH_QUARANTINED_RECORD
from polynya.model.loader import LoadedProject
from polynya.store.places import store_at

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.table import Table


#: Offset of what stands for a whole file.
WHOLE_FILE: Final = -1
#: Offset of a row that a query returned.
OF_QUERY: Final = -2
#: Groups of the summary; a broken feed may have as many as files.
_MOST_GROUPS: Final = 30


@dataclass(frozen=True, slots=True)
class Quarantine:
    """The quarantined records of one dataset: id, file, offset, rule, error, raw; in order."""

    dataset: str
    records: pa.Table

    def chosen(self, rule: str | None, file: str | None) -> Quarantine:
        """Only records of a rule, or of files that a glob names."""
        import pyarrow as pa

        keep = [
            rule in (None, one_rule) and (file is None or fnmatchcase(one_file, file))
            for one_rule, one_file in zip(
                self.records["rule"].to_pylist(), self.records["file"].to_pylist(), strict=True
            )
        ]
        return Quarantine(self.dataset, self.records.filter(pa.array(keep, pa.bool_())))

    def rows(self, most: int | None = None) -> Iterator[dict[str, Any]]:
        """The first records, each with its dataset and without its text."""
        records = self.records.drop_columns(["raw"])
        for row in records.slice(0, most).to_pylist():
            yield {"dataset": self.dataset, **row}


@dataclass(frozen=True, slots=True)
class Group:
    """So many records of one dataset that one rule rejected in one file."""

    records: int
    dataset: str
    rule: str
    file: str


def groups(quarantines: Sequence[Quarantine]) -> list[Group]:
    """Records by dataset, rule and file, the largest group first."""
    made = [
        Group(row["id_count"], quarantine.dataset, row["rule"], row["file"])
        for quarantine in quarantines
        for row in quarantine.records.group_by(["rule", "file"])
        .aggregate([("id", "count")])
        .to_pylist()
    ]
    return sorted(made, key=lambda group: (-group.records, group.dataset, group.rule, group.file))


def summary(made: Sequence[Group]) -> Table:
    """The groups as a table that fits a narrow terminal."""
    from rich.table import Table

    table = Table("records", "dataset", "rule", "file")
    for group in made[:_MOST_GROUPS]:
        table.add_row(f"{group.records:,}", group.dataset, group.rule, group.file)
    rest = made[_MOST_GROUPS:]
    if rest:
        records = sum(group.records for group in rest)
        table.add_row(f"{records:,}", f"in {len(rest):,} more groups", "", "")
    return table


def as_entry(row: dict[str, Any]) -> str:
    """One record in two lines, which a terminal of any width can show."""
    where = place_in_file(row)
    if row["offset"] == OF_QUERY:
        return f"{row['id']}  {row['dataset']}  {where}\n  {row['rule']}: {row['error']}"
    number = where if row["offset"] == WHOLE_FILE else f"record {where}"
    head = f"{row['id']}  {row['dataset']}  {row['file']}, {number}"
    return f"{head}\n  {row['rule']}: {row['error']}"


def place_in_file(row: dict[str, Any]) -> str:
    """Where a record stood in its file, counted from 1."""
    if row["offset"] == OF_QUERY:
        return "a row of its query"
    return "whole file" if row["offset"] == WHOLE_FILE else str(row["offset"] + 1)


def identified(quarantines: Sequence[Quarantine], prefix: str) -> tuple[str, dict[str, Any]]:
    """The dataset and the one record whose id begins so."""
    import pyarrow.compute as pc

    hits = []
    for quarantine in quarantines:
        mask = pc.starts_with(quarantine.records["id"], prefix)
        hits += [(quarantine.dataset, row) for row in quarantine.records.filter(mask).to_pylist()]
    same = [hit for hit in hits if hit[1]["id"] == prefix]
    hits = same or hits
    if not prefix or not hits:
        raise NO_SUCH_QUARANTINED_RECORD(id=prefix)
    if len({row["id"] for _, row in hits}) > 1:
        shown = ", ".join(row["id"] for _, row in hits[:3])
        raise WRONG_USAGE(
            f"{len(hits)} ids begin with `{prefix}`", fix=f"write more of it: {shown}"
        )
    return hits[0]


#: Records in text output below the summary, unless more are requested.
_SHOWN: Final = 20

app = command_group("quarantine", "Rejected records: list, show, replay.")


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
    """
    if limit is not None and limit < 0:
        raise WRONG_USAGE("`--limit` is not less than 0")
    most = limit if limit is not None or context.output.is_json else _SHOWN
    quarantines = [quarantine.chosen(rule, file) for quarantine in _quarantines(context, dataset)]
    total = sum(quarantine.records.num_rows for quarantine in quarantines)
    if not context.output.is_json:
        none = "no quarantined record is like that" if rule or file else "the quarantine is empty"
        context.output.result("quarantine", {}, summary(groups(quarantines)) if total else none)
    listed = 0
    for quarantine in quarantines:
        for row in quarantine.rows(None if most is None else most - listed):
            context.output.result("quarantined", row, as_entry(row))
            listed += 1
    if listed < total:
        context.output.note(f"{total - listed:,} more; `--limit`, `--rule` and `--file` choose")
    for text in _advice(context.load(), quarantines):
        context.output.note(text)
    return ExitCode.OK


def _advice(project: LoadedProject, quarantines: Sequence[Quarantine]) -> Iterator[str]:
    """Which other settings would fit the files with most of the rejected records."""
    # Start-up time: DuckDB, and the readers of all formats.
    from polynya.proposal.misfits import MOST_FILES, may_misfit, misfits

    datasets = {dataset.relations.current: dataset for dataset in project.datasets()}
    store = store_at(project.target.landing, project.target.aws)
    looked = set[str]()
    for group in groups(quarantines):
        dataset = datasets.get(group.dataset)
        if dataset is None or not may_misfit(dataset, group.rule) or group.file in looked:
            continue
        if len(looked) == MOST_FILES:
            return
        looked.add(group.file)
        yield from misfits(store, group.file, dataset)


@app.command
def show(identifier: str, /, *, context: Context) -> int:
    """Show one quarantined record as it was, with its origin, the rule and the error.

    Needs no Java.

    For example: `polynya quarantine show 3f2a9c1b77e0`.

    Args:
        identifier: id of the record, as `list` prints it, or its first characters.
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
    """
    if bool(identifiers) == all_:
        raise WRONG_USAGE("name the records, or give `--all`")
    # Start-up time: pyspark.
    from polynya.engine.collaborators import start_engine
    from polynya.engine.commands.replay import replay as replay_entry
    from polynya.engine.inventory import inventory
    from polynya.lake.spark.catalog import python_catalog

    quarantines = _quarantines(context, dataset)
    if all_:
        chosen = {
            (quarantine.dataset, row["id"])
            for quarantine in quarantines
            for row in quarantine.rows()
        }
    else:
        named = [identified(quarantines, identifier) for identifier in identifiers]
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
        if all_ and isinstance(entry.task, DerivedTask):
            context.output.note(f"{entry.name}: {QUERY_ROW_NOT_REPLAYABLE.fix}")
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
    from polynya.engine.inventory import inventory
    from polynya.lake.read.inspect import quarantine
    from polynya.lake.spark.catalog import has_tables, python_catalog

    project = context.load(tolerant=True)
    catalog = python_catalog(project.target) if has_tables(project.target) else None
    entries = list(inventory(project, catalog))
    if dataset is not None and not any(entry.name == dataset for entry in entries):
        names = [entry.name for entry in entries]
        raise WRONG_USAGE(f"no dataset is called `{dataset}`", fix=suggest(dataset, names))
    return [
        Quarantine(entry.name, quarantine(entry.table))
        for entry in entries
        if entry.table is not None and dataset in (None, entry.name)
    ]
