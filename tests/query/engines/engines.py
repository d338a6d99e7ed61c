"""The engines that read live views here, each as one small adapter.

An adapter opens a project and gives, for a view, its rows as Arrow: names, types and values as the
engine has them. `edit` changes the text of a view before the engine gets it: a planted fault.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import duckdb
import duckdb_ext
import pyarrow as pa

import polynya
from examples.servers.trino import TrinoServer, sqlite_catalog
from polynya.cli.main import main
from polynya.engine.answers import answer_embedded
from polynya.engine.inventory import inventory
from polynya.lake.read.query import Statement, answer
from polynya.lake.spark.api import SparkSession
from polynya.lake.spark.catalog import python_catalog
from polynya.lake.warehouse.catalogs import catalog_file
from polynya.model.error_catalogue.operation import READ_NEEDS_SPARK
from polynya.model.errors import OperationError
from polynya.model.loader import load_project
from polynya.query.translate import NotEmbeddedError
from tests.lab.commands import fresh_session, use_everywhere
from tests.query.engines.trino_rows import as_arrow

#: Why the readers without a JVM leave a view to Spark.
REFUSED: Final = (
    "pending changes of {view} that claim the same place",
    "history that coalesces values which are not plain",
    "the key hash of pending changes, whose text is Spark's",
)


@dataclass(frozen=True)
class View:
    """A view of a dataset, `schema.dataset`; `kind` is the method that reads a live one."""

    schema: str
    name: str
    dataset: str
    kind: str

    @property
    def full_name(self) -> str:
        """As Spark has it."""
        return f"`{self.schema}`.`{self.name}`"

    @property
    def is_stored(self) -> bool:
        """Whether it shows applied rows only."""
        return self.kind.endswith("_stored")


#: None where the engine refuses the view by name, because only Spark surely reads it right.
Read: TypeAlias = Callable[[View], "pa.Table | None"]
Edit: TypeAlias = Callable[[str], str]


def unchanged(text: str) -> str:
    """The edit that plants nothing."""
    return text


@dataclass(frozen=True)
class Engine:
    """A name, as pages use it, and how to open a project with it."""

    name: str
    open: Callable[[Path], AbstractContextManager[Read]]
    #: `polynya.open` has readers of live views only.
    reads_stored_views: bool = True


def views_of(directory: Path) -> list[View]:
    """Every view of every dataset that has a table: History only where it is kept."""
    project = load_project(directory)
    found = []
    for entry in inventory(project, python_catalog(project.target)):
        relations = entry.dataset.relations
        names = {
            "current": relations.view,
            "changes": relations.changes_view,
            "current_stored": relations.current_stored_view,
        }
        if entry.dataset.kept.history:
            names["history"] = relations.history_view
            names["history_stored"] = relations.history_stored_view
        if entry.table is not None and not entry.is_ledger:
            found += [View(relations.schema, one, entry.name, kind) for kind, one in names.items()]
    return found


def spark_engine(spark: SparkSession) -> Engine:
    """The views in Spark's catalog: what the others are compared with."""

    @contextmanager
    def opened(directory: Path) -> Iterator[Read]:
        session = fresh_session(spark, load_project(directory), compiled=True)

        def read(view: View) -> pa.Table:
            got = answer(session, Statement(f"SELECT * FROM {view.full_name}"))
            return pa.Table.from_batches(got.batches, got.schema)

        try:
            yield read
        finally:
            use_everywhere(spark)

    return Engine("Spark", opened)


@contextmanager
def _embedded(directory: Path) -> Iterator[Read]:
    project = load_project(directory)

    def read(view: View) -> pa.Table | None:
        try:
            schema, batches = answer_embedded(project, f"SELECT * FROM {view.full_name}")
        except NotEmbeddedError as error:
            assert _is_known(str(error), view), error
            return None
        return pa.Table.from_batches(batches, schema)

    yield read


