"""`polynya rules`: what the rules of a project do to the columns of a dataset, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from polynya.cli.context import Context, command_group
from polynya.cli.exit_codes import ExitCode
from polynya.model.documents.problems import suggest
from polynya.model.error_catalogue.configuration import WRONG_USAGE

if TYPE_CHECKING:
    from polynya.transform.rules import RuleEffect

app = command_group("rules", "Rules over columns and rows: which did what, and why.")


@app.command
def explain(dataset: str, /, *, context: Context) -> int:
    """Show which rule did what to which column of a dataset, and why.

    Columns are those that the table has met so far; before its first run, those that the settings
    name. Needs no Java.

    For example: `polynya rules explain shop.customers --json`.

    Args:
        dataset: `schema.name`, or only its name.
    """
    # Start-up time: PyIceberg and sqlglot.
    from polynya.engine.inventory import inventory
    from polynya.lake.read.inspect import states
    from polynya.lake.spark.catalog import has_tables, python_catalog
    from polynya.model.types import parse_type
    from polynya.transform.rules import columns_named, resolve

    project = context.load()
    catalog = python_catalog(project.target) if has_tables(project.target) else None
    entries = [entry for entry in inventory(project, catalog) if not entry.is_ledger]
    found = [one for one in entries if dataset in {one.name, one.dataset.name}]
    if len(found) != 1:
        names = [entry.name for entry in entries]
        what = "several datasets are" if found else "no dataset is"
        raise WRONG_USAGE(f"{what} called `{dataset}`", fix=suggest(dataset, names))
    (entry,) = found
    met = {} if entry.table is None else states(entry.table)[0].columns.of_source
    columns = {name: parse_type(text) for name, text in met.items()}
    ruled = resolve(entry.dataset, columns or columns_named(entry.dataset))
    for effect in ruled.effects:
        data = {
            "dataset": entry.name,
            "rule": effect.place,
            "does": effect.does,
            "column": effect.column,
            "now": effect.now,
            "why": effect.why,
        }
        context.output.result("rule", data, _line(effect))
    count = len(entry.dataset.mapping.rules)
    known = f"{len(columns)} columns met so far" if columns else "columns that the settings name"
    context.output.note(f"{entry.name}: {count} rule{'' if count == 1 else 's'}, {known}")
    return ExitCode.OK


def _line(effect: RuleEffect) -> str:
    return "\n".join(_parts(effect))


def _parts(effect: RuleEffect) -> Iterator[str]:
    yield f"{effect.place}  {effect.does}"
    match effect.column, effect.now:
        case None, None:
            yield f"  {effect.why}"
        case None, str(now):
            yield f"  new column {now}: {effect.why}"
        case column, None:
            yield f"  {column} is left out: {effect.why}"
        case column, now if column == now:
            yield f"  {column}: {effect.why}"
        case column, now:
            yield f"  {column} → {now}: {effect.why}"
