"""Errors of registered tables (TRF-120 to -129): inputs of transforms that others maintain."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import ConfigError, OperationError

_KEPT: Final = (
    "nothing was written; the tables that read it keep their last result, and all others continue"
)

REGISTERED_IS_OWN: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-120",
    title="a registered table is one of the project's own",
    message="{table} is the internal table or a view of {owner}",
    fix="remove it, and name its task in `from` of the transform",
    page="A registered table is maintained by others. The internal table of a dataset also holds "
    "old versions and pending changes, so its rows are not those of the dataset. A transform reads "
    "a dataset of the project if `from` names the task.",
)
REGISTERED_MISSING: Final = ErrorEntry(
    OperationError,
    "POLYNYA-TRF-121",
    title="a registered table does not exist",
    message="the registered table {table} does not exist: {reason}",
    state=_KEPT,
    fix="check the name or the folder in the task of kind `registered`, and the rights of this "
    "process to read it",
    page="The catalog of the target has no Iceberg table of this name, or the folder holds no "
    "Parquet file or no log of Delta. A view is not a table. The step is tried again with growing "
    "pauses, so a table that appears later needs no action.",
)
REGISTERED_UNREADABLE: Final = ErrorEntry(
    OperationError,
    "POLYNYA-TRF-122",
    title="a registered table cannot be read",
    message="the registered table {table} cannot be read: {reason}",
    state=_KEPT,
    fix="repair it where it is maintained",
    page="A file of the folder is not a whole Parquet file, two files have types for a column that "
    "no common type holds, two columns have one name, or a value does not fit a type of a table, "
    "such as a time finer than a microsecond. A folder that holds a Delta or an Iceberg table is "
    "refused by `parquet`, because its files include rows that were deleted. The log of a Delta "
    "table is not whole, or it names a file that is not below its folder.",
)
REGISTERED_KEYS_WRONG: Final = ErrorEntry(
    OperationError,
    "POLYNYA-TRF-123",
    title="the keys of a registered table do not tell its rows apart",
    message="`keys` of the registered table {table}: {problem}",
    state=_KEPT,
    fix="correct `keys` of the table, or have its rows corrected where it is maintained",
    page="`keys` of a registered table name columns that are never NULL and that no two rows "
    "share. Flows and the analysis of queries rely on that, so each step that reads a new version "
    "checks it first.",
)
REGISTERED_CHANGED: Final = ErrorEntry(
    OperationError,
    "POLYNYA-TRF-124",
    title="a registered table changed while it was read",
    message="files of the registered table {table} were replaced or removed while a step read them",
    state=_KEPT,
    fix="nothing: the step is tried again",
    page="A step reads the files that it has listed. If one is overwritten or removed meanwhile, "
    "the result would belong to no version of the table, so the step ends without a commit. "
    "Writers that add files under new names, and remove old ones later, cause no such error.",
)
DELTA_FEATURE_REFUSED: Final = ErrorEntry(
    OperationError,
    "POLYNYA-TRF-125",
    title="a Delta table has a feature that Polynya does not read",
    message="the Delta table {table} has the feature {feature}, so its files alone do not give its "
    "rows",
    state=_KEPT,
    fix="let its owner remove the feature, for example `ALTER TABLE … SET TBLPROPERTIES "
    "('delta.enableDeletionVectors' = false)` and `REORG TABLE … APPLY (PURGE)`, or register "
    "Iceberg metadata that the owner writes (UniForm)",
    page="The protocol of a Delta table lists features that a reader has to know. Read are tables "
    "without features or with `timestampNtz` and `vacuumProtocolCheck`, and with `deletionVectors` "
    "while no file has one. Column mapping, deletion vectors, widened types, checkpoints of "
    "version 2, variants and commits by a catalog are refused.",
)
DELTA_READER_MISSING: Final = ErrorEntry(
    OperationError,
    "POLYNYA-TRF-126",
    title="the library that reads the log of Delta tables is not installed",
    message="the Delta table {table} needs the package `deltalake`",
    state=_KEPT,
    fix="`pip install 'polynya[delta]'`",
    page="It is an extra, since it takes 130 MB and only registered Delta tables need it.",
)
