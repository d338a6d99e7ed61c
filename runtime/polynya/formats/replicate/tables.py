"""Paths of Replicate files: the table, full load or changes, the file format, the `.dfm` file.

Each source table has a folder `schema.table` for the full load and `schema.table__ct` for changes.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from polynya.formats.errors import UnreadableFileError
from polynya.formats.files import NoTable

FileKind: TypeAlias = Literal["csv", "json", "parquet"]

_CHANGES = "__ct"
#: Tables that Replicate keeps in the target, such as `attrep_ddl_history`.
_CONTROL_PREFIX = "attrep_"
_METADATA = ".dfm"
_ENDINGS: dict[str, FileKind] = {
    ".csv": "csv",
    ".csv.gz": "csv",
    ".json": "json",
    ".json.gz": "json",
    ".parquet": "parquet",
}


def table_of_replicate(path: str) -> str | NoTable:
    """The source table of a path below the landing folder, or why there is none."""
    folder, _, rest = path.partition("/")
    if path.endswith(_METADATA):
        return NoTable.COMPANION
    if folder.lower().endswith(_CHANGES):
        folder = folder[: -len(_CHANGES)]
    schema, _, table = folder.partition(".")
    if (table or schema).lower().startswith(_CONTROL_PREFIX) and rest:
        return NoTable.CONTROL
    return folder if schema and table and rest else NoTable.UNPLACED


def is_load(path: str, landing_path: str) -> bool:
    """Whether a file belongs to the full load: it is not in a folder of changes."""
    folder, _, _ = path.removeprefix(f"{landing_path}/").partition("/")
    return not folder.lower().endswith(_CHANGES)


def metadata_path(path: str) -> str:
    """The `.dfm` file that describes a data file: the same name with that ending."""
    ending = next(
        (ending for ending in sorted(_ENDINGS, reverse=True) if path.endswith(ending)), ""
    )
    stem = path.removesuffix(ending) if ending else path.rpartition(".")[0] or path
    return stem + _METADATA


def kind_of(path: str) -> FileKind:
    """The format of a file by the ending of its name. Raises UnreadableFileError."""
    for ending, kind in _ENDINGS.items():
        if path.endswith(ending):
            return kind
    raise UnreadableFileError(f"the name ends with none of {', '.join(_ENDINGS)}")
