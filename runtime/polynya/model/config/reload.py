"""How a reload treats what a table held before (semantics section 8)."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

ReloadMode: TypeAlias = Literal[
    "compare_and_apply_with_deleted_rows",
    "compare_and_apply_without_deleted_rows",
    "drop_and_create",
    "truncate_and_insert",
]
#: The mode in which no record is lost that the load lacks.
KEEPING: Final = "compare_and_apply_without_deleted_rows"
#: The default: the table becomes what the load holds.
DELETING: Final = "compare_and_apply_with_deleted_rows"
#: A load that is empty, or of which something went to quarantine: an error, taken as it is, or
#: taken so that the records that it lacks stay.
Incomplete: TypeAlias = Literal["refuse", "accept", "keep"]
