"""`polynya catalog`: the tables of a project and the catalog that has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polynya.cli.context import Context, command_group
from polynya.cli.exit_codes import ExitCode
from polynya.model.loader import load_project

if TYPE_CHECKING:
    from pyiceberg.catalog.glue import GlueCatalog

    from polynya.lake.warehouse.catalogs import CatalogEntry
    from polynya.lake.warehouse.move import PlannedMove
    from polynya.model.config.target import ResolvedTarget

app = command_group("catalog", "Move the tables of a project to another catalog.")


@app.command
def move(*, to: str, dry_run: bool = False, context: Context) -> int:
    """Move all tables and views to the catalog of another target; no data is copied.

    Both targets need the same warehouse. Stop runs and agents first: from the first step on they
    are refused, and one that still works ends with an error at its next commit. After an
    interruption run the same command again. Needs no Java.

    For example: `polynya catalog move --target local --to rest`.

    Args:
        to: target with the new catalog.
        dry_run: only show what would be done.
    """
    # Start-up time: PyIceberg.
    from polynya.lake.spark.catalog import CATALOG
    from polynya.lake.warehouse.move import CatalogMove
    from polynya.lake.warehouse.moved import identity
    from polynya.lake.warehouse.registers import register_of
    from polynya.store.places import store_at

    project = context.load(tolerant=True)
    start, end = project.target, load_project(context.options.project, to, tolerant=True).target
    moving = CatalogMove(
        start,
        end,
        register_of(start, CATALOG, _glue(start)),
        register_of(end, CATALOG, _glue(end)),
        store_at(start.warehouse, start.aws),
        frozenset(project.internal_schemas),
        frozenset(task.schema_ for task in project.tasks),
        on_step=lambda step, entry: context.output.detail(f"{step} {entry.full_name}"),
    )
    plan = moving.plan() if dry_run else moving.carry_out()
    places = f"from {identity(start)} to {identity(end)}"
    data = {
        "from": identity(start),
        "to": identity(end),
        "dry_run": dry_run,
        "resumed": plan.is_resumed,
        "tables": [one.full_name for one in plan.release if not one.is_view],
        "views": [one.full_name for one in plan.release if one.is_view],
        "views_to_make": [one.full_name for one in plan.left],
    }
    context.output.result("catalog.move", data, _text(plan, places, to, dry_run=dry_run))
    return ExitCode.OK


def _glue(target: ResolvedTarget) -> GlueCatalog | None:
    if not target.on_glue:
        return None
    # Start-up time: the AWS SDK.
    from pyiceberg.catalog.glue import GlueCatalog

    from polynya.lake.spark.catalog import python_catalog

    catalog = python_catalog(target)
    assert isinstance(catalog, GlueCatalog)
    return catalog


def _text(plan: PlannedMove, places: str, to: str, *, dry_run: bool) -> str:
    if not plan.release:
        return f"nothing to move {places}"
    head = "would move" if dry_run else "moved"
    lines = [f"{head} {places}{', continuing an interrupted move' if plan.is_resumed else ''}"]
    lines += [f"  {_kind(one)} {one.full_name}: {one.metadata}" for one in plan.release]
    if plan.left:
        lines.append(f"the next run makes again: {', '.join(one.full_name for one in plan.left)}")
    if not dry_run:
        lines.append(f"from now on use `--target {to}`: runs on the former catalog are refused")
    return "\n".join(lines)


def _kind(entry: CatalogEntry) -> str:
    return "view " if entry.is_view else "table"
