"""The inputs of a transform that others maintain.

A step reads each at one version, as it reads each table of the project at one snapshot. The
declared keys of the rows that differ between two versions are known from the files that others have
added, removed or named in deletes. Where they are not, a new version lets a step compute all rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from polynya.derived.schema import DerivedInput
from polynya.engine.context import EngineContext
from polynya.engine.derivation import WITHOUT_KEYS, input_name
from polynya.engine.tasks.affected_rows import TemporaryViews
from polynya.formats.values.arrow_types import arrow_type
from polynya.lake.copy.derived_result import registered_text
from polynya.lake.read.registered import (
    RegisteredChanges,
    RegisteredReader,
    reader_of,
    refuse_wrong_keys,
)
from polynya.lake.spark.api import DataFrame
from polynya.model.config.registered import RegisteredDataset
from polynya.model.types import parse_type

#: Looks take at most this share of the time: a listing of a large folder is many requests.
_LOOKS: Final = 0.05


class RegisteredInputs:
    """Those that one query reads, by their name in the query."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context
        self._readers: dict[str, RegisteredReader] = {}
        self._newest: dict[str, int] = {}
        #: The version that the next step reads, and its columns in Spark's spelling.
        self._chosen: dict[str, int] = {}
        self._columns: dict[tuple[str, int], dict[str, str]] = {}
        #: What changed since the version that the last step has read, or why that is not known.
        self._changes: dict[str, RegisteredChanges | str] = {}
        self._next_look = float("-inf")

    def __contains__(self, name: str) -> bool:
        return name in self._readers

    def add(self, name: str, dataset: RegisteredDataset) -> None:
        """Read a table from now on."""
        self._readers[name] = reader_of(self._context.spark, dataset, self._context.access)

    def look(self) -> None:
        """See the newest versions. Raises OperationError as `RegisteredReader.newest` does."""
        clock = self._context.clock
        began = clock.monotonic()
        if began < self._next_look and self._newest.keys() == self._readers.keys():
            return
        self._newest = {name: reader.newest() for name, reader in self._readers.items()}
        ended = clock.monotonic()
        self._next_look = ended + (ended - began) / _LOOKS

    def choose(self, read: Mapping[str, set[int]]) -> dict[str, int] | None:
        """The version at which each is read; `read` has those that inputs were derived from.

        None while inputs were derived from versions with different rows, or from one that is gone.
        """
        chosen: dict[str, int] = {}
        for name, reader in self._readers.items():
            newest = self._newest[name]
            versions = read.get(input_name(reader.dataset), {newest})
            found = next(
                (
                    one
                    for one in (newest, *versions)
                    if reader.holds(one)
                    and all(one == v or reader.shows_same_rows(v, one) for v in versions)
                ),
                None,
            )
            if found is None:
                return None
            chosen[name] = found
        self._chosen = chosen
        return self._by_input(chosen)

    def _by_input(self, versions: Mapping[str, int]) -> dict[str, int]:
        return {input_name(self._readers[name].dataset): one for name, one in versions.items()}

    def changed(self, before: Mapping[str, int], now: Mapping[str, int]) -> str | None:
        """The name of one that may show other rows than before; None without one."""
        for name, reader in self._readers.items():
            own = input_name(reader.dataset)
            same = before[own] == now[own] or reader.shows_same_rows(before[own], now[own])
            if not same:
                return name
        return None

    def described(self) -> dict[str, DerivedInput]:
        """Their columns and keys."""
        return {
            name: DerivedInput(name, self._columns_of(name), self._readers[name].dataset.table.keys)
            for name in self._chosen
        }

    def find_changes(self, before: Mapping[str, int]) -> None:
        """Find what changed since the versions of the last step, which had the same columns."""
        self._changes = {}
        for name, version in self._chosen.items():
            reader = self._readers[name]
            since = before.get(input_name(reader.dataset))
            if since is None or since == version or reader.shows_same_rows(since, version):
                continue
            has_keys = bool(reader.dataset.table.keys)
            self._changes[name] = reader.changes(since, version) if has_keys else WITHOUT_KEYS

    def changed_keys(self, name: str) -> pa.Table | str:
        """The keys of the rows of one that differ since then, or why they are not known."""
        change = self._changes.get(name)
        if isinstance(change, str):
            return change
        table = self.described()[name]
        columns = table.keys or tuple(table.columns)[:1]
        schema = pa.schema(
            [pa.field(one, arrow_type(parse_type(table.columns[one]))) for one in columns]
        )
        return schema.empty_table() if change is None else change.keys.cast(schema)

    def share(self, name: str) -> float:
        """The share of one that was read for its changed keys."""
        change = self._changes.get(name)
        return change.share if isinstance(change, RegisteredChanges) else 0.0

    def changed_rows(self, views: TemporaryViews, name: str) -> tuple[str, str] | None:
        """Quoted views of the rows of one that differ, before and now; None: not known apart."""
        change = self._changes.get(name)
        if not isinstance(change, RegisteredChanges) or change.rows is None:
            return None
        before, now = change.rows
        return views.of(before), views.of(now)

    def changed_by(self, name: str) -> str | None:
        """The column that tells by its values whether a row of one changed."""
        return self._readers[name].dataset.table.changed_by

    def frames_before(self, before: Mapping[str, int]) -> dict[str, DataFrame]:
        """The rows of those of which changed keys are known, as the last step has read them."""
        return {
            name: self._readers[name].rows(before[input_name(self._readers[name].dataset)])
            for name, change in self._changes.items()
            if isinstance(change, RegisteredChanges)
        }

    def texts(self) -> dict[str, str]:
        """What the result depends on besides their rows."""
        # Rows that were left out by a wrong `changed_by` are computed once it is corrected.
        return {
            name: registered_text(one.columns, one.keys, self._readers[name].dataset.table)
            for name, one in self.described().items()
        }

    def frames(self, views: TemporaryViews, known: Mapping[str, int]) -> dict[str, DataFrame]:
        """The rows of each; `known` has the versions of `find_changes`, whose keys were checked.

        Raises OperationError for keys that do not tell the rows apart.
        """
        for name, version in self._chosen.items():
            reader = self._readers[name]
            change, table = self._changes.get(name), reader.dataset.table
            if not table.keys or (change is None and input_name(reader.dataset) in known):
                continue
            rows = reader.rows(version, table.named_columns)
            if isinstance(change, RegisteredChanges):
                # The keys of all other rows are as they were.
                changed = views.of_keys(change.keys)
                rows = views.spark.sql(f"SELECT v.* FROM {views.of(rows)} v {changed.join('v')}")
            refuse_wrong_keys(reader, rows)
        return {name: self._readers[name].rows(one) for name, one in self._chosen.items()}

    def _columns_of(self, name: str) -> dict[str, str]:
        place = name, self._chosen[name]
        if place not in self._columns:
            schema = self._readers[name].rows(place[1]).schema
            self._columns = {
                place: {field.name: field.dataType.simpleString() for field in schema.fields}
            }
        return self._columns[place]
