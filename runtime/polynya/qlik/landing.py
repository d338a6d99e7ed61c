"""Landing, replication, storage and registered tasks of a project."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from polynya.qlik.columns import column_changes, pattern, rules_of
from polynya.qlik.documents import QlikValue
from polynya.qlik.output import From
from polynya.qlik.project import QlikProject, QlikTask, described
from polynya.qlik.schedules import own_schedule
from polynya.qlik.translation import database_type

_EVOLUTION: Final[Mapping[str, str]] = {
    "addColumn": "add_column", "changeColumnType": "incompatible_type",
    "renameTable": "rename_dataset", "renameColumn": "rename_column", "dropTable": "drop_dataset",
    "dropColumn": "drop_column", "truncateTable": "truncate", "createTable": "new_dataset",
}  # fmt: skip
#: What Qlik does where an export says nothing, and Polynya would do something else.
_DEFAULTS: Final = {"truncate": "ignore", "incompatible_type": "ignore"}
#: Types whose schema and whose exports disagree about the default of `fullLoadOnly`.
_UNCLEAR: Final = frozenset({"LANDING", "LANDING_SAAS_MANAGED"})
_POLICIES: Final[Mapping[str, str]] = {
    "APPLY_TO_TARGET": "propagate", "IGNORE": "ignore", "SUSPEND_TABLE": "suspend",
    "STOP_TASK": "stop",
}  # fmt: skip
_ORDERS: Final = {"HIGHEST": "highest", "HIGHER": "high", "HIGH": "high", "NORMAL": "normal",
                  "LOW": "low", "LOWER": "low", "LOWEST": "lowest"}  # fmt: skip


def landing_task(project: QlikProject, task: QlikTask) -> bool:
    """A task that reads a database becomes a capture; whether it did."""
    made, selection = project.made, task.document("sourceSelection.yaml")
    connection = selection.at("sourceConnection")
    variable = str(connection.content).strip("{}") if connection is not None else ""
    said = project.source_types.get(variable)
    kind = database_type(said) if said else project.database
    if connection is None or kind is None:
        why = (
            f"its source is of type {said}, which no capture reads" if said
            else "the export does not say of what type its source is"
        )  # fmt: skip
        made.lose_task(task.folder, task.where, why, (
            "write a task of `kind: landing`, or of `kind: streaming_landing` for an API"
            if said else "export with binding values, or say it with `--database`"
        ))  # fmt: skip
        return False
    tables = _tables(project, task)
    if not tables["include"]:
        made.lose_task(task.folder, task.where, "it selects no table", "select tables in Qlik")
        return False
    connection.used = True
    text = project.values.get(variable, variable).strip("{}")
    text = text.removeprefix("id(connection,").removesuffix(")").strip().rpartition(".")[2]
    name = made.named(task.root.text("properties", "name") or task.folder, task.where, task.folder,
                      unique=True)  # fmt: skip
    content: dict[str, Any] = {
        "apiVersion": "polynya/v1", "kind": "landing", "name": name,
        "connection": made.connection(text or task.folder, kind, task.folder, connection.where),
    }  # fmt: skip
    full_load_only = task.root.flag("settings", "fullLoadOnly")
    if full_load_only is None and task.type in _UNCLEAR:
        made.report.add(
            task.folder, "differs", task.where, "settings.fullLoadOnly",
            "the export does not say whether changes are captured: taken as CDC",
            todo="write `update_method: reload` with a `schedule` if they are not",
        )  # fmt: skip
    if full_load_only:
        content |= {"update_method": "reload", "schedule": own_schedule(task) or "30 2 * * *"}
    content["tables"] = {key: value for key, value in tables.items() if value}
    parallel = task.root.number("settings", "landingAppRuntime", "tableLoadInParallel")
    parallel = parallel or task.root.number(
        "settings", "fullLoadOptions", "fullLoadOptionsTuning", "maxTables"
    )
    load: dict[str, Any] = {}
    if parallel is not None and 1 <= parallel <= 64:
        load["parallel"] = parallel
    if order := _orders(project, task):
        load["order"] = order
    if load:
        content["load"] = load
    made.add_task(content, task.folder, task.where, *described(task))
    task.made = name
    return True


def _tables(project: QlikProject, task: QlikTask) -> dict[str, list[str]]:
    selection = task.document("sourceSelection.yaml")
    include: list[str] = []
    exclude: list[str] = []
    for item in selection.items("explicitlySelected"):
        table, schema = item.text("name"), project.bound(item.at("schema"), task.folder)
        item.text("type"), item.text("sourceTableId")
        if table:
            include.append(f"{schema or '%'}.{table}")
    for key, found in (("includePatterns", include), ("excludePatterns", exclude)):
        for item in selection.items(key):
            schema = project.bound(item.at("schemaPattern"), task.folder)
            item.text("type")
            found.append(f"{pattern(schema)}.{pattern(item.text('tablePattern'))}")
    return {"include": include, "exclude": exclude}


def _orders(project: QlikProject, task: QlikTask) -> dict[str, str]:
    orders = {}
    for dataset in task.datasets:
        root = dataset.root
        table = root.text("sourceTable", "name") or root.text("properties", "name")
        schema = project.bound(root.at("sourceTable", "schema"), task.folder)
        if (source := root.at("sourceTable")) is not None:
            source.use()
        order = root.text("properties", "landingDatasetSettings", "loadOrder")
        if table and order in _ORDERS:
            orders[f"{schema or '%'}.{table}"] = _ORDERS[order]
    return orders


def storage_task(project: QlikProject, task: QlikTask, landing: str = "") -> bool:
    """A storage task becomes one over the capture that lands its tables; whether it did."""
    made, root = project.made, task.root
    inputs = [project.task(id_) for id_ in task.inputs()] if not landing else []
    landed = [one.made for one in inputs if one is not None and one.type in _LANDED and one.made]
    if landing:
        landed = [landing]
    if len(landed) != 1:
        found = f"{len(landed)} tasks" if landed else "no task"
        made.lose_task(task.folder, task.where, f"it reads {found} that became a capture",
                       "write one task of `kind: storage` for each landing task")  # fmt: skip
        return False
    title = root.text("properties", "name") or task.folder
    title = f"{title}_tables" if landing else title
    name = made.named(title, task.where, task.folder, unique=True)
    content: dict[str, Any] = {"apiVersion": "polynya/v1", "kind": "storage", "name": name}
    _places(project, task, content, name)
    content["landing"] = {"path": landed[0], "format": "debezium"}
    defaults = _defaults(root)
    content["defaults"] = defaults
    made.report.add(
        task.folder, "differs", task.where, "settings.ddlHandlingPolicy",
        "where the export says nothing, `defaults.schema_evolution` has the default of Qlik: "
        "changed types and truncates are ignored; values that do not fit go to quarantine",
    )  # fmt: skip
    rules = rules_of(task.document("transformationRules.yaml").items("rules"), task.folder, made,
                     project.dialect)  # fmt: skip
    masks: dict[str, Any] = {}
    datasets, headers = _datasets(project, task, rules, masks)
    _mask(made.tasks[landed[0]][0], masks)
    if datasets:
        content["datasets"] = datasets
    if rules:
        content["rules"] = rules
    views = _views(project)
    if headers:
        views["headers"] = True
    if views:
        content["views"] = views
    made.add_task(content, task.folder, task.where, *described(task))
    task.made, task.schema, task.prefix = name, content["schema"], content.get("prefix", "")
    return True


def _defaults(root: QlikValue) -> dict[str, Any]:
    """Settings of all datasets of a task."""
    defaults: dict[str, Any] = {}
    if root.flag("settings", "artifactsSettings", "historyEnabled"):
        defaults["history"] = True
    if root.flag("settings", "taskSettings", "storeChanges"):
        defaults["history"] = True
    if root.flag("settings", "artifactsSettings", "changeTablesEnabled"):
        defaults["changes_retention"] = "30d"
    for flag in ("liveViewsEnabled", "materialized"):
        root.flag("settings", "artifactsSettings", flag)
    for flag in ("fullLoad", "applyChanges"):
        root.flag("settings", "taskSettings", flag)
    root.flag("settings", "fullLoadOnly")
    policies: dict[str, str] = dict(_DEFAULTS)
    for key, ours in _EVOLUTION.items():
        policy = root.at("settings", "ddlHandlingPolicy", key)
        if policy is not None and isinstance(policy.content, str) and policy.content in _POLICIES:
            policy.used = True
            policies[ours] = _POLICIES[policy.content]
    defaults["schema_evolution"] = policies
    return defaults


def _mask(capture: dict[str, Any], masks: dict[str, Any]) -> None:
    """Hide values where they land, by tables of the source."""
    for dataset, columns in masks.items():
        tables = [name for name in capture["tables"]["include"] if name.endswith(f".{dataset}")]
        for table in tables or [f"%.{dataset}"]:
            capture.setdefault("mask", {}).setdefault(table, {}).update(columns)


def _places(project: QlikProject, task: QlikTask, content: dict[str, Any], name: str) -> None:
    """Schema, internal schema and prefix of a task."""
    made = project.made

    def at(*path: str) -> QlikValue | None:
        return task.root.at("settings", *path)

    schema = project.bound(at("artifactsLocation", "taskSchema"), task.folder)
    schema = schema or project.bound(at("targetEndpoint", "targetSchema"), task.folder)
    content["schema"] = made.named(schema, task.where, task.folder) if schema else name
    internal = project.bound(at("artifactsLocation", "internalSchema"), task.folder)
    if internal:
        content["internal_schema"] = made.named(internal, task.where, task.folder)
    prefix = project.bound(at("artifactsSettings", "artifactsPrefix"), task.folder)
    if prefix:
        content["prefix"] = made.named(prefix, task.where, task.folder)


def _views(project: QlikProject) -> dict[str, Any]:
    views = {}
    for key, ours in (("suffixHistoryViews", "history"), ("suffixChangesView", "changes")):
        value = project.root.root.at("settings", "artifactsNaming", key)
        if (
            value is not None
            and isinstance(value.content, str)
            and value.content.strip("_").isalnum()
        ):
            value.used = True
            views[ours] = value.content
    return views


def _datasets(
    project: QlikProject, task: QlikTask, rules: list[Any], masks: dict[str, Any]
) -> tuple[list[Any], bool]:
    """Datasets with settings of their own, and whether a view with headers is wanted."""
    found, headers = [], False
    for document in task.datasets:
        root = document.root
        name = root.text("properties", "name")
        attributes = root.at("properties", "datasetAttributes")
        history = attributes.flag("hasHistory") if attributes is not None else None
        for value in root.items("properties", "inputDatasets"):
            value.use()
        if attributes is not None:
            headers = bool(attributes.flag("hasStandardViewsWithHeaders")) or headers
            for value in attributes.children:
                value.used = value.used or value.content == "INHERIT"
        if not name:
            continue
        changes = column_changes(
            root.items("transformations", "columnTransformations"), name, task.folder,
            project.made, project.dialect,
        )  # fmt: skip
        rules += changes.rules
        if changes.masks:
            masks[name] = changes.masks
        if history is not None:
            usable = project.made.named(name, root.where, task.folder)
            found.append(From(root.where, name=usable, history=history))
    return found, headers


def registered_task(project: QlikProject, task: QlikTask) -> bool:
    """A registered task over Iceberg tables; whether it became one."""
    made = project.made
    if project.root.root.text("properties", "platformType") != "QLIK_OPEN_LAKEHOUSE":
        made.lose_task(task.folder, task.where, "its tables lie in a data warehouse",
                       "register Iceberg tables or folders of Parquet files")  # fmt: skip
        return False
    tables = []
    for item in task.document("sourceSelection.yaml").items("explicitlySelected"):
        schema, table = project.bound(item.at("schema"), task.folder), item.text("name")
        item.text("type")
        if schema and table and "." not in schema + table:
            name = made.named(table, item.where, task.folder)
            tables.append(From(item.where, name=name, iceberg=f"{schema}.{table}"))
    if not tables:
        made.lose_task(task.folder, task.where, "it names no table", "write `tables`")
        return False
    name = made.named(task.root.text("properties", "name") or task.folder, task.where, task.folder,
                      unique=True)  # fmt: skip
    content = {"apiVersion": "polynya/v1", "kind": "registered", "name": name, "tables": tables}
    made.add_task(content, task.folder, task.where, *described(task))
    task.made = task.schema = name
    return True


def tables_of(task: QlikTask) -> dict[str, tuple[str, QlikValue]]:
    """Name and value of each dataset of a task, by its id."""
    return {
        dataset.root.text("properties", "id"): (
            dataset.root.text("properties", "name"), dataset.root,
        )
        for dataset in task.datasets
    }  # fmt: skip


_LANDED: Final = frozenset({
    "LAKE_LANDING", "LANDING", "LANDING_SAAS_MANAGED", "REPLICATION",
})  # fmt: skip
