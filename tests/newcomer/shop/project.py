"""The newcomer's project: made by `polynya init`, fed by files, read by DuckDB and PyIceberg."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.newcomer.commands import Commands
from tests.newcomer.shop.comparing import Row, current_rows, differences, history_rows
from tests.newcomer.shop.feed import CONTROL, DELETES, TABLES, Feed, Table, feeds
from tests.oracle.fold import fold
from tests.oracle.packs.read_back import internal_table, read_pyiceberg

if TYPE_CHECKING:
    import duckdb

SCHEMA = "shop"


@dataclass
class Shop:
    """A project folder, and what has landed in it."""

    folder: Path
    feeds: dict[str, Feed]
    tables: tuple[Table, ...] = TABLES
    polynya: Commands = field(init=False)

    def __post_init__(self) -> None:
        self.polynya = Commands(self.folder)

    @classmethod
    def made(
        cls,
        folder: Path,
        seed: int,
        *,
        tables: tuple[Table, ...] = TABLES,
        defaults: Mapping[str, Any] | None = None,
        deletes: int = DELETES,
    ) -> Shop:
        """A new project without any data. `defaults` are settings of all its datasets.

        `deletes` is the chance in percent that a change is one.
        """
        folder.parent.mkdir(parents=True, exist_ok=True)
        Commands(folder.parent).must("init", folder.name, "--empty")
        (folder / "tasks").mkdir(exist_ok=True)
        for format_ in ("json", "csv"):
            datasets = [_dataset(one) for one in tables if one.format == format_]
            if not datasets:
                continue
            document = json.dumps(_task(format_, datasets, defaults or {}), indent=1)
            (folder / "tasks" / f"{format_}.yml").write_text(document, encoding="utf-8")
        return cls(folder, feeds(seed, tables, deletes=deletes), tables)

    def at(self, folder: Path) -> Shop:
        """The same project in another folder."""
        return Shop(folder, self.feeds, self.tables)

    def land_load(self, table: Table, rows: int) -> None:
        """Land a file of the first full load."""
        feed = self.feeds[table.name]
        self._land(table, "load", feed.files, feed.load(rows))

    def land_changes(self, table: Table, count: int, *, now: datetime | None = None) -> float:
        """Land a file of changes; the moment at which it was closed, in monotonic seconds."""
        feed = self.feeds[table.name]
        return self._land(table, "changes", feed.files, feed.changes(count, now=now))

    def _land(self, table: Table, folder: str, number: int, text: str) -> float:
        """Write a file under a name that is not read yet, and rename it when it is complete."""
        file = self.folder / "landing" / SCHEMA / table.name / folder / f"{number:06d}"
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(".part")
        partial.write_text(text, encoding="utf-8")
        closed = time.monotonic()
        os.replace(partial, file.with_suffix(table.ending))
        return closed

    def damage(self, *, stored: bool = False) -> list[str]:
        """What differs from the fold of all that has landed; empty when everything is right.

        Live views are read with DuckDB, and with `stored`, where nothing is pending, the stored
        rows with PyIceberg as well. What `polynya status` counts is compared with the files.
        """
        found = [self._accounts()]
        for table in self.tables:
            views = self.views(table)
            folded = fold(self.feeds[table.name].events, load_start=_load_start(table, views))
            wanted = list(current_rows(table, folded))
            got = duckdb_rows(views, _select(_shown(table), table.name))
            found.append(differences(f"{table.name}, live", wanted, got))
            if stored:
                rows = self._stored(table)
                found.append(differences(f"{table.name}, stored", wanted, rows))
            if table.history:
                names = (*table.keys, *table.columns, *_VERSION)
                versions = duckdb_rows(views, _select(names, f"{table.name}__history"))
                what = f"{table.name}, history"
                found.append(differences(what, history_rows(table, folded), versions))
        return [text for text in found if text]

    def live_keys(self, table: Table, first: int) -> set[int]:
        """First key columns from a number on, as the live view shows them now."""
        key = table.keys[0]
        query = _select((key,), table.name, f"{key} >= {first}")
        return {row[0] for row in duckdb_rows(self.views(table), query)}

    def views(self, table: Table) -> str:
        """The statements that make the live views of the newest commit in DuckDB."""
        return self.polynya.must("views", f"{SCHEMA}.{table.name}", "--engine", "duckdb")

    def _stored(self, table: Table) -> Iterator[Row]:
        names = (*table.keys, *table.columns)
        read = (*names, "hdr__operation")
        space, name = internal_table(SCHEMA, table.name)
        current = "hdr__partition == 'current'"
        for row in read_pyiceberg(self.folder, space, name, read, current):
            deleted = row["hdr__operation"] in ("D", "d")
            yield (*(row[one] for one in names), *((deleted,) if table.soft else ()))

    def _accounts(self) -> str:
        """Records in, and those set aside, against the lines that were landed."""
        counted = {
            (one["dataset"], one["rows_in"], one["rows_quarantined"])
            for one in self.polynya.objects("status")
            if one["type"] == "dataset.status"
        }
        landed = {(f"{SCHEMA}.{n}", one.lines, one.garbage) for n, one in self.feeds.items()}
        return differences("records and quarantined records by dataset", landed, counted)


_VERSION = ("hdr__operation", "hdr__from_timestamp", "hdr__to_timestamp")


def connected() -> duckdb.DuckDBPyConnection:
    """A DuckDB that reads Iceberg, to be closed by who asked for it."""
    import duckdb
    import duckdb_ext

    extensions = str(Path(next(iter(duckdb_ext.__path__))) / "extensions")
    connection = duckdb.connect(config={"extension_directory": extensions})
    for name in ("avro", "iceberg"):
        connection.execute(f"LOAD {name}")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def duckdb_rows(views: str, query: str) -> list[Row]:
    """Rows of a query over views that are made first."""
    with connected() as connection:
        connection.execute(views)
        table = connection.execute(query).fetch_arrow_table()
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _select(names: tuple[str, ...], view: str, where: str = "TRUE") -> str:
    columns = ", ".join(f'"{name}"' for name in names)
    return f"SELECT {columns} FROM {SCHEMA}.{view} WHERE {where}"


def _load_start(table: Table, views: str) -> datetime | None:
    """The start of the full load, which the engine's clock gave to all rows of it."""
    if not table.history:
        return None
    query = _select(("hdr__from_timestamp",), f"{table.name}__history", "hdr__operation = 'L'")
    starts = {row[0] for row in duckdb_rows(views, query)}
    return starts.pop().replace(tzinfo=UTC) if len(starts) == 1 else None


def _shown(table: Table) -> tuple[str, ...]:
    return (*table.keys, *table.columns, *(("hdr__deleted",) if table.soft else ()))


def _task(
    format_: str, datasets: list[dict[str, Any]], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """The task with the tables that land in a format."""
    return {
        "apiVersion": "polynya/v1",
        "kind": "storage",
        "name": format_,
        "schema": SCHEMA,
        "landing": {"path": SCHEMA, "format": format_},
        "defaults": dict(defaults),
        "datasets": datasets,
    }


def _dataset(table: Table) -> dict[str, Any]:
    return {
        "name": table.name,
        "path": f"{table.name}/changes/*{table.ending}",
        "initial_load": f"{table.name}/load/*{table.ending}",
        "keys": list(table.keys),
        "sequence_by": ["seq"],
        "timestamp": "at",
        "apply_as_deletes": "op = 'D'",
        "except_columns": list(CONTROL),
        "columns": {**table.types, "batch": "bigint", "seq": "bigint", "at": "timestamp"},
        "history": table.history,
        "delete_mode": "soft" if table.soft else "hard",
    }
