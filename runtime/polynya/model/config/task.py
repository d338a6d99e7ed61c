"""A storage task as written in `tasks/*.yml`, and each of its datasets with every setting final."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType
from typing import Final, Literal

from pydantic import Field

from polynya.model.config.delivery import Delivery
from polynya.model.config.evolution import SchemaEvolution
from polynya.model.config.extracts import Extracts
from polynya.model.config.fields import Frozen, Name, Pattern, Prefix
from polynya.model.config.settings import (
    DEFAULT_TOMBSTONE_RETENTION,
    ApplyPolicy,
    BadRecordPolicy,
    BatchSettings,
    Dataset,
    DatasetSettings,
    DeleteMode,
    FormatName,
    Landing,
    Mode,
    SomeColumns,
    ViewSettings,
)
from polynya.model.datatypes import DataType
from polynya.model.formats.registry import rules_of

_TRACKING: Final = frozenset({"track_history_columns", "track_history_except"})


class StorageTask(Frozen):
    """Turns landed changes into tables: one internal table and three views per dataset."""

    apiVersion: Literal["polynya/v1"] = Field(  # noqa: N815 - the key in the file
        description="Version of this file's format."
    )
    kind: Literal["storage"] = Field(description="What the task does.")
    name: Name = Field(description="Name of the task, unique in the project.")
    schema_: Name = Field(alias="schema", description="Schema of the views.")
    prefix: Prefix = Field(
        default="", description="Prefix of the names of all tables and views of the task."
    )
    internal_schema: Name | None = Field(
        default=None, description="Schema of the internal tables. Default: `<schema>_internal`."
    )
    landing: Landing = Field(description="Where the files land.")
    include: tuple[Pattern, ...] = Field(
        default=("*",),
        description="For `debezium`, `dms` and `replicate`: globs of the source tables "
        "(`schema.table`) to take. Case matters.",
    )
    exclude: tuple[Pattern, ...] = Field(
        default=(),
        description="For `debezium`, `dms` and `replicate`: globs of the source tables to leave "
        "out; wins over `include`.",
    )
    datasets: tuple[Dataset, ...] = Field(
        default=(),
        description="The datasets. Needed for native formats; for `debezium`, `dms` and "
        "`replicate` only those that need settings of their own, the others are discovered.",
    )
    defaults: DatasetSettings = Field(
        default_factory=DatasetSettings, description="Settings of all datasets of the task."
    )
    apply: ApplyPolicy = Field(
        default_factory=ApplyPolicy, description="When pending changes are applied."
    )
    batch: BatchSettings = Field(
        default_factory=BatchSettings, description="How much one copy reads at most."
    )
    views: ViewSettings = Field(
        default_factory=ViewSettings, description="Names and columns of the views."
    )


@dataclass(frozen=True, slots=True)
class ResolvedDataset:
    """One dataset with every setting final; what landing and the engine work from.

    View names carry the prefix. Empty tuples and None mean "not set". `mode` None means that the
    data decides (debezium, replicate): merge when the source names keys. Expressions are as the
    user wrote them.
    """

    task: str
    name: str
    schema: str
    prefix: str
    internal_schema: str
    internal_table: str
    view: str
    history_view: str
    changes_view: str
    format: FormatName
    landing_path: str
    path: str
    initial_load: str | None = None
    extracts: Extracts | None = None
    source: str | None = None
    keys: tuple[str, ...] = ()
    sequence_by: tuple[str, ...] = ()
    timestamp: str | None = None
    apply_as_deletes: str | None = None
    apply_as_truncates: str | None = None
    ignore_null_updates: SomeColumns = False
    except_columns: tuple[str, ...] = ()
    columns: Mapping[str, DataType] = field(default_factory=dict)
    history: bool = False
    mode: Mode | None = None
    delete_mode: DeleteMode = "hard"
    coalesce_unchanged: bool = False
    track_history_columns: tuple[str, ...] = ()
    track_history_except: tuple[str, ...] = ()
    tombstone_retention: timedelta = DEFAULT_TOMBSTONE_RETENTION
    changes_retention: timedelta | Literal["keep"] | None = None
    delivery: Delivery = field(default_factory=Delivery)
    schema_evolution: SchemaEvolution = field(default_factory=SchemaEvolution)
    on_bad_record: BadRecordPolicy = "quarantine"
    headers_view: str | None = None
    from_timestamp: bool = False

    @property
    def relations(self) -> tuple[str, ...]:
        """All names that the dataset takes in the catalog, in lower case as catalogs may do."""
        views = [self.view, self.history_view, self.changes_view]
        if self.headers_view is not None:
            views.append(self.headers_view)
        names = [f"{self.internal_schema}.{self.internal_table}"]
        names += [f"{self.schema}.{view}" for view in views]
        return tuple(name.lower() for name in names)


def resolved(task: StorageTask, dataset: Dataset) -> ResolvedDataset:
    """Return a dataset of a task with the task's defaults and the built-in ones filled in."""
    settings = merged(task.defaults, dataset)
    table = f"{task.prefix}{dataset.name}"
    extracts = dataset.extracts
    by_data = rules_of(task.landing.format).brings_keys
    return ResolvedDataset(
        task=task.name,
        name=dataset.name,
        schema=task.schema_,
        prefix=task.prefix,
        internal_schema=task.internal_schema or f"{task.schema_}_internal",
        internal_table=f"{table}_internal",
        view=table,
        history_view=f"{table}{task.views.history}",
        changes_view=f"{table}{task.views.changes}",
        format=task.landing.format,
        landing_path=task.landing.path,
        path=dataset.path or ("*/*" if extracts and extracts.each == "folder" else "*"),
        initial_load=dataset.initial_load,
        extracts=extracts,
        source=dataset.source,
        keys=settings.keys or (),
        sequence_by=settings.sequence_by or (),
        timestamp=settings.timestamp or (extracts.updated_at if extracts else None),
        apply_as_deletes=settings.apply_as_deletes,
        apply_as_truncates=settings.apply_as_truncates,
        ignore_null_updates=settings.ignore_null_updates or False,
        except_columns=settings.except_columns or (),
        columns=MappingProxyType(dict(settings.columns or {})),
        history=bool(settings.history),
        mode=settings.mode or (None if by_data else "merge"),
        delete_mode=settings.delete_mode or "hard",
        coalesce_unchanged=bool(settings.coalesce_unchanged),
        track_history_columns=settings.track_history_columns or (),
        track_history_except=settings.track_history_except or (),
        # A zero retention is a choice, not an absence.
        tombstone_retention=(
            DEFAULT_TOMBSTONE_RETENTION
            if settings.tombstone_retention is None
            else settings.tombstone_retention
        ),
        changes_retention=settings.changes_retention,
        delivery=task.landing,
        schema_evolution=settings.schema_evolution or SchemaEvolution(),
        on_bad_record=settings.on_bad_record or "quarantine",
        headers_view=f"{table}{task.views.headers_suffix}" if task.views.headers else None,
        from_timestamp=task.views.from_timestamp,
    )


def merged(defaults: DatasetSettings, settings: DatasetSettings) -> DatasetSettings:
    """Return settings in which whatever `settings` writes, also a null, wins over `defaults`."""
    own = settings.model_fields_set
    fields = DatasetSettings.model_fields
    # The two tracking lists are one choice: naming either replaces the default of both.
    blocked = own | _TRACKING if own & _TRACKING else own
    inherited = {
        name: getattr(defaults, name)
        for name in fields
        if name in defaults.model_fields_set and name not in blocked
    }
    written = {name: getattr(settings, name) for name in fields if name in own}
    if settings.schema_evolution is not None:
        written["schema_evolution"] = settings.schema_evolution.over(defaults.schema_evolution)
    return DatasetSettings.model_construct(
        _fields_set=set(inherited) | set(written), **inherited, **written
    )
