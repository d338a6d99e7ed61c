"""The inputs of a transform that others maintain.

A step reads each at one version, as it reads each table of the project at one snapshot. What
changed between two versions is not known by key, so a new version lets a step compute all rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from polynya.derived.schema import DerivedInput
from polynya.engine.context import EngineContext
from polynya.formats.values.arrow_types import arrow_type
from polynya.lake.copy.derived_result import registered_text
from polynya.lake.read.registered import RegisteredReader, reader_of, refuse_wrong_keys
from polynya.lake.spark.api import DataFrame
from polynya.model.config.registered import RegisteredDataset
from polynya.model.types import parse_type

#: Looks take at most this share of the time: a listing of a large folder is many requests.
_LOOKS: Final = 0.05


def input_name(dataset: RegisteredDataset) -> str:
    """The name of a registered table among the inputs of a step. No internal table has it."""
    return f"registered:{dataset.relations.current}"


class RegisteredInputs:
    """Those that one query reads, by their name in the query."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context
        self._readers: dict[str, RegisteredReader] = {}
        self._newest: dict[str, int] = {}
        #: The version that the next step reads, and its columns in Spark's spelling.
        self._chosen: dict[str, int] = {}
        self._columns: dict[tuple[str, int], dict[str, str]] = {}
        self._next_look = float("-inf")

    def __contains__(self, name: str) -> bool:
        return name in self._readers

    def __bool__(self) -> bool:
        return bool(self._readers)

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

    def unchanged(self) -> dict[str, pa.Table]:
        """No key of each, in the columns of its key: none of its rows changed."""
        nothing: dict[str, pa.Table] = {}
        for name, table in self.described().items():
            columns = table.keys or tuple(table.columns)[:1]
            nothing[name] = pa.schema(
                [pa.field(one, arrow_type(parse_type(table.columns[one]))) for one in columns]
            ).empty_table()
        return nothing

    def texts(self) -> dict[str, str]:
        """What the result depends on besides their rows."""
        return {
            name: registered_text(one.columns, one.keys, self._readers[name].dataset.table.source)
            for name, one in self.described().items()
        }

    def frames(self, known: Mapping[str, int]) -> dict[str, DataFrame]:
        """The rows of each; `known` has the versions whose keys were checked before.

        Raises OperationError for keys that do not tell the rows apart.
        """
        frames: dict[str, DataFrame] = {}
        for name, version in self._chosen.items():
            reader = self._readers[name]
            frames[name] = reader.rows(version)
            if known.get(input_name(reader.dataset)) != version:
                refuse_wrong_keys(reader, frames[name])
        return frames

    def _columns_of(self, name: str) -> dict[str, str]:
        place = name, self._chosen[name]
        if place not in self._columns:
            schema = self._readers[name].rows(place[1]).schema
            self._columns = {
                place: {field.name: field.dataType.simpleString() for field in schema.fields}
            }
        return self._columns[place]
