"""`polynya adopt`: make the tables of a copied or moved warehouse its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polynya.cli.context import CommandContext, Context
from polynya.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from polynya.lake.warehouse.adopt import Adopted


def adopt(*, context: Context) -> int:
    """Adopt the tables in the target's warehouse after the folder was copied or moved.

    Tables refer to their files by absolute paths, so a copied warehouse still uses the tables of
    the original. This rewrites the paths, for the present snapshot of each table. The former folder
    is neither needed nor touched; earlier snapshots stay there. No process may work in the
    warehouse meanwhile. Needs no Java.

    For example: `polynya adopt --project shop-copy`.

    Args:
        context: given by `main`.
    """
    # Start-up time: fastavro and pyarrow.
    from polynya.lake.spark.naming import CATALOG
    from polynya.lake.warehouse.adopt import adopt as adopt_tables
    from polynya.lake.warehouse.check import refuse_unusable

    target = context.load(tolerant=True).target
    done = adopt_tables(target, CATALOG)
    refuse_unusable(target, CATALOG)
    tell_adopted(context, done, "adopted")
    return ExitCode.OK


def tell_adopted(context: CommandContext, done: Adopted, verb: str) -> None:
    """Say what became of a catalog."""
    lines = [f"{verb}: {', '.join(done.tables)}"] if done.tables else []
    if done.views:
        lines.append(f"with {len(done.views)} views")
    if done.aside is not None:
        lines.append(f"the damaged catalog is kept as {done.aside}")
    if done.dropped:
        lines.append(f"the next run makes again: {', '.join(done.dropped)}")
    context.output.result(
        "adopted",
        {
            "tables": done.tables,
            "views": done.views,
            "dropped_views": done.dropped,
            "aside": None if done.aside is None else str(done.aside),
        },
        "\n".join(lines) or "the tables are in this warehouse already",
    )
