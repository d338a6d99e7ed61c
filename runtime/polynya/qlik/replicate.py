"""Tasks of Qlik Replicate, from the JSON document of an export."""

from __future__ import annotations

from typing import Any, Final

from polynya.qlik.documents import QlikDocument, QlikValue
from polynya.qlik.expressions import NoEqualError, column_expression
from polynya.qlik.output import From
from polynya.qlik.translation import Translation, database_type

#: The key of an export of one task; an export of a server has the same content without it.
DEFINITION: Final = "cmd.replication_definition"
_LONGEST_HOST: Final = 253


def is_replicate(document: QlikDocument) -> bool:
    """Whether a JSON document is an export of Replicate."""
    root = document.root
    return (
        root.at(DEFINITION) is not None
        or bool(root.items("tasks"))
        or (root.at("replication_definition") is not None)
    )


def translate(document: QlikDocument, made: Translation) -> None:
    """Make a capture and a storage task of each task of an export."""
    root = document.root
    inner = root.at(DEFINITION) or root.at("replication_definition")
    base = inner or root
    sources = {
        value.text("name"): value for value in base.items("databases")
        if value.text("role").upper() != "TARGET"
    }  # fmt: skip
    for value in base.items("tasks"):
        _task(value, sources, made)
    made.sweep(_below(document, base), "replicate", "Replicate")
    if inner is not None:
        # What stands beside the definition.
        for other in root.children:
            if other is not inner:
                made.lose(other, "Replicate", "it stands outside of the definition")


def _below(document: QlikDocument, base: QlikValue) -> QlikDocument:
    """The document whose paths begin inside the definition; places stay as they are."""
    depth = len(base.path)
    waiting = [base] if depth else []
    while waiting:
        value = waiting.pop()
        value.path = value.path[depth:]
        waiting.extend(value.children)
    return QlikDocument(document.file, base, document.faults)


def _task(value: QlikValue, sources: dict[str, QlikValue], made: Translation) -> None:
    title = value.text("task", "name") or "task"
    source_name = value.text("task", "source_name")
    source = sources.get(source_name)
    kind = None
    if source is not None:
        settings_type = source.text("db_settings", "$type")
        kind = database_type(source.text("type_id")) or database_type(settings_type)
    if source is None or kind is None:
        made.lose_task(title, value.where, "its source is not in the file, or of no known type",
                       "export the task with its endpoints")  # fmt: skip
        return
    tables = value.at("source", "source_tables")
    include = _names(tables, "explicit_included_tables") + _names(tables, "included_patterns")
    if not include:
        made.lose_task(title, value.where, "it selects no table", "write `tables`")
        return
    if (end := value.at("source", "rep_source")) is not None:
        end.use()
    name = made.named(title, value.where, title, unique=True)
    capture: dict[str, Any] = {
        "apiVersion": "polynya/v1", "kind": "landing", "name": name,
        "connection": made.connection(source_name, kind, title, source.where, **_server(source)),
        "tables": {"include": include},
    }  # fmt: skip
    if exclude := _names(tables, "excluded_patterns"):
        capture["tables"]["exclude"] = exclude
    rules, filters = _manipulations(value, title, made)
    if filters:
        capture["load"] = {"filter": filters}
    comments = (f"From {value.where}", value.text("task", "description"))
    made.add_task(capture, title, value.where, *comments)
    schema = value.text("task_settings", "target_settings", "default_schema")
    for target in value.items("targets"):
        schema = schema or target.text("rep_target", "default_schema")
    settings = value.at("task_settings", "common_settings")
    history = settings.flag("save_changes_enabled") if settings is not None else None
    if settings is not None:
        settings.flag("apply_changes_enabled")
    storage: dict[str, Any] = {
        "apiVersion": "polynya/v1", "kind": "storage",
        "name": made.named(f"{name}_tables", value.where, title, unique=True),
        "schema": made.named(schema, value.where, title) if schema else name,
        "landing": {"path": name, "format": "debezium"},
    }  # fmt: skip
    if history:
        storage["defaults"] = {"history": True}
    if rules:
        storage["rules"] = rules
    made.add_task(storage, title, value.where, *comments)


def _names(tables: QlikValue | None, key: str) -> list[str]:
    if tables is None:
        return []
    pairs = ((item.text("owner"), item.text("name")) for item in tables.items(key))
    return [f"{owner or '%'}.{name or '%'}" for owner, name in pairs if owner or name]


def _server(source: QlikValue) -> dict[str, Any]:
    """What an export says of the address of a database; never its login."""
    found: dict[str, Any] = {}
    server = source.at("db_settings", "server")
    # Oracle has a whole connect descriptor there, which may hold more than an address.
    text = server.content if server is not None and isinstance(server.content, str) else ""
    if 0 < len(text) <= _LONGEST_HOST and all(c.isalnum() or c in ".-" for c in text):
        found["host"] = source.text("db_settings", "server")
    for key, ours in (("database", "database"), ("username", "user")):
        value = source.at("db_settings", key)
        if value is not None and isinstance(value.content, str) and value.content.isidentifier():
            found[ours] = source.text("db_settings", key)
    port = source.number("db_settings", "port")
    if port is not None and 0 < port < 65536:
        found["port"] = port
    return found


def _manipulations(
    value: QlikValue, title: str, made: Translation
) -> tuple[list[Any], dict[str, str]]:
    rules: list[Any] = []
    filters: dict[str, str] = {}
    for one in value.items("manipulations"):
        table = one.at("table_manipulation")
        if table is None:
            continue
        name, owner = table.text("name"), table.text("owner")
        condition = table.text("fl_passthru_filter")
        if condition.strip() and name:
            filters[f"{owner or '%'}.{name}"] = condition
        for column in table.items("transform_columns"):
            rules += _column(column, name, title, made)
    return rules, filters


def _column(column: QlikValue, table: str, title: str, made: Translation) -> list[Any]:
    action, name = column.text("action").upper(), column.text("column_name")
    new = column.text("new_column_name")
    expression = column.at("computation_expression")
    text = str(expression.content or "") if expression is not None else ""
    when = {"dataset": table, "column": name}
    if action in {"REMOVE", "DROP", "DELETE"} and name:
        return [From(column.where, when=when, drop=True)]
    if text and expression is not None:
        if action == "ADD" or not name:
            # `$NAME` is a column of the source.
            try:
                made_of = column_expression(_columns_named(text), "sqlite", {}, expression.where)
            except NoEqualError as error:
                made.lose_expression(expression, title, str(error), text)
                return []
            expression.used = True
            return [From(column.where, when={"dataset": table}, add={new or name: made_of})]
        made.lose_expression(expression, title, "a rule cannot compute a column that the source "
                             "has", text)  # fmt: skip
    if name and new and new != name:
        return [From(column.where, when=when, rename=new)]
    if not text:
        made.lose(column, title, "this change of a column has no equal", "write a rule")
    return []


def _columns_named(text: str) -> str:
    """`$NAME` outside of texts as a quoted name; `$AR_…` are variables of Replicate and stay."""
    parts = text.split("'")
    for number in range(0, len(parts), 2):
        words = parts[number].split("$")
        for i in range(1, len(words)):
            size = next((j for j, c in enumerate(words[i]) if not (c.isalnum() or c == "_")),
                        len(words[i]))  # fmt: skip
            word = words[i][:size]
            plain = word and not word.startswith("AR_")
            words[i] = (f'"{word}"' if plain else f"${word}") + words[i][size:]
        parts[number] = "".join(words)
    return "'".join(parts)
