"""A storage task as written in `tasks/*.yml`, and each of its datasets with every setting final."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final, Literal

from pydantic import Field

from polynya.model.config.dataset import (
    Events,
    Kept,
    Landed,
    Policies,
    Relations,
    ResolvedDataset,
    TableLayout,
)
from polynya.model.config.engines import EngineSetting
from polynya.model.config.evolution import SchemaEvolution
from polynya.model.config.fields import ClusterName, Frozen, Name, Pattern, Prefix
from polynya.model.config.maintenance import Maintenance
from polynya.model.config.mapping import ColumnMapping, mapping_of
from polynya.model.config.rules import TransformationRule
from polynya.model.config.settings import (
    DEFAULT_TOMBSTONE_RETENTION,
    ApplyPolicy,
    BatchSettings,
    Dataset,
    DatasetSettings,
    Extracts,
    FormatName,
    Landing,
    ViewSettings,
)
from polynya.model.formats import rules_of

_TRACKING: Final = frozenset({"track_history_columns", "track_history_except"})


class StorageTask(Frozen):
    """Turns landed changes into tables: one internal table and three views per dataset."""

    apiVersion: Literal["polynya/v1"] = Field(  # noqa: N815 - the key in the file
        description="Version of this file's format."
    )
    kind: Literal["storage"] = Field(description="Kind of the task.")
    name: Name = Field(description="Name of the task, unique in the project.")
    schema_: Name = Field(alias="schema", description="Schema of the views.")
    prefix: Prefix = Field(
        default="", description="Prefix of the names of all tables and views of the task."
    )
    internal_schema: Name | None = Field(
        default=None, description="Schema of the internal tables. Default: `<schema>_internal`."
    )
    landing: Landing = Field(description="Folder and format of the landed files.")
    include: tuple[Pattern, ...] = Field(
        default=("*",),
        description="For `debezium`, `dms` and `replicate`: globs of the source tables "
        "(`schema.table`) to include. Case matters.",
    )
    exclude: tuple[Pattern, ...] = Field(
        default=(),
        description="For `debezium`, `dms` and `replicate`: globs of the source tables to leave "
        "out; overrides `include`.",
    )
    datasets: tuple[Dataset, ...] = Field(
        default=(),
        description="The datasets. Needed for native formats; for `debezium`, `dms` and "
        "`replicate` only those that need settings of their own, the others are discovered.",
    )
    defaults: DatasetSettings = Field(
        default_factory=DatasetSettings, description="Settings of all datasets of the task."
    )
    rules: tuple[TransformationRule, ...] = Field(
        default=(),
        description="Changes of rows and columns by patterns, in this order, after those of the "
        "project.",
    )
    apply: ApplyPolicy = Field(
        default_factory=ApplyPolicy, description="When pending changes are applied."
    )
    batch: BatchSettings = Field(
        default_factory=BatchSettings, description="Limits of what one copy reads."
    )
    views: ViewSettings = Field(
        default_factory=ViewSettings, description="Names and columns of the views."
    )
    engine: EngineSetting | None = Field(
        default=None,
        description="Engine on which an agent runs this task: `local`, a standalone Spark "
        "cluster, EMR Serverless or Glue. Default: `engine` of the target.",
    )
    cluster: ClusterName | None = Field(
        default=None,
        description="Cluster whose agents run this task. Default: `cluster` of the project.",
    )


def resolved(task: StorageTask, dataset: Dataset) -> ResolvedDataset:
    """Return a dataset of a task with the task's defaults and the built-in ones filled in."""
    settings = merged(task.defaults, dataset)
    rules = tuple(
        rule for rule in task.rules if rule.when.takes_dataset(task.schema_, dataset.name)
    )
    mapping = mapping_of(settings.columns, settings.nested, settings.where, rules)
    return ResolvedDataset(
        task=task.name,
        name=dataset.name,
        relations=_relations(task, f"{task.prefix}{dataset.name}"),
        landing=_landed(task.landing, dataset),
        events=_events(settings, mapping, dataset.extracts, task.landing.format),
        mapping=mapping,
        kept=_kept(settings, mapping, task.landing.format),
        layout=TableLayout(
            partition_by=settings.partition_by or (),
            sort_by=settings.sort_by or (),
            file_bytes=settings.target_file_size,
        ),
        policies=Policies(
            schema_evolution=settings.schema_evolution or SchemaEvolution(),
            on_bad_record=settings.on_bad_record or "quarantine",
        ),
        maintenance=settings.maintenance or Maintenance(),
        withholds=mapping.hides,
        inherited=frozenset(task.defaults.model_fields_set - dataset.model_fields_set),
    )


def _relations(task: StorageTask, table: str) -> Relations:
    views = task.views
    return Relations(
        schema=task.schema_,
        view=table,
        history_view=f"{table}{views.history}",
        changes_view=f"{table}{views.changes}",
        internal_schema=task.internal_schema or f"{task.schema_}_internal",
        internal_table=f"{table}_internal",
        prefix=task.prefix,
        headers_view=f"{table}{views.headers_suffix}" if views.headers else None,
        from_timestamp=views.from_timestamp,
    )


def _landed(landing: Landing, dataset: Dataset) -> Landed:
    extracts = dataset.extracts
    unnamed = rules_of(landing.format).path.format(name=dataset.name)
    return Landed(
        format=landing.format,
        folder=landing.path,
        glob=dataset.path or ("*/*" if extracts and extracts.each == "folder" else unnamed),
        initial_load=dataset.initial_load,
        extracts=extracts,
        reload=dataset.reload,
        source=dataset.source,
        delivery=landing,
    )


def _events(
    settings: DatasetSettings,
    mapping: ColumnMapping,
    extracts: Extracts | None,
    format_: FormatName,
) -> Events:
    excepted = (*(settings.except_columns or ()), *rules_of(format_).header_columns)
    return Events(
        keys=mapping.keys or settings.keys or (),
        sequence_by=settings.sequence_by or (),
        timestamp=settings.timestamp or (extracts.updated_at if extracts else None),
        apply_as_deletes=settings.apply_as_deletes,
        apply_as_truncates=settings.apply_as_truncates,
        ignore_null_updates=settings.ignore_null_updates or False,
        columns=MappingProxyType(mapping.types),
        formats=MappingProxyType(dict(mapping.formats)),
        except_columns=tuple(dict.fromkeys(excepted)),
        optional=settings.optional_columns or (),
        numbers=settings.numbers,
    )


def _kept(settings: DatasetSettings, mapping: ColumnMapping, format_: FormatName) -> Kept:
    by_data = rules_of(format_).brings_keys
    retention = settings.tombstone_retention
    return Kept(
        mode=settings.mode or (None if by_data else "merge"),
        history=bool(settings.history),
        delete_mode=settings.delete_mode or "hard",
        coalesce_unchanged=bool(settings.coalesce_unchanged),
        track_history_columns=settings.track_history_columns or (),
        track_history_except=settings.track_history_except or (),
        # A zero retention is a choice, not an absence.
        tombstone_retention=DEFAULT_TOMBSTONE_RETENTION if retention is None else retention,
        changes_retention=settings.changes_retention,
        retention=settings.retention,
        format_version=settings.format_version or 2,
        replaced_within=mapping.of_records(mapping.keys or settings.keys or ())
        if settings.replace_elements
        else (),
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
    if settings.maintenance is not None:
        written["maintenance"] = settings.maintenance.over(defaults.maintenance)
    return DatasetSettings.model_construct(
        _fields_set=set(inherited) | set(written), **inherited, **written
    )
