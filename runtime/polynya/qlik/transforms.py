"""Transforms and data marts of a project."""

from __future__ import annotations

from typing import Any

from polynya.qlik.columns import use_dropped
from polynya.qlik.documents import QlikValue
from polynya.qlik.expressions import NoEqualError, column_expression, statement
from polynya.qlik.landing import tables_of
from polynya.qlik.output import From
from polynya.qlik.project import QlikProject, QlikTask, described


def transform_task(project: QlikProject, task: QlikTask) -> bool:
    """A transform becomes one with a query for each dataset that has an equal."""
    made = project.made
    datasets: list[dict[str, Any]] = []
    inputs: dict[str, str] = {}
    for document in task.datasets:
        found = _query(project, task, document.root)
        if found is not None:
            content, reads = found
            datasets.append(content)
            inputs |= reads
    if not datasets:
        made.lose_task(task.folder, task.where, "none of its datasets could be translated",
                       "write a task of `kind: transform`")  # fmt: skip
        return False
    name = made.named(task.root.text("properties", "name") or task.folder, task.where, task.folder,
                      unique=True)  # fmt: skip
    content = {
        "apiVersion": "polynya/v1", "kind": "transform", "name": name,
        "from": sorted(inputs), **_schema(project, task, name), "datasets": datasets,
    }  # fmt: skip
    made.add_task(content, task.folder, task.where, *described(task))
    task.made, task.schema = name, content["schema"]
    return True


def _schema(project: QlikProject, task: QlikTask, name: str) -> dict[str, Any]:
    location = task.root.at("settings", "artifactsLocation")
    schema = project.bound(location.at("taskSchema") if location else None, task.folder)
    internal = project.bound(location.at("internalSchema") if location else None, task.folder)
    found = {"schema": project.made.named(schema, task.where, task.folder) if schema else name}
    if internal:
        found["internal_schema"] = project.made.named(internal, task.where, task.folder)
    return found


def _query(
    project: QlikProject, task: QlikTask, root: QlikValue
) -> tuple[dict[str, Any], dict[str, str]] | None:
    made = project.made
    title = root.text("properties", "name")
    if root.at("properties", "dataflowDatasetSettings") is not None or not title:
        made.lose_task(f"{task.folder}: {title}", root.where, "its flow is not translated",
                       "write `flow:` or `sql:`")  # fmt: skip
        return None
    keys = _keys(root)
    if not keys:
        made.lose_task(f"{task.folder}: {title}", root.where, "it has no primary key",
                       "write the dataset with `keys`")  # fmt: skip
        return None
    custom = root.at("properties", "customDatasetSettings", "customSql", "expressionStatement")
    for value in root.items("properties", "inputDatasets"):
        value.use()
    if custom is not None:
        found = _custom(project, task, root, custom, title)
    else:
        found = _columns(project, task, root, title)
    if found is None:
        return None
    sql, reads = found
    content = From(root.where, name=made.named(title, root.where, task.folder), sql=sql, keys=keys)
    root.flag("properties", "customDatasetSettings", "incremental")
    history = root.flag("properties", "datasetAttributes", "hasHistory")
    if history is None:
        history = task.root.flag("settings", "artifactsSettings", "historyEnabled")
    if history:
        content["history"] = True
    return content, reads


def _keys(root: QlikValue) -> list[str]:
    columns = root.items("properties", "tableDef", "columns")
    keyed = sorted(
        (ordinal, column.text("name"))
        for column in columns
        if (ordinal := column.number("primaryKeyOrdinal")) and column.text("name")
    )
    for column in columns:
        column.text("name")
    return [name for _, name in keyed]


def _input(project: QlikProject, task_id: str, dataset_id: str, name: str = "") -> str:
    """`schema.table` of a dataset of another task, "" if it was not translated."""
    task = project.task(task_id)
    if task is None or not task.schema:
        return ""
    table = tables_of(task).get(dataset_id, (name, None))[0] or name or dataset_id
    return f"{task.schema}.{task.prefix}{project.made.named(table, task.where, task.folder)}"


