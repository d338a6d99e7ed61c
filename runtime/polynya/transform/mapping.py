"""The expressions of a mapping, ready to be computed, and the one array whose elements are rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from polynya.model.config.dataset import ResolvedDataset
from polynya.model.errors import ConfigError
from polynya.transform.unnesting import ArrayPath, Flat, flattened


@dataclass(frozen=True, slots=True)
class Mapped:
    """What a mapping computes of each record.

    `columns` by name of the column; `where`, `truncates` and `deletes` are conditions. `array` is
    the path whose elements are rows, None where a record is one.
    """

    columns: Mapping[str, Flat]
    where: Flat | None = None
    truncates: Flat | None = None
    deletes: Flat | None = None
    array: ArrayPath | None = None

    @property
    def texts(self) -> list[Flat]:
        """All that is computed."""
        conditions = (self.where, self.truncates, self.deletes)
        return [*self.columns.values(), *(one for one in conditions if one is not None)]


def mapped(dataset: ResolvedDataset) -> Mapped:
    """What the mapping of a dataset computes. Raises ConfigError as its check does."""
    mapping, events = dataset.mapping, dataset.events
    columns = {
        one.name: flattened(one.expression, f"{dataset.name}, column {one.name}")
        for one in mapping.columns
    }
    where, truncates, deletes = (
        None if text is None else flattened(text, dataset.name)
        for text in (mapping.where, events.apply_as_truncates, events.apply_as_deletes)
    )
    places = [(f"{dataset.name}, column {name}", flat) for name, flat in columns.items()]
    rest = [where, truncates, deletes]
    places += [(dataset.name, flat) for flat in rest if flat is not None]
    return Mapped(columns, where, truncates, deletes, array_of(places))


def array_of(places: Iterable[tuple[str, Flat]]) -> ArrayPath | None:
    """The path that all expressions share, given with their places.

    Raises ConfigError POLYNYA-MAP-001 for two that do not lead to each other.
    """
    longest: ArrayPath | None = None
    first = ""
    for where, flat in places:
        for path in flat.paths:
            if longest is None or longest.leads_to(path):
                longest, first = path, where
            elif not path.leads_to(longest):
                raise ConfigError(
                    "POLYNYA-MAP-001",
                    f"`{path}` makes rows of another array than `{longest}` at {first}",
                    where=where,
                    state="nothing was read",
                    fix="make rows of one of the two only: keep the other as an array, or read the "
                    "files by a second dataset",
                )
    return longest
