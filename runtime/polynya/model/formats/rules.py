"""The rules of one source format: facts and checks of settings. How it is read is not known here.

The reading side of a format is `polynya.formats`; docs/architecture.md says how to add one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from polynya.model.documents.problems import Problem


class Delivered(Protocol):
    """What the checks of a format look at in `landing`; see `config/delivery.py`."""

    @property
    def delimiter_character(self) -> str:
        """Between two fields."""
        ...

    @property
    def quote_character(self) -> str:
        """Around a field, "" for none."""
        ...

    @property
    def escape(self) -> str | None:
        """Before a quote inside of a field."""
        ...

    @property
    def comment(self) -> str | None:
        """At the start of a line that is no record."""
        ...

    @property
    def null_value(self) -> str | None:
        """The text of a field that is NULL."""
        ...

    @property
    def flattened(self) -> bool | None:
        """Whether the events are flattened."""
        ...

    @property
    def add_fields(self) -> Sequence[object] | None:
        """What flattening added to the rows."""
        ...

    @property
    def add_fields_prefix(self) -> str | None:
        """How the names of the added fields begin."""
        ...

    @property
    def wrapped(self) -> bool | None:
        """Whether records have their row under `value`."""
        ...

    @property
    def model_fields_set(self) -> set[str]:
        """The settings that are written in the task."""
        ...


class EventSettings(Protocol):
    """What the checks of a format look at in a dataset; see `Events` in `config/dataset.py`."""

    @property
    def sequence_by(self) -> Sequence[str]:
        """Columns that order the events of a record."""
        ...

    @property
    def columns(self) -> Mapping[str, object]:
        """Declared types, by column."""
        ...


#: Where the source tables are named: in the settings, by folders, or in each record.
TablesNamedIn: TypeAlias = Literal["settings", "folders", "records"]
#: How a test lands the events that it writes as YAML: as lines of JSON, or as a Parquet file.
EventsInTests: TypeAlias = Literal["lines", "parquet", "messages"]
#: Yields problems of `landing`, with paths below it.
LandingCheck: TypeAlias = Callable[[Delivered], Iterable[Problem]]
#: Yields problems of a dataset whose settings are final, with paths below it.
DatasetCheck: TypeAlias = Callable[[EventSettings], Iterable[Problem]]


def _nothing(_: object) -> Iterable[Problem]:
    return ()


@dataclass(frozen=True, slots=True)
class FormatRules:
    """One format by the name that `landing.format` gives it.

    Attributes:
        name: as written in a task.
        tables_named_in: `settings`: each dataset names its files. `folders`: each source table has
            a folder. `records`: one file holds events of many tables.
        brings_keys: the source names the keys of its tables.
        brings_order: the source orders its events; without that, `sequence_by` does.
        tells_operations: an event says whether it is an insert, an update or a delete.
        tells_load_time: rows of a full load hold the time at which the source read them.
        reads_in_order: a loaded row tells at which place in the order of events it was read.
        in_order: the files of a table land in the order of their names, and none is missed before
            one that is there; a table remembers the newest one only.
        awaits_columns: records come without end and of many kinds, so a column that settings name
            may come at any time; only a name that is like one that came stops a dataset.
        path: the files of a dataset that names none, a glob in which `{name}` is its name.
        header_columns: source columns that settings may name, and that no table has by itself.
        has_header_lines: column names stand in a header line; without it, `columns` gives them.
        landing_settings: the settings of `landing` that it takes, besides `path` and `format`.
        events_in_tests: how a test may write its events as YAML, None: not at all.
        lines_in_tests: whether a test may write its files as text.
        check_landing: what else `landing` may have wrong.
        check_dataset: what else the settings of a dataset may have wrong.
    """

    name: str
    tables_named_in: TablesNamedIn = "settings"
    brings_keys: bool = False
    brings_order: bool = False
    tells_operations: bool = False
    tells_load_time: bool = False
    reads_in_order: bool = False
    in_order: bool = False
    awaits_columns: bool = False
    path: str = "*"
    header_columns: tuple[str, ...] = ()
    has_header_lines: bool = False
    landing_settings: frozenset[str] = frozenset()
    events_in_tests: EventsInTests | None = None
    lines_in_tests: bool = False
    check_landing: LandingCheck = _nothing
    check_dataset: DatasetCheck = _nothing

    @property
    def finds_tables(self) -> bool:
        """Whether source tables are found in the landing zone: `include` and `exclude` choose."""
        return self.tables_named_in != "settings"

    @property
    def shares_files(self) -> bool:
        """Whether one file feeds many tables."""
        return self.tables_named_in == "records"

    def may_follow(self, before: FormatRules) -> bool:
        """Whether a table with rows of another format may go on with this one.

        It may when both are ordered by the same columns and say as much about an event.
        """
        ordered_by_columns = not self.brings_order and not before.brings_order
        return ordered_by_columns and self.tells_operations == before.tells_operations
