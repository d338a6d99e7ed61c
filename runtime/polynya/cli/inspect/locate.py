"""`polynya locate`: the metadata file of a table, for engines that take one."""

from __future__ import annotations

from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.selection import dataset_table


def locate(dataset: str, /, *, context: Context) -> int:
    """Print the path of the current metadata file of a dataset's table.

    Engines that read Iceberg without a catalog, such as DuckDB, start from it. A metadata file
    shows the table as of one commit; the table keeps the newest 21 of them, so run this before each
    session. Needs no Java.

    For example: `polynya locate shop.users`.

    Args:
        dataset: `schema.name`.
        context: given by `main`.
    """
    entry, table = dataset_table(context.load(tolerant=True), dataset)
    # Start-up time: PyIceberg.
    from polynya.lake.read.inspect import metadata_file

    place = metadata_file(table)
    context.output.result(
        "table.location",
        {
            "dataset": entry.name,
            "table": entry.dataset.relations.internal,
            "metadata": place,
            "snapshot": table.metadata.current_snapshot_id,
        },
        place,
    )
    return ExitCode.OK
