"""The settings of Qlik that the import knows: what each becomes, or why it is lost.

The table on the page of the import is made of this one. Names and values are those of Qlik's
published JSON schemas; those of Replicate are what public scripts for its exports read and write.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from polynya.qlik.report import Verdict

_IDENTIFIES: Final = "only identifies or describes the object inside Qlik"
#: What a document is.
DocumentKind: TypeAlias = Literal[
    "project", "bindings", "task", "selection", "rules", "dataset", "schedule", "model", "flow",
    "replicate",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class QlikSetting:
    """A setting, or all settings below a path.

    Attributes:
        kind: the document in which it stands.
        path: its path; `[]` is any item, `{a,b}` one of these keys, `*` any key, and at the end of
            a loss all that is below.
        verdict: what becomes of it where a task of its type is translated.
        becomes: the equal, what differs, or why it is lost.
        todo: what to do by hand.
    """

    kind: DocumentKind
    path: str
    verdict: Verdict
    becomes: str
    todo: str = ""

    @property
    def identifies(self) -> bool:
        """Whether it only identifies or describes an object, and does nothing."""
        return self.becomes == _IDENTIFIES


_S: Final = QlikSetting
_DDL: Final = "defaults.schema_evolution"
_ENGINE: Final = "tunes an engine that Polynya does not have"

SETTINGS: Final[tuple[QlikSetting, ...]] = (
    # project
    _S("project", "properties.name", "translated", "`name` of `polynya.yml`"),
    _S("project", "properties.type", "translated", "a project has tasks of both kinds"),
    _S("project", "properties.exportVersion", "translated", _IDENTIFIES),
    _S("project", "properties.description", "translated", "a comment"),
    _S("project", "properties.platformType", "differs",
       "all tables are Iceberg tables of the target; the type only names the dialect of SQL"),
    _S("project", "properties.space", "lost", "spaces belong to a tenant of Qlik",
       "give people roles in your own platform"),
    _S("project", "properties.platformConnection", "lost", "the warehouse becomes Iceberg tables",
       "set `warehouse` and `catalog` of the target"),
    _S("project", "properties.cloudStagingConnection", "lost", "the target has a landing zone",
       "set `landing` of the target"),
    _S("project", "properties.snowflakeStorageIntegration", "lost", "nothing lands for Snowflake"),
    _S("project", "properties.lakehouseCloudProvider", "lost", "the target says where it runs"),
    _S("project", "settings.artifactsNaming.suffixHistoryViews", "translated", "`views.history`"),
    _S("project", "settings.artifactsNaming.suffixChangesView", "translated", "`views.changes`"),
    _S("project", "settings.artifactsNaming.*", "lost",
       "schemas and the other views have fixed forms of names", "write `schema` in each task"),
    _S("project", "settings.transformationSettings.*", "lost", "a salt is a secret",
       "give hashes a key: `mask: {hash: {key: …}}`"),
    # bindings
    _S("bindings", "variables[]", "translated", _IDENTIFIES),
    _S("bindings", "variables.*", "translated", "its value, where a file names the variable"),
    _S("bindings", "connectionProperties.*.type", "translated", "`type` of the connection"),
    _S("bindings", "connectionProperties.*.kindId", "translated", _IDENTIFIES),
    _S("bindings", "nameToIdMap.*", "translated", _IDENTIFIES),
    _S("bindings", "taskProperties.*.{type,name}", "translated", _IDENTIFIES),
    # task
    _S("task", "properties.name", "translated", "`name`"),
    _S("task", "properties.id", "translated", _IDENTIFIES),
    _S("task", "properties.type", "translated", "`kind`"),
    _S("task", "properties.description", "translated", "a comment"),
    _S("task", "settings.fullLoadOnly", "differs",
       "`update_method: reload` of a landing task needs a schedule: once a night unless the export "
       "has one; tables follow their landing"),
    _S("task", "settings.artifactsLocation.taskSchema", "translated", "`schema`"),
    _S("task", "settings.artifactsLocation.internalSchema", "translated", "`internal_schema`"),
    _S("task", "settings.artifactsLocation.databaseName", "lost", "a target has one catalog"),
    _S("task", "settings.artifactsLocation.dataAssetSchema", "lost", "knowledge marts only"),
    _S("task", "settings.artifactsSettings.historyEnabled", "translated", "`history`"),
    _S("task", "settings.artifactsSettings.artifactsPrefix", "translated", "`prefix`"),
    _S("task", "settings.artifactsSettings.liveViewsEnabled", "differs",
       "every view is live; none can be switched off"),
    _S("task", "settings.artifactsSettings.changeTablesEnabled", "differs",
       "the Changes view shows changes until they are applied, and with `changes_retention: 30d` "
       "longer"),
    _S("task", "settings.artifactsSettings.materialized", "differs", "every table is materialized"),
    _S("task", "settings.artifactsSettings.currentTableSuffix", "lost",
       "internal tables have fixed names"),
    _S("task", "settings.artifactsSettings.reloadType", "lost",
       "the mode belongs to the command or the schedule that reloads",
       "`polynya reload --mode`, or `reload.mode` of the landing task"),
    _S("task", "settings.artifactsSettings.createConsumptionViews", "lost",
       "views are created with the tables"),
    _S("task", "settings.artifactsInfo.prefixForAllTablesAndViews", "lost",
       "a capture lands events, not tables", "write `prefix` in the storage task"),
    _S("task", "settings.artifactsInfo.*", "lost",
       "a capture lands events, not tables; header columns are named `hdr__…`"),
    _S("task", "settings.ddlHandlingPolicy.addColumn", "translated", f"`{_DDL}.add_column`"),
    _S("task", "settings.ddlHandlingPolicy.changeColumnType", "differs",
       f"`{_DDL}.incompatible_type`; a type that only widens follows `widen_type`"),
    _S("task", "settings.ddlHandlingPolicy.renameTable", "translated", f"`{_DDL}.rename_dataset`"),
    _S("task", "settings.ddlHandlingPolicy.renameColumn", "translated", f"`{_DDL}.rename_column`"),
    _S("task", "settings.ddlHandlingPolicy.dropTable", "differs",
       f"`{_DDL}.drop_dataset`; `propagate` deletes the rows and keeps the table"),
    _S("task", "settings.ddlHandlingPolicy.dropColumn", "translated", f"`{_DDL}.drop_column`"),
    _S("task", "settings.ddlHandlingPolicy.truncateTable", "translated", f"`{_DDL}.truncate`"),
    _S("task", "settings.ddlHandlingPolicy.createTable", "translated", f"`{_DDL}.new_dataset`"),
    _S("task", "settings.ddlHandlingPolicy.*", "lost", "for streaming transforms only"),
    _S("task", "settings.landingAppRuntime.tableLoadInParallel", "translated", "`load.parallel`"),
    _S("task", "settings.landingAppRuntime.*", "lost",
       "a capture reads its source continuously, and takes the first load at its start",
       "`write.roll.age` sets how often batches land"),
    _S("task", "settings.fullLoadOptions.fullLoadOptionsTuning.maxTables", "translated",
       "`load.parallel`"),
    _S("task", "settings.fullLoadOptions.*", "lost",
       "a load lands beside the stream; it waits for no transaction and needs no table"),
    _S("task", "settings.applyChangesOptions.*", "lost",
       "`schema_evolution` decides about changes of tables; the rest tunes an engine"),
    _S("task", "settings.storeChangesOptions.*", "lost",
       "Current, History and Changes are one table",
       "`changes_retention` keeps changes"),
    _S("task", "settings.changeDataPartitioning.*", "lost", "landed batches are not partitioned"),
    _S("task", "settings.changeProcessingTuning.*", "lost", _ENGINE),
    _S("task", "settings.errorHandling.tableError.*", "lost",
       "a table is suspended after three retries", "`errors.table` of the landing task"),
    _S("task", "settings.errorHandling.environmental.*", "lost",
       "retried for ever, from 5 s to 30 min apart", "`errors.environment` of the landing task"),
    _S("task", "settings.errorHandling.applyConflicts.*", "lost",
       "events are folded by key, so an insert of a known key is an update"),
    _S("task", "settings.errorHandling.*", "lost", "records that do not fit go to quarantine",
       "`on_bad_record`"),
    _S("task", "settings.metadata.lobHandling.*", "lost", "values are captured whole",
       "`lobs: {limit: …}` of the landing task"),
    _S("task", "settings.metadata.*", "lost", "Polynya writes no control tables",
       "`polynya status --json`, `polynya quarantine list`"),
    _S("task", "settings.includeLobColumns", "lost", "values are captured whole",
       "`mask: {TABLE: {COLUMN: drop}}` leaves one out"),
    _S("task", "settings.maximumLobSize", "lost", "its unit is not documented",
       "`lobs: {limit: …}` of the landing task"),
    _S("task", "settings.characterSubstitution.*", "lost", "text is kept as it is"),
    _S("task", "settings.fileAttributes.*", "lost", "batches land as JSON, compressed with zstd",
       "`write.roll`"),
    _S("task", "settings.landingStorageSettings.*", "lost",
       "a landing task has a folder of its own",
       "`folder`"),
    _S("task", "settings.storageLocationSettings.*", "lost", "tables lie in the warehouse"),
    _S("task", "settings.landingDwSettings.*", "lost", "nothing lands in a data warehouse"),
    _S("task", "settings.targetEndpoint.targetSchema", "translated",
       "`schema` of the storage task"),
    _S("task", "settings.targetEndpoint.*", "lost", "tables are Iceberg tables of the target"),
    _S("task", "settings.taskSettings.fullLoad", "differs", "a capture always loads first"),
    _S("task", "settings.taskSettings.applyChanges", "translated", "`update_method: cdc`"),
    _S("task", "settings.taskSettings.storeChanges", "translated", "`history: true`"),
    _S("task", "settings.replicationAppRuntime.*", "lost", "a capture reads continuously"),
    _S("task", "settings.proxySettings.*", "lost", "a capture connects to its source itself"),
    _S("task", "settings.dataProviderType", "lost", "the connection says what it is"),
    _S("task", "settings.landingType", "lost", "the connection says what it is"),
    _S("task", "settings.moreOptions*", "lost", "undocumented options of Qlik's engine"),
    _S("task", "settings.catalogIntegration.*", "lost", "not published to the catalog of Qlik",
       "`polynya serve` answers as an Iceberg catalog"),
    _S("task", "settings.catalogSettings.*", "lost", "not published to the catalog of Qlik",
       "`polynya serve` answers as an Iceberg catalog"),
    _S("task", "settings.taskRuntime.tableUpdateConcurrency", "lost", _ENGINE),
    _S("task", "settings.taskRuntime.warehouseSelection.*", "lost", "no warehouse computes"),
    _S("task", "settings.taskRuntime.lakehouseCluster*", "lost",
       "a cluster is deployed by its stage file", "`cluster` of the task"),
    _S("task", "settings.taskRuntime.*", "lost", _ENGINE),
    _S("task", "settings.runtimeSettings.*", "lost", "a cluster is deployed by its stage file",
       "`cluster` of the task"),
    _S("task", "settings.tableTypeSettings.*", "lost", "every table is an Iceberg table"),
    _S("task", "settings.viewType", "lost", "views belong to the engine that reads"),
    _S("task", "settings.incrementalSettings.*", "lost",
       "changes are found from files, or by `changed_by`"),
    _S("task", "settings.platformConfig.*", "lost", "mirrors are not translated",
       "write a task of `kind: mirror`"),
    _S("task", "settings.viewDefinitionSettings.*", "lost", "streams are not translated",
       "`views.from_timestamp`"),
    _S("task", "settings.generalSettings.*", "lost", "streams are not translated",
       "write tasks of `kind: streaming_landing` and `kind: streaming_transform`"),
    # source selection
    _S("selection", "sourceConnection", "translated", "`connection`"),
    _S("selection", "includePatterns[].schemaPattern", "translated", "`tables.include`"),
    _S("selection", "includePatterns[].tablePattern", "translated", "`tables.include`"),
    _S("selection", "includePatterns[].type", "translated", "a pattern takes tables"),
    _S("selection", "includePatterns[].sourceTask", "translated", "`landing.path` or `from`"),
    _S("selection", "includePatterns[].sourceProject", "lost", "of another project"),
    _S("selection", "excludePatterns[].schemaPattern", "translated", "`tables.exclude`"),
    _S("selection", "excludePatterns[].tablePattern", "translated", "`tables.exclude`"),
    _S("selection", "excludePatterns[].type", "translated", "a pattern takes tables"),
    _S("selection", "explicitlySelected[].name", "translated", "`tables.include`"),
    _S("selection", "explicitlySelected[].schema", "translated", "`tables.include`"),
    _S("selection", "explicitlySelected[].type", "translated", "the database knows what it is"),
    _S("selection", "explicitlySelected[].sourceTask", "translated", "`landing.path` or `from`"),
    _S("selection", "explicitlySelected[].sourceTableId", "translated", _IDENTIFIES),
    _S("selection", "explicitlySelected[].database", "lost", "a target has one catalog"),
    _S("selection", "explicitlySelected[].sourceProject", "lost", "of another project"),
    _S("selection", "explicitlySelected[].outputDatasetName", "lost", "streams are not translated"),
    # rules
    _S("rules", "rules[].ordinal", "translated", "the order of `rules`"),
    _S("rules", "rules[].enabled", "translated", "a rule that is off is left out"),
    _S("rules", "rules[].internalRule", "translated", _IDENTIFIES),
    _S("rules", "rules[].name", "translated", "a comment"),
    _S("rules", "rules[].id", "translated", _IDENTIFIES),
    _S("rules", "rules[].description", "translated", _IDENTIFIES),
    _S("rules", "rules[].actionType", "translated", "the action of the rule"),
    _S("rules", "rules[].scopeType", "translated", "follows from the action"),
    _S("rules", "rules[].scope.whereOwnerName", "lost", "rules choose by the schema of the views",
       "list the datasets in `when`"),
    _S("rules", "rules[].scope.whereTableName", "translated", "`when.dataset`"),
    _S("rules", "rules[].scope.whereColumnName", "translated", "`when.column`"),
    _S("rules", "rules[].scope.whereDatatype", "differs",
       "`when.type`, the type that the column has in the table"),
    _S("rules", "rules[].scope.*", "lost", "rules do not choose by keys or NULL",
       "name the columns in `when`"),
    _S("rules", "rules[].action.renameType", "translated", "`rename`, `prefix` or `case`"),
    _S("rules", "rules[].action.value", "translated", "the new name or the prefix"),
    _S("rules", "rules[].action.oldValue", "lost", "a prefix cannot be replaced by a pattern",
       "`rename` column by column"),
    _S("rules", "rules[].action.valueMapping.*", "translated", "a rule `rename` for each name"),
    _S("rules", "rules[].action.applyColumnDatatype", "translated", "`type`, where it is set"),
    _S("rules", "rules[].action.expression.expressionStatement", "translated", "`add`"),
    _S("rules", "rules[].action.expression.alias", "translated", "no names"),
    _S("rules", "rules[].action.expression.alias[].{name,value}", "translated",
       "names in the expression"),
    _S("rules", "rules[].action.column.name", "translated", "the name of the added column"),
    _S("rules", "rules[].action.column.datatype.{type,length,precision,scale,originalTypeFull}",
       "translated", "`type`"),
    _S("rules", "rules[].action.column.*", "lost", "columns have no order and are nullable"),
    # datasets
    _S("dataset", "properties.id", "translated", _IDENTIFIES),
    _S("dataset", "properties.name", "translated", "`name`"),
    _S("dataset", "properties.description", "translated", _IDENTIFIES),
    _S("dataset", "properties.type", "translated", _IDENTIFIES),
    _S("dataset", "properties.virtualDataset", "lost", "every dataset is a table"),
    _S("dataset",
       "properties.inputDatasets[].{type,datasetId,name,projectId,taskId,schema,database}",
       "translated", "the tables that it reads"),
    _S("dataset", "properties.landingDatasetSettings.loadOrder", "translated", "`load.order`"),
    _S("dataset", "properties.landingDatasetSettings.*", "lost",
       "a capture reads a table in one session, in chunks", "`load.chunk_rows`"),
    _S("dataset", "properties.datasetAttributes.hasHistory", "translated", "`history`"),
    _S("dataset", "properties.datasetAttributes.hasStandardViewsWithHeaders", "differs",
       "`views.headers`, for all tables of the task"),
    _S("dataset", "properties.datasetAttributes.{materialized,hasLiveViews,hasChanges}", "differs",
       "every table is materialized and every view live"),
    _S("dataset",
       "properties.datasetAttributes.{watermarkIncrementalSettings,createExternalArtifacts}",
       "lost", "changes are found from files, or by `changed_by`"),
    _S("dataset", "properties.tableDef.columns[].name", "translated", "the columns of the query"),
    _S("dataset", "properties.tableDef.columns[].primaryKeyOrdinal", "translated", "`keys`"),
    _S("dataset", "properties.tableDef.{name,entityId,secureQri,fullLoadOnly}", "translated",
       _IDENTIFIES),
    _S("dataset", "properties.tableDef.columns[].{ordinal,nullable,id,flags}", "translated",
       _IDENTIFIES),
    _S("dataset",
       "properties.tableDef.columns[].datatype.{type,length,precision,scale,originalType,"
       "originalTypeFull}", "translated", _IDENTIFIES),
    _S("dataset", "properties.tableDef.columns[].properties.*", "lost",
       "columns have no flags for streams"),
    _S("dataset", "properties.tableDef.columns", "translated", "no columns"),
    _S("dataset", "properties.customDatasetSettings.customSql", "translated", "no SQL"),
    _S("dataset", "properties.customDatasetSettings.customSql.expressionStatement", "translated",
       "`sql`"),
    _S("dataset", "properties.customDatasetSettings.customSql.alias", "translated", "no names"),
    _S("dataset", "properties.customDatasetSettings.customSql.alias[].{name,value}", "translated",
       "tables in `sql`"),
    _S("dataset", "properties.customDatasetSettings.incremental", "differs",
       "`incremental: auto`, which needs no macros"),
    _S("dataset", "properties.dataflowDatasetSettings.*", "lost", "flows are not translated",
       "write `flow:` or `sql:`"),
    _S("dataset", "properties.dimensionDatasetSettings.type", "translated", "`type: 1` or `2`"),
    _S("dataset", "properties.*DatasetSettings.mapping.columns[].{columnName,type}", "translated",
       "`keys` and `columns`"),
    _S("dataset", "properties.*DatasetSettings.mapping.columns[].expression.expressionStatement",
       "translated", "`columns`"),
    _S("dataset", "properties.*DatasetSettings.mapping.columns[].expression.alias", "translated",
       "no names"),
    _S("dataset", "properties.*DatasetSettings.mapping.columns[].expression.alias[].{name,value}",
       "translated", "names in the expression"),
    _S("dataset",
       "properties.*DatasetSettings.rootDataEntityId.{type,entityId,name,projectId,taskId,"
       "datasetId,dataAppId}", "translated", "`table`"),
    _S("dataset",
       "properties.factDatasetSettings.factDimension[].{name,dimensionRelationshipPath,"
       "dimensionRelationshipPathDisplayName,dimensionRelationshipPathShortName}", "translated",
       "`dimensions`, along the relationships"),
    _S("dataset",
       "properties.factDatasetSettings.factDimension[].dimension.{type,datasetId,name,projectId,"
       "taskId}", "translated", "`dimensions`"),
    _S("dataset", "properties.factDatasetSettings.type", "translated", "`kind: transaction`"),
    _S("dataset", "properties.*DatasetSettings.subtype", "translated", _IDENTIFIES),
    _S("dataset", "properties.*DatasetSettings.materializedSource", "lost",
       "a mart reads its tables directly"),
    _S("dataset", "properties.dimensionDatasetSettings.fullyType2Sources", "lost",
       "versions follow the own table of the dimension"),
    _S("dataset", "properties.factDatasetSettings.entityRelationshipPath*", "lost",
       "a fact has one table", "`table` of its columns"),
    _S("dataset", "properties.*DatasetSettings.*", "lost",
       "datasets of this type are not translated"),
    _S("dataset", "sourceTable.{type,name,schema,database}", "translated",
       "the table of the source"),
    _S("dataset", "sourceTable.tableDef.*", "lost", "a capture reads the catalog of the database"),
    _S("dataset", "transformations.newTableName", "lost", "a dataset has the name of its table",
       "`{name: NEW, source: SCHEMA.TABLE}` in `datasets`"),
    _S("dataset", "transformations.columnTransformations[].action", "translated", "a rule"),
    _S("dataset", "transformations.columnTransformations[].columnName", "translated",
       "`when.column`"),
    _S("dataset", "transformations.columnTransformations[].newColumnName", "translated",
       "`rename`"),
    _S("dataset",
       "transformations.columnTransformations[].newDataType.{type,length,precision,scale,"
       "originalTypeFull}", "translated", "`type`"),
    _S("dataset", "transformations.columnTransformations[].expression.expressionStatement",
       "translated", "`add`"),
    _S("dataset", "transformations.columnTransformations[].expression.alias", "translated",
       "no names"),
    _S("dataset", "transformations.columnTransformations[].expression.alias[].{name,value}",
       "translated", "names in the expression"),
    _S("dataset", "transformations.columnTransformations[].hash", "differs",
       "`mask: {hash: …}`, HMAC-SHA256 with a key of yours: other values than Qlik's"),
    _S("dataset", "transformations.columnTransformations[].addedColumnId", "translated",
       _IDENTIFIES),
    _S("dataset", "transformations.columnTransformations[].primaryKeyOrdinal", "lost",
       "the key of a captured table is that of its source"),
    _S("dataset", "transformations.columnTransformations[].*", "lost",
       "columns have no order, are nullable, and are data"),
    _S("dataset", "mappingSettings.*", "lost", "mappings of transforms are not translated",
       "write `sql:`"),
    _S("dataset", "mappings.mappings", "translated", "an empty list"),
    _S("dataset", "mappings.*", "lost", "mappings of transforms are not translated",
       "write `sql:`"),
    # schedules, models, flows
    _S("schedule", "scheduling[].schedulingType", "differs",
       "with `TIME_BASED`, `schedule` of a capture that repeats its full load, else an automation "
       "that is off: `polynya run` works on the task as soon as there is something to do",
       "set `enabled: true`, and leave the task out of other runs"),
    _S("schedule", "scheduling[].timeBasedScheduling.timezone", "differs", "the clock of it"),
    _S("schedule", "scheduling[].timeBasedScheduling.schedule[]", "differs", "its rules"),
    _S("schedule", "scheduling[].*", "lost", "tasks run as soon as there is something to do",
       "a landing task with `update_method: reload` has a `schedule`"),
    _S("model", "relationships[].{id,name,shortName,description}", "translated", _IDENTIFIES),
    _S("model",
       "relationships[].{sourceEntity,targetEntity}.{type,name,projectId,taskId,datasetId}",
       "translated", "`relationships` of the data marts"),
    _S("model",
       "relationships[].columnRelationships[].{sourceColumn,targetColumn,sourceColumnId,"
       "targetColumnId}", "translated", "`relationships.on` of the data marts"),
    _S("flow", "*", "lost", "flows are not translated", "write `flow:` or `sql:`"),
)  # fmt: skip

REPLICATE_SETTINGS: Final[tuple[QlikSetting, ...]] = (
    _S("replicate", "name", "translated", _IDENTIFIES),
    _S("replicate", "description", "translated", _IDENTIFIES),
    _S("replicate", "_version.*", "translated", _IDENTIFIES),
    _S("replicate", "tasks[].task.name", "translated", "`name` of two tasks"),
    _S("replicate", "tasks[].task.source_name", "translated", "`connection`"),
    _S("replicate", "tasks[].task.target_names*", "lost",
       "tables are Iceberg tables of the target"),
    _S("replicate", "tasks[].task.task_type", "translated", _IDENTIFIES),
    _S("replicate", "tasks[].task.description", "translated", "a comment"),
    _S("replicate", "tasks[].source.rep_source.{source_name,database_name}", "translated",
       "`connection`"),
    _S("replicate", "tasks[].source.source_tables.name", "translated", _IDENTIFIES),
    _S("replicate", "tasks[].source.source_tables.explicit_included_tables[].owner", "translated",
       "`tables.include`"),
    _S("replicate", "tasks[].source.source_tables.explicit_included_tables[].name", "translated",
       "`tables.include`"),
    _S("replicate", "tasks[].source.source_tables.explicit_included_tables[].estimated_size",
       "translated", _IDENTIFIES),
    _S("replicate", "tasks[].source.source_tables.explicit_included_tables[].orig_db_id",
       "translated", _IDENTIFIES),
    _S("replicate", "tasks[].source.source_tables.included_patterns[].{owner,name}", "translated",
       "`tables.include`"),
    _S("replicate", "tasks[].source.source_tables.excluded_patterns[].{owner,name}", "translated",
       "`tables.exclude`"),
    _S("replicate", "tasks[].targets[].rep_target.default_schema", "translated", "`schema`"),
    _S("replicate", "tasks[].targets[].*", "lost", "tables are Iceberg tables of the target"),
    _S("replicate", "tasks[].manipulations[].name", "translated", _IDENTIFIES),
    _S("replicate", "tasks[].manipulations[].table_manipulation.name", "translated",
       "`when.dataset`"),
    _S("replicate", "tasks[].manipulations[].table_manipulation.owner", "translated",
       "`when.dataset`"),
    _S("replicate", "tasks[].manipulations[].table_manipulation.new_table_name", "lost",
       "a dataset has the name of its table", "`{name: NEW, source: SCHEMA.TABLE}` in `datasets`"),
    _S("replicate", "tasks[].manipulations[].table_manipulation.new_owner_name", "lost",
       "a task has one schema", "`schema` of the storage task"),
    _S("replicate", "tasks[].manipulations[].table_manipulation.fl_passthru_filter", "differs",
       "`load.filter`; changes of other rows are still captured, as in Replicate"),
    _S("replicate", "tasks[].manipulations[].table_manipulation.transform_columns[].column_name",
       "translated", "`when.column`"),
    _S("replicate",
       "tasks[].manipulations[].table_manipulation.transform_columns[].new_column_name",
       "translated", "`rename`"),
    _S("replicate", "tasks[].manipulations[].table_manipulation.transform_columns[].action",
       "translated", "a rule"),
    _S("replicate",
       "tasks[].manipulations[].table_manipulation.transform_columns[].computation_expression",
       "translated", "`add`"),
    _S("replicate", "tasks[].manipulations[].table_manipulation.transform_columns[].*", "lost",
       "types are those of the source", "a rule `type`"),
    _S("replicate", "tasks[].manipulations[].table_manipulation.filter_columns[].*", "lost",
       "the form of ranges is not documented", "a rule `filter`"),
    _S("replicate", "tasks[].manipulations[].*", "lost", "a capture reads tables in chunks",
       "`load.chunk_rows`"),
    _S("replicate", "tasks[].task_settings.target_settings.default_schema", "translated",
       "`schema`"),
    _S("replicate", "tasks[].task_settings.common_settings.save_changes_enabled", "translated",
       "`history: true`"),
    _S("replicate", "tasks[].task_settings.common_settings.apply_changes_enabled", "translated",
       "`update_method: cdc`"),
    _S("replicate", "tasks[].task_settings.common_settings.lob_max_size", "lost",
       "values are captured whole", "`lobs: {limit: …}` of the landing task"),
    _S("replicate", "tasks[].task_settings.*", "lost", _ENGINE),
    _S("replicate", "tasks[].error_behavior.*", "lost",
       "a table is suspended after three retries, the environment is retried for ever",
       "`errors` of the landing task"),
    _S("replicate", "databases[].name", "translated", "the name of the connection"),
    _S("replicate", "databases[].role", "translated", "only sources become connections"),
    _S("replicate", "databases[].type_id", "translated", "`type`"),
    _S("replicate", "databases[].is_licensed", "translated", _IDENTIFIES),
    _S("replicate", "databases[].db_settings.$type", "translated", "`type`"),
    _S("replicate", "databases[].db_settings.server", "translated", "`host`"),
    _S("replicate", "databases[].db_settings.port", "translated", "`port`"),
    _S("replicate", "databases[].db_settings.database", "translated", "`database`"),
    _S("replicate", "databases[].db_settings.username", "translated", "`user`"),
    _S("replicate", "databases[].db_settings.*", "lost", "settings of Replicate's driver",
       "the settings of the connection"),
    _S("replicate", "*", "lost", "settings of a Replicate server"),
)  # fmt: skip


def setting_of(kind: DocumentKind, path: tuple[str | int, ...]) -> QlikSetting | None:
    """The first setting of the table that has a path, None for an unknown one."""
    name = ""
    for part in path:
        if isinstance(part, int):
            name += "[]"
        else:
            name += f".{part.replace('.', '_')}" if name else part.replace(".", "_")
    return _found(kind, name)


@lru_cache(maxsize=4096)
def _found(kind: DocumentKind, name: str) -> QlikSetting | None:
    return next((setting for setting, pattern in _patterns(kind) if pattern.fullmatch(name)), None)


@lru_cache
def _patterns(kind: DocumentKind) -> tuple[tuple[QlikSetting, re.Pattern[str]], ...]:
    return tuple(
        (setting, _pattern(setting))
        for setting in (*SETTINGS, *REPLICATE_SETTINGS)
        if setting.kind == kind
    )


def _pattern(setting: QlikSetting) -> re.Pattern[str]:
    """What a path has to be. Only a loss may stand for keys that nobody knows."""
    text, tail = setting.path, ""
    if text.endswith("*") and setting.verdict == "lost":
        text, tail = text[:-1], ".+" if text == "*" else ".*"
    plain = re.escape(text).replace(r"\*", r"[^.\[]*")
    for group in re.findall(r"\\\{.*?\\\}", plain):
        plain = plain.replace(group, f"(?:{group[2:-2].replace(',', '|')})")
    return re.compile(plain + tail)
