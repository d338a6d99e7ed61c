"""The source formats that a task may name, and the rules of each: facts, and checks of settings.

The readers are in `polynya.formats`; docs/architecture.md says how to add a format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias

from polynya.model.documents.problems import Problem
from polynya.model.error_catalogue.configuration import CONTRADICTING_SETTINGS, NOT_FOR_FORMAT
from polynya.model.headers import STREAM_HEADER_NAMES
from polynya.model.names import shown


class Delivered(Protocol):
    """What the checks of a format look at in `landing`; see `Delivery` in `config/settings.py`."""

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
        """At the start of a line that is not a record."""
        ...

    @property
    def decimal_character(self) -> str:
        """Before the decimal places."""
        ...

    @property
    def thousands_separator(self) -> str | None:
        """Between groups of three digits."""
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
        tells_load_time: rows of a full load have the time at which the source read them.
        reads_in_order: a loaded row has the position in the order of events at which it was read.
        in_order: the files of a table land in the order of their names, without gaps, so a table
            remembers the newest one only.
        awaits_columns: records of many shapes keep coming, so a column that settings name may come
            at any time; only a name that looks like a misspelled one stops a dataset.
        path: the files of a dataset that names none, a glob in which `{name}` is its name.
        header_columns: source columns that settings may name, and that no table has by itself.
        has_header_lines: column names stand in a header line; without it, `columns` gives them.
        spells_times: texts are times, so declared columns may say how these are written.
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
    spells_times: bool = False
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
        """Whether a table with rows of another format may continue with this one.

        It may when both are ordered by the same columns and say as much about an event.
        """
        ordered_by_columns = not self.brings_order and not before.brings_order
        return ordered_by_columns and self.tells_operations == before.tells_operations


def _dialect_problems(landing: Delivered) -> Iterator[Problem]:
    """Yield characters with two meanings, and a NULL marker that no field can have."""
    escape = None if landing.escape == landing.quote_character else landing.escape
    meanings = {
        "delimiter": landing.delimiter_character,
        "quote": landing.quote_character or None,
        "escape": escape,
        "comment": landing.comment,
    }
    taken: dict[str, str] = {}
    for key, character in meanings.items():
        if character is None:
            continue
        first = taken.setdefault(character, key)
        if first != key:
            yield Problem(
                (key if key in landing.model_fields_set else first,),
                CONTRADICTING_SETTINGS(
                    f"{shown(character)} is both the `{first}` and the `{key}`",
                    fix="choose another character for one of them",
                ),
            )
    marker = landing.null_value
    marks = (meanings["delimiter"], meanings["quote"])
    if marker and any(mark in marker for mark in marks if mark is not None):
        yield Problem(
            ("null_value",),
            CONTRADICTING_SETTINGS(
                f"{shown(marker)} contains a delimiter or a quote, so no field can have this text",
                fix="write the text that stands between two delimiters",
            ),
        )


def _separator_problems(landing: Delivered) -> Iterator[Problem]:
    """Yield a separator that means the decimal places and the thousands."""
    if landing.thousands_separator != landing.decimal_character:
        return
    fix = "choose another character for one of them"
    if "decimal_separator" not in landing.model_fields_set:
        fix = "add the `decimal_separator`, which is `.` unless it is set"
    yield Problem(
        ("thousands_separator",),
        CONTRADICTING_SETTINGS(
            f"{shown(landing.decimal_character)} is also the `decimal_separator`", fix=fix
        ),
    )


def _csv_problems(landing: Delivered) -> Iterator[Problem]:
    yield from _dialect_problems(landing)
    yield from _separator_problems(landing)


_SEPARATORS: Final = frozenset({"decimal_separator", "thousands_separator"})
_ZIP: Final = frozenset({"zip_member"})

JSON: Final = FormatRules(
    "json",
    spells_times=True,
    landing_settings=frozenset({"record_path", "encoding"}) | _SEPARATORS | _ZIP,
    events_in_tests="lines",
    lines_in_tests=True,
    check_landing=_separator_problems,
)
CSV: Final = FormatRules(
    "csv",
    has_header_lines=True,
    spells_times=True,
    landing_settings=frozenset(
        {
            "header",
            "delimiter",
            "null_value",
            "quote",
            "escape",
            "comment",
            "skip_lines",
            "encoding",
        }
    )
    | _SEPARATORS
    | _ZIP,
    lines_in_tests=True,
    check_landing=_csv_problems,
)
PARQUET: Final = FormatRules("parquet", landing_settings=_ZIP, events_in_tests="parquet")
AVRO: Final = FormatRules("avro", landing_settings=_ZIP)
ORC: Final = FormatRules("orc", landing_settings=_ZIP)

EXCEL: Final = FormatRules(
    "excel", spells_times=True, landing_settings=frozenset({"sheet", "skip_lines"})
)

#: In the order of the published JSON Schema.
NATIVE: Final = (JSON, CSV, PARQUET, AVRO, ORC, EXCEL)


def _order_of_its_own(events: EventSettings) -> Iterator[Problem]:
    if events.sequence_by:
        yield Problem(
            ("sequence_by",),
            NOT_FOR_FORMAT("not for format `replicate`: its change sequence is the order"),
        )


REPLICATE: Final = FormatRules(
    "replicate",
    tables_named_in="folders",
    brings_keys=True,
    brings_order=True,
    tells_operations=True,
    tells_load_time=True,
    landing_settings=frozenset({"header", "delimiter", "null_value"}),
    check_dataset=_order_of_its_own,
)


STREAM: Final = FormatRules(
    "stream",
    brings_order=True,
    in_order=True,
    awaits_columns=True,
    path="{name}/*",
    header_columns=tuple(sorted(STREAM_HEADER_NAMES)),
    landing_settings=frozenset({"schema_registry"}),
    events_in_tests="messages",
    lines_in_tests=True,
)


def _flattening_problems(landing: Delivered) -> Iterator[Problem]:
    for key in ("add_fields", "add_fields_prefix", "wrapped"):
        if getattr(landing, key) is not None and not landing.flattened:
            yield Problem(
                (key,),
                CONTRADICTING_SETTINGS(
                    "has no meaning unless the events are flattened",
                    fix="add `flattened: true`, or remove the line",
                ),
            )
    if landing.add_fields_prefix == "" and landing.add_fields is None:
        yield Problem(
            ("add_fields_prefix",),
            CONTRADICTING_SETTINGS(
                "without a prefix nothing distinguishes the added fields from the columns of a row",
                fix="name them under `add_fields`, as the transform's `add.fields` does",
            ),
        )


DEBEZIUM: Final = FormatRules(
    "debezium",
    tables_named_in="records",
    brings_keys=True,
    brings_order=True,
    tells_operations=True,
    tells_load_time=True,
    reads_in_order=True,
    landing_settings=frozenset(
        {"flattened", "add_fields", "add_fields_prefix", "wrapped", "schema_registry"}
    ),
    events_in_tests="lines",
    lines_in_tests=True,
    check_landing=_flattening_problems,
)


#: The column that holds the operation of a row.
OPERATION: Final = "Op"


def _operation_as_column(events: EventSettings) -> Iterator[Problem]:
    if OPERATION in events.columns:
        yield Problem(
            ("columns",),
            CONTRADICTING_SETTINGS(
                f"`{OPERATION}` holds the operation and is not a column of the table",
                fix="remove it from `columns`",
            ),
        )


DMS: Final = FormatRules(
    "dms",
    tables_named_in="folders",
    brings_order=True,
    tells_operations=True,
    tells_load_time=True,
    has_header_lines=True,
    landing_settings=frozenset(
        {"header", "delimiter", "null_value", "timestamp_column", "cdc_path", "unsent_value"}
    ),
    check_dataset=_operation_as_column,
)


#: Rows of queries, which a transform makes; no file may name it.
QUERY: Final = FormatRules("query", brings_order=True)

#: A new format of Polynya is one more entry; it is published in the JSON Schema.
BUILT_IN: Final = (*NATIVE, DEBEZIUM, DMS, REPLICATE, STREAM)

_rules: Final = {rules.name: rules for rules in (*BUILT_IN, QUERY)}


def rules_of(name: str) -> FormatRules:
    """The rules of a format. Raises KeyError for a name that no format has."""
    return _rules[name]


def is_known(name: object) -> bool:
    """Whether a format has this name."""
    return isinstance(name, str) and name in _rules


def is_landed(name: object) -> bool:
    """Whether a format has this name that files may have."""
    return is_known(name) and name != QUERY.name


def all_rules() -> tuple[FormatRules, ...]:
    """The rules of all formats that files may have, those of Polynya first."""
    return tuple(rules for rules in _rules.values() if rules is not QUERY)


def add_rules(rules: FormatRules) -> None:
    """Let tasks name one more format. Raises ValueError when the name is taken."""
    if rules.name in _rules:
        raise ValueError(f"there is a format {rules.name!r} already")
    _rules[rules.name] = rules


def remove_rules(name: str) -> None:
    """Take back what `add_rules` added."""
    if rules_of(name) not in (*BUILT_IN, QUERY):
        del _rules[name]
