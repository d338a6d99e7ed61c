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