def _custom(
    project: QlikProject, task: QlikTask, root: QlikValue, custom: QlikValue, title: str
) -> tuple[str, dict[str, str]] | None:
    tables, reads = {}, {}
    for alias in root.items("properties", "customDatasetSettings", "customSql", "alias"):
        parts = alias.text("value").split("$_$")
        if len(parts) != 3:
            continue
        name = _input(project, parts[1], parts[2], alias.text("name"))
        source = project.task(parts[1])
        if name and source is not None:
            tables[alias.text("name")] = name
            reads[source.made] = name
    try:
        sql, ordered = statement(str(custom.content), project.dialect, tables)
    except NoEqualError as error:
        project.made.lose_expression(custom, task.folder, str(error), f"SQL of {title}")
        return None
    if not reads:
        project.made.lose_expression(custom, task.folder, "it reads no table", f"SQL of {title}")
        return None
    custom.used = True
    if ordered:
        project.made.report.add(task.folder, "differs", custom.where, f"SQL of {title}",
                                "ORDER BY is left out: a table has no order")  # fmt: skip
    return sql, reads


def _columns(
    project: QlikProject, task: QlikTask, root: QlikValue, title: str
) -> tuple[str, dict[str, str]] | None:
    made, sources = project.made, root.items("properties", "inputDatasets")
    name = source = None
    if len(sources) == 1:
        source = project.task(sources[0].text("taskId"))
        name = _input(project, sources[0].text("taskId"), sources[0].text("datasetId"),
                      sources[0].text("name"))  # fmt: skip
    changes = root.items("transformations", "columnTransformations")
    if not name or source is None or root.at("mappingSettings") is not None:
        made.lose_task(f"{task.folder}: {title}", root.where,
                       "it does not read one table that was translated, column by column",
                       "write `sql:`")  # fmt: skip
        return None
    new, dropped, added = {}, set(), {}
    for column in changes:
        action, column_name = column.text("action"), column.text("columnName")
        expression = column.at("expression", "expressionStatement")
        if action == "DROP":
            dropped.add(column_name.lower())
            use_dropped(column)
        elif action == "KEEP" and (expression is None or not expression.content):
            new[column_name.lower()] = column.text("newColumnName") or column_name
        elif expression is not None and isinstance(expression.content, str):
            aliases = {alias.text("name"): alias.text("value")
                       for alias in column.items("expression", "alias")}  # fmt: skip
            try:
                added[column.text("newColumnName") or column_name] = column_expression(
                    expression.content, project.dialect, aliases, expression.where
                )
                expression.used = True
            except NoEqualError as error:
                made.lose_expression(expression, task.folder, str(error), expression.content)
    back = {value.lower(): key for key, value in new.items()}
    listed = []
    for column in root.items("properties", "tableDef", "columns"):
        output = column.text("name")
        if not output or output.lower() in dropped:
            continue
        text = next((sql for key, sql in added.items() if key.lower() == output.lower()), None)
        text = text or _quoted(back.get(output.lower(), output))
        listed.append(f"{text} AS {_quoted(output)}")
    sql = "SELECT\n  " + ",\n  ".join(listed) + "\nFROM " + ".".join(map(_quoted, name.split(".")))
    return sql, {source.made: name}


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def mart_task(project: QlikProject, task: QlikTask) -> bool:
    """A data mart becomes one: dimensions, facts, and the relationships of its inputs."""
    made = project.made
    sources = [one for one in map(project.task, task.inputs()) if one is not None and one.schema]
    dimensions, facts, names = [], [], {}
    for document in task.datasets:
        root = document.root
        settings = root.at("properties", "dimensionDatasetSettings")
        if settings is not None and (found := _mart_table(project, task, root, settings)):
            names[root.text("properties", "id")] = found["name"]
            if settings.text("type") == "TYPE2":
                found["type"] = 2
            dimensions.append(found)
    for document in task.datasets:
        root = document.root
        settings = root.at("properties", "factDatasetSettings")
        if settings is not None and (found := _mart_table(project, task, root, settings)):
            settings.text("type")
            refers = []
            for value in settings.items("factDimension"):
                dimension = value.text("dimension", "datasetId")
                if dimension in names:
                    refers.append(names[dimension])
                    value.use()
            if refers:
                found["dimensions"] = refers
            facts.append(found)
    if not dimensions:
        made.lose_task(task.folder, task.where, "none of its dimensions could be translated",
                       "write a task of `kind: data_mart`")  # fmt: skip
        return False
    name = made.named(task.root.text("properties", "name") or task.folder, task.where, task.folder,
                      unique=True)  # fmt: skip
    content: dict[str, Any] = {
        "apiVersion": "polynya/v1", "kind": "data_mart", "name": name,
        "from": sorted(source.made for source in sources), **_schema(project, task, name),
    }  # fmt: skip
    wanted = {table["table"] for table in (*dimensions, *facts)}
    relationships = [
        found for source in sources for found in _relationships(project, source)
        if {found["from"], found["to"]} <= wanted
    ]  # fmt: skip
    if relationships:
        content["relationships"] = relationships
    content["dimensions"] = dimensions
    if facts:
        content["facts"] = facts
    made.add_task(content, task.folder, task.where, *described(task))
    task.made, task.schema = name, content["schema"]
    return True


