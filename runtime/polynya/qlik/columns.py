"""Columns and rules of Qlik as rules of Polynya."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from polynya.qlik.documents import QlikValue
from polynya.qlik.expressions import NoEqualError, column_expression, constant
from polynya.qlik.output import From
from polynya.qlik.translation import Translation

_TYPES: Final[Mapping[str, str]] = {
    "BOOLEAN": "boolean", "BYTES": "binary", "BLOB": "binary", "DATE": "date", "TIME": "string",
    "DATETIME": "timestamp", "INT1": "int", "INT2": "int", "INT4": "int", "INT8": "bigint",
    "REAL4": "float", "REAL8": "double", "UINT1": "int", "UINT2": "int", "UINT4": "bigint",
    "UINT8": "decimal(20,0)", "STRING": "string", "WSTRING": "string", "CLOB": "string",
    "NCLOB": "string", "JSON": "string",
}  # fmt: skip
_MAX_PRECISION: Final = 38


def type_of(datatype: QlikValue | None) -> str | None:
    """The type for a data type of Qlik; None where it names none that there is."""
    if datatype is None:
        return None
    name = datatype.text("type")
    if name == "NUMERIC":
        precision, scale = datatype.number("precision") or 0, datatype.number("scale") or 0
        kind = f"decimal({precision},{scale})"
        found = kind if 0 <= scale <= precision and 0 < precision <= _MAX_PRECISION else None
    else:
        found = _TYPES.get(name)
    if found is not None:
        datatype.use()
    return found


def pattern(text: str) -> str:
    """A pattern of Qlik: `%` is any text in Polynya as well."""
    return text or "%"


def rules_of(rules: list[QlikValue], owner: str, made: Translation, dialect: str) -> list[Any]:
    """The rules of a task, in their order; a rule without an equal is a loss."""
    translated = []
    for rule in sorted(rules, key=lambda rule: rule.number("ordinal") or 0):
        if rule.flag("enabled") is False:
            rule.use()
            continue
        name = rule.text("name")
        when = _chosen(rule)
        if unlike := _not_chosen(rule):
            # A rule that chose fewer columns than it should would change others.
            why = f"rules do not choose by {unlike}"
            made.lose(rule, owner, why, "name the columns in `when`")
            continue
        for _, value in rule.entries("scope"):
            value.use()
        actions = _actions(rule, owner, made, dialect, when)
        for action in actions:
            entry = From(f"{rule.where} {name}".strip())
            if when and "add" not in action:
                entry["when"] = action.pop("when", dict(when))
            elif "dataset" in when:
                entry["when"] = {"dataset": when["dataset"]}
            action.pop("when", None)
            entry.update(action)
            translated.append(entry)
        for key in ("actionType", "scopeType", "enabled"):
            if actions and (used := rule.at(key)) is not None:
                used.use()
    return translated


def _chosen(rule: QlikValue) -> dict[str, Any]:
    """What a rule is for, as `when`."""
    when: dict[str, Any] = {}
    if table := rule.text("scope", "whereTableName"):
        when["dataset"] = table
    if column := rule.text("scope", "whereColumnName"):
        when["column"] = column
    kind = rule.text("scope", "whereDatatype")
    if kind in _TYPES:
        when["type"] = _TYPES[kind]
    return when


def _not_chosen(rule: QlikValue) -> str:
    """The key by which `when` cannot choose, "" for none."""
    for key, neutral in _SCOPES.items():
        value = rule.at("scope", key)
        if value is not None and value.content not in neutral:
            return key
    return ""


_SCOPES: Final[Mapping[str, tuple[str, ...]]] = {
    "whereOwnerName": ("%", ""), "whereColumnKeyAttribute": ("ANY",),
    "whereColumnNullability": ("ANY",), "whereDatatype": ("UNSPECIFIED", *_TYPES),
}  # fmt: skip


def _actions(
    rule: QlikValue, owner: str, made: Translation, dialect: str, when: dict[str, Any]
) -> list[dict[str, Any]]:
    action = rule.text("actionType")
    if action == "DROP_COLUMN" and "column" in when:
        return [{"drop": True}]
    if action == "RENAME_COLUMN":
        return _renamed(rule, owner, made, when)
    if action == "CHANGE_COLUMN_DATA_TYPE":
        kind = type_of(rule.at("action", "column", "datatype"))
        if kind is not None:
            rule.flag("action", "applyColumnDatatype")
            return [{"type": kind}]
    elif action == "ADD_COLUMN" and "column" not in when and "type" not in when:
        name = rule.text("action", "column", "name")
        made_of = _expression(rule.at("action", "expression"), owner, made, dialect)
        if name and made_of is not None:
            return [{"add": {name: made_of}}]
    made.lose(rule, owner, f"a rule {action or 'without an action'} of this form has no equal",
              "write a rule, or `columns` of the datasets")  # fmt: skip
    return []


def _renamed(
    rule: QlikValue, owner: str, made: Translation, when: dict[str, Any]
) -> list[dict[str, Any]]:
    kind, value = rule.text("action", "renameType"), rule.text("action", "value")
    found: list[dict[str, Any]] = []
    if kind in {"TO_UPPER", "TO_LOWER"}:
        found = [{"case": kind[3:].lower()}]
    elif kind == "ADD_PREFIX" and value:
        found = [{"prefix": value}]
    elif kind == "ADD_SUFFIX" and value:
        found = [{"suffix": value}]
    elif kind == "RENAME" and value and "column" in when:
        found = [{"rename": value}]
    elif kind == "NAME_MAPPING" and (mapping := rule.at("action", "valueMapping")) is not None:
        names = mapping.content if isinstance(mapping.content, dict) else {}
        for old, new in names.items():
            if isinstance(new.content, str):
                new.used = True
                found.append({"rename": new.content, "when": {**when, "column": old}})
    if not found:
        made.lose(rule, owner, f"renaming by {kind or 'nothing'} has no equal",
                  "write a rule `rename` for each column")  # fmt: skip
    return found


def _expression(value: QlikValue | None, owner: str, made: Translation, dialect: str) -> str | None:
    statement = value.at("expressionStatement") if value is not None else None
    if value is None or statement is None or not isinstance(statement.content, str):
        return None
    aliases = {alias.text("name"): alias.text("value") for alias in value.items("alias")}
    try:
        found = column_expression(statement.content, dialect, aliases, statement.where)
    except NoEqualError as error:
        made.lose_expression(statement, owner, str(error), statement.content)
        return None
    statement.used = True
    return found


@dataclass(slots=True)
class ColumnChanges:
    """What the import makes of a dataset's changes of columns.

    Attributes:
        rules: rules of the task that makes the table.
        masks: masks of the capture, which land before any rule.
    """

    rules: list[Any] = field(default_factory=list)
    masks: dict[str, Any] = field(default_factory=dict)


def column_changes(
    columns: list[QlikValue], dataset: str, owner: str, made: Translation, dialect: str
) -> ColumnChanges:
    """Rules and masks for what a dataset does to its columns."""
    changes = ColumnChanges()
    for column in columns:
        name, action = column.text("columnName"), column.text("action")
        when = {"dataset": dataset, "column": name}
        found: list[dict[str, Any]] = []
        if action == "DROP" and name:
            use_dropped(column)
            found.append({"when": when, "drop": True})
        elif action == "ADD" and name:
            found = _added(column, when, owner, made, dialect)
        elif action == "KEEP" and name:
            found = _kept(column, when, owner, made, changes)
        changes.rules += [From(column.where, **rule) for rule in found]
        if not found and action not in {"KEEP", "NONE"}:
            made.lose(column, owner, "this change of a column has no equal", "write a rule")
    return changes


def use_dropped(column: QlikValue) -> None:
    """Count as used what Qlik keeps of a column that is dropped."""
    for key in ("newDataType", "expression", "addedColumnId"):
        if (rest := column.at(key)) is not None:
            for known in rest.leaves():
                known.used = known.path[-1] in _OF_COLUMNS


def _added(
    column: QlikValue, when: dict[str, str], owner: str, made: Translation, dialect: str
) -> list[dict[str, Any]]:
    made_of = _expression(column.at("expression"), owner, made, dialect)
    if made_of is None:
        return []
    found: list[dict[str, Any]] = [
        {"when": {"dataset": when["dataset"]}, "add": {when["column"]: made_of}}
    ]
    kind = type_of(column.at("newDataType"))
    if kind is not None:
        found.append({"when": when, "type": kind})
    return found


_OF_COLUMNS: Final = frozenset({
    "type", "length", "precision", "scale", "originalTypeFull", "expressionStatement", "alias",
    "addedColumnId",
})  # fmt: skip


def _kept(
    column: QlikValue,
    when: dict[str, str],
    owner: str,
    made: Translation,
    changes: ColumnChanges,
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if column.flag("hash"):
        changes.masks[when["column"]] = {"hash": {"key": {"env": "HASH_KEY"}}}
    kind = type_of(column.at("newDataType"))
    if kind is not None:
        found.append({"when": when, "type": kind})
    value = column.at("expression", "expressionStatement")
    if value is not None and value.content:
        text = constant(str(value.content))
        if text is not None:
            value.used = True
            changes.masks[when["column"]] = {"replace": text}
        else:
            made.lose_expression(
                value, owner, "a rule cannot compute a column that the source has",
                str(value.content),
            )  # fmt: skip
    if new := column.text("newColumnName"):
        found.append({"when": when, "rename": new})
    return found
