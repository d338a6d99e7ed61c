"""What other engines cannot read: `doctor` looks into tables, `validate` at settings."""

from __future__ import annotations

from collections.abc import Iterator

from polynya.cli.checks import Check
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.task import StorageTask, resolved
from polynya.model.loader import LoadedProject
from polynya.model.names import folded, shown

#: Tables that a line names.
_NAMED = 3
#: The version of Iceberg's format whose deleted rows are in deletion vectors.
_VECTORS_SINCE = 3


def tables_check(project: LoadedProject) -> Check:
    """Look at each table of the project for what stands in the way of other engines."""
    # Start-up time: PyIceberg.
    from polynya.engine.inventory import inventory
    from polynya.lake.read.other_engines import obstacles
    from polynya.lake.spark.catalog import python_catalog

    seen, found = 0, []
    for entry in inventory(project, python_catalog(project.target)):
        if entry.table is None or entry.is_ledger:
            continue
        seen += 1
        version, wanted = entry.table.metadata.format_version, entry.dataset.kept.format_version
        reasons = obstacles(entry.table.schema(), version, wanted)
        found += [f"{entry.name}: {one}" for one in reasons]
    if not found:
        return Check("other engines", "ok", f"tables: {seen}; nothing in them stops other engines")
    more = f"; and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    fix = "read it with Spark or `polynya.open`, or give the dataset a new name to make a new table"
    return Check("other engines", "warn", "; ".join(found[:_NAMED]) + more, fix)


def settings_for_other_engines(project: LoadedProject) -> Iterator[str]:
    """Yield settings that other engines take otherwise, each as `file:line:col: why`."""
    yield from _folding_schemas(project)
    if not project.target.on_glue:
        return
    for task in project.tasks:
        for index, dataset in enumerate(task.datasets):
            final = resolved(task, dataset)
            if final.kept.format_version >= _VECTORS_SINCE:
                place = (
                    ("datasets", index, "format_version")
                    if dataset.format_version is not None
                    else ("defaults", "format_version")
                )
                yield f"{project.where(task.name, *place)}: {_of_version(final)}"


def _of_version(dataset: ResolvedDataset) -> str:
    version = dataset.kept.format_version
    nested = sorted(
        name
        for name, kind in dataset.events.columns.items()
        if str(kind).startswith(("array", "map", "struct"))
    )
    also = f"; Redshift reads no {', '.join(map(shown, nested))} in it" if nested else ""
    return (
        f"the table of {dataset.relations.current} has version {version} of Iceberg's format: "
        f"Athena documents version 2 only, and Trino 476 cannot read its deleted rows{also}"
    )


def _folding_schemas(project: LoadedProject) -> Iterator[str]:
    met: dict[str, StorageTask] = {}
    for task in project.tasks:
        other = met.setdefault(folded(task.schema_), task)
        if other.schema_ != task.schema_:
            yield (
                f"{project.where(task.name, 'schema')}: schema {shown(task.schema_)} and "
                f"{shown(other.schema_)} of {project.where(other.name, 'schema')} are one to "
                "Snowflake, Redshift, Athena and Glue"
            )