def _mart_table(
    project: QlikProject, task: QlikTask, root: QlikValue, settings: QlikValue
) -> dict[str, Any] | None:
    made, title = project.made, root.text("properties", "name")
    entity = settings.at("rootDataEntityId")
    table = (
        _input(project, entity.text("taskId"), entity.text("datasetId"), entity.text("name"))
        if entity is not None else ""
    )  # fmt: skip
    keys, columns = [], []
    for column in settings.items("mapping", "columns"):
        name = column.text("columnName")
        expression = column.at("expression", "expressionStatement")
        aliases = {alias.text("name"): alias.text("value")
                   for alias in column.items("expression", "alias")}  # fmt: skip
        text = str(expression.content) if expression is not None else ""
        is_plain = text.startswith("${") and text.endswith("}") and text.count("${") == 1
        source = aliases.get(text[2:-1], text[2:-1]) if is_plain else ""
        if expression is None or not name:
            continue
        if column.text("type") == "ROOT_PK" and source:
            expression.used = True
            keys.append(source)
        elif source:
            expression.used = True
            columns.append(name if source == name else {"name": name, "column": source})
        else:
            try:
                made_of = column_expression(text, project.dialect, aliases, expression.where)
            except NoEqualError as error:
                made.lose_expression(expression, task.folder, str(error), text)
                continue
            expression.used = True
            columns.append({"name": name, "expression": made_of})
    if not table or not keys or not title:
        made.lose_task(
            f"{task.folder}: {title}",
            root.where,
            "its table was not translated, or it has no key",
            "write it by hand",
        )
        return None
    if entity is not None:
        entity.use()
    for value in root.items("properties", "inputDatasets"):
        value.use()
    for column in root.items("properties", "tableDef", "columns"):
        column.text("name"), column.number("primaryKeyOrdinal")
    found: dict[str, Any] = From(root.where, name=made.named(title, root.where, task.folder))
    found |= {"table": table, "keys": keys}
    if columns:
        found["columns"] = columns
    return found


def _relationships(project: QlikProject, task: QlikTask) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for value in task.document("model.yaml").items("relationships"):
        ends = [
            _input(
                project, value.text(key, "taskId") or task.id, value.text(key, "datasetId"),
                value.text(key, "name"),
            )
            for key in ("sourceEntity", "targetEntity")
        ]  # fmt: skip
        on = {
            pair.text("sourceColumn"): pair.text("targetColumn")
            for pair in value.items("columnRelationships")
        }
        if all(ends) and on and "" not in {*on, *on.values()}:
            for key in ("id", "name", "shortName", "description"):
                value.text(key)
            for pair in value.items("columnRelationships"):
                pair.text("sourceColumnId"), pair.text("targetColumnId")
            for key in ("sourceEntity", "targetEntity"):
                value.text(key, "type"), value.text(key, "projectId")
            found.append(From(value.where, **{"from": ends[0], "to": ends[1], "on": on}))
    return found
