"""Rows of data files that DuckDB reads itself, as SQL.

DuckDB finds a column by its field id, as Iceberg's readers do, gives it the type that the table has
now, and NULL where a file lacks it. It decodes texts as it needs them, which takes half the time of
reading them into Arrow first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from polynya.query.values import quoted, text_literal

#: DuckDB's types of Iceberg's, but for decimals.
_TYPES: Final = {
    "boolean": "BOOLEAN",
    "int": "INTEGER",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMP WITH TIME ZONE",
    "string": "VARCHAR",
    "binary": "BLOB",
}
#: DuckDB would look for files whose names match.
_PATTERN: Final = frozenset("*?[")
#: What DuckDB calls the place of a row in its file. It refuses files with such a column.
_ROW_NUMBER: Final = "file_row_number"
#: The file and the place of a row; no column of a table is called like this.
_FILE: Final = "hdr__file"
_PLACE: Final = "hdr__place"


@dataclass(frozen=True, slots=True)
class FileRows:
    """Rows of data files with the columns of `schema`, but for some, and rows beside them.

    `columns` are those that are read, as Iceberg's specification writes them in JSON: the shown
    ones, and those of `touched`. `deleted` are the places of the deleted rows of each file, by its
    path, and `where` holds for the others. `touched` are keys of records whose rows are not shown;
    `beside` are rows that are.
    """

    schema: pa.Schema
    columns: Sequence[Mapping[str, Any]]
    deleted: Mapping[str, pa.Array]
    where: str = "true"
    touched: pa.Table | None = None
    beside: pa.Table | None = None

    @property
    def paths(self) -> Collection[str]:
        """The files."""
        return self.deleted.keys()

    def loaded(self, name: str) -> dict[str, pa.Table]:
        """What has to be loaded for `sql`, by the name of its relation."""
        places = [
            pa.table({"file": pa.repeat(path, len(gone)), "place": gone})
            for path, gone in self.deleted.items()
            if len(gone)
        ]
        found = {
            f"{name}_deleted": pa.concat_tables(places) if places else None,
            f"{name}_touched": self.touched,
            f"{name}_beside": self.beside,
        }
        return {relation: rows for relation, rows in found.items() if rows is not None}

    def sql(self, name: str) -> str:
        """A query of the rows."""
        return " UNION ALL ".join(self._parts(name))

    def _parts(self, name: str) -> Iterator[str]:
        """Queries of the rows of whole files, of those of the other files, and of those beside."""
        whole = [path for path, gone in self.deleted.items() if not len(gone)]
        others = [path for path, gone in self.deleted.items() if len(gone)]
        shown = ", ".join(map(quoted, self.schema.names))
        touched = "" if self.touched is None else f" ANTI JOIN {name}_touched t ON {self._same()}"
        if whole:
            rows = self._read(whole, places=False)
            yield f"SELECT {shown} FROM ({rows}) r{touched} WHERE {self.where}"
        if others:
            rows = self._read(others, places=True)
            deleted = f" ANTI JOIN {name}_deleted d ON r.{_FILE} = d.file AND r.{_PLACE} = d.place"
            yield f"SELECT {shown} FROM ({rows}) r{deleted}{touched} WHERE {self.where}"
        if self.beside is not None:
            yield f"SELECT {shown} FROM {name}_beside"

    def _same(self) -> str:
        assert self.touched is not None
        keys = map(quoted, self.touched.column_names)
        return " AND ".join(f"r.{key} IS NOT DISTINCT FROM t.{key}" for key in keys)

    def _read(self, paths: Sequence[str], *, places: bool) -> str:
        """The columns in files; `places`: with the file and the place of each row in it."""
        # Under names of ours: a column of the table may be called like one that DuckDB adds.
        own = {f"c{number}": column for number, column in enumerate(self.columns)}
        fields = (
            f"{column['id']}: {{name: '{name}', type: '{duckdb_type(column['type'])}',"
            " default_value: NULL}"
            for name, column in own.items()
        )
        named = [f"{name} AS {quoted(column['name'])}" for name, column in own.items()]
        options = ["hive_partitioning = false"]
        if places:
            named += [f"filename AS {_FILE}", f"{_ROW_NUMBER} AS {_PLACE}"]
            options += ["filename = true", f"{_ROW_NUMBER} = true"]
        return (
            f"SELECT {', '.join(named)} FROM"
            f" read_parquet([{', '.join(map(text_literal, paths))}],"
            f" schema = MAP {{{', '.join(fields)}}}, {', '.join(options)})"
        )


def duckdb_type(stored: Any) -> str | None:
    """DuckDB's type of one of Iceberg's; None for one that it may read in another way."""
    if not isinstance(stored, str):
        return None
    return stored.upper() if stored.startswith("decimal(") else _TYPES.get(stored)


def may_be_read(path: str, names: Collection[str]) -> bool:
    """Whether DuckDB reads a file with columns of these names as it is told."""
    return _PATTERN.isdisjoint(path) and _ROW_NUMBER not in names