@contextmanager
def _python(directory: Path) -> Iterator[Read]:
    lake = polynya.open(directory)
    yield lambda view: _unless_refused(lambda: _opened(lake, view).to_arrow(), view)


@contextmanager
def _polars(directory: Path) -> Iterator[Read]:
    lake = polynya.open(directory)

    yield lambda view: _unless_refused(
        lambda: _opened(lake, view).to_polars().collect().to_arrow(), view
    )


def _unless_refused(rows: Callable[[], pa.Table], view: View) -> pa.Table | None:
    try:
        return rows()
    except OperationError as error:
        assert error.code == READ_NEEDS_SPARK.code, error
        assert _is_known(error.message, view), error
        return None


def _is_known(reason: str, view: View) -> bool:
    return any(one.format(view=f"{view.schema}.{view.name}") in reason for one in REFUSED)


def _opened(lake: polynya.Lake, view: View) -> polynya.LiveRead:
    read: polynya.LiveRead = getattr(lake.table(view.dataset), view.kind)()
    return read


EMBEDDED = Engine("`polynya query --engine embedded`", _embedded)
PYTHON = Engine("`polynya.open`", _python, reads_stored_views=False)
POLARS = Engine("Polars", _polars, reads_stored_views=False)


def duckdb_engine(edit: Edit = unchanged) -> Engine:
    """The views that `polynya views --engine duckdb` prints."""

    @contextmanager
    def opened(directory: Path) -> Iterator[Read]:
        extensions = str(Path(next(iter(duckdb_ext.__path__))) / "extensions")
        with duckdb.connect(config={"extension_directory": extensions}) as connection:
            connection.execute("LOAD avro; LOAD iceberg")
            # What the clock of the reader says does not count.
            connection.execute("SET TimeZone = 'America/Lima'")
            for statement in printed(directory, "--engine", "duckdb"):
                connection.execute(edit(statement))
            yield lambda view: connection.execute(f"FROM {_folded(view)}").fetch_arrow_table()

    return Engine("DuckDB", opened)


def trino_printed(server: TrinoServer, edit: Edit = unchanged) -> Engine:
    """The views that `polynya views --engine trino` prints, in a catalog beside that of the tables.

    The catalog of the tables has Spark's views under the same names, which Trino does not replace.
    """

    @contextmanager
    def opened(directory: Path) -> Iterator[Read]:
        server.add_catalog("polynya", "iceberg", _tables_of(directory))
        server.add_catalog("live", "memory", {})
        try:
            for statement in printed(directory, "--engine", "trino", "--catalog", "polynya"):
                server.run(edit(statement), catalog="live")
            yield lambda view: as_arrow(server.run(f"SELECT * FROM live.{_folded(view)}"))
        finally:
            server.drop_catalog("live")
            server.drop_catalog("polynya")

    return Engine("Trino with printed views", opened)


def trino_engine(server: TrinoServer) -> Engine:
    """The Iceberg views themselves, in the catalog of the tables: nothing is printed or made."""

    @contextmanager
    def opened(directory: Path) -> Iterator[Read]:
        server.add_catalog("polynya", "iceberg", _tables_of(directory))
        try:
            yield lambda view: as_arrow(server.run(f"SELECT * FROM polynya.{_folded(view)}"))
        finally:
            server.drop_catalog("polynya")

    return Engine("Trino", opened)


def _tables_of(directory: Path) -> dict[str, str]:
    target = load_project(directory).target
    file = catalog_file(target)
    assert file is not None, "the catalog is a file"
    return sqlite_catalog(file, Path(str(target.warehouse)).resolve())


def _folded(view: View) -> str:
    return f'"{view.schema.lower()}"."{view.name.lower()}"'


def printed(directory: Path, *options: str) -> list[str]:
    """The statements that `polynya views` prints for all datasets, without their semicolons."""
    out = io.StringIO()
    with redirect_stdout(out):
        code = main(["views", *options, "--project", str(directory)])
    assert code == 0, out.getvalue()
    return [text for text in out.getvalue().split(";\n") if text]
