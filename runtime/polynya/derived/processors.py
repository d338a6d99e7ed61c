"""The processors of a flow over one input: what each becomes in Spark SQL.

Every function takes the step with its settings and what it reads, and returns the query and the
columns of its rows. Errors are collected in the step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from polynya.derived.schema import (
    FlowColumn,
    FlowSchema,
    is_number,
    is_orderable,
    is_text,
)
from polynya.derived.steps import (
    FlowRelation,
    FlowStepResult,
    FlowStepScope,
    indented,
    item,
    select,
)
from polynya.model.config.flow import (
    FRAMED,
    AggregateColumn,
    AggregateStep,
    CleanseStep,
    Columns,
    DedupeSettings,
    DedupeStep,
    DerivedColumn,
    DeriveStep,
    ExplodeStep,
    FillMissingStep,
    FilterStep,
    OrderedStep,
    PivotStep,
    RenameStep,
    SelectStep,
    UnpivotStep,
    WindowColumn,
    WindowStep,
)
from polynya.model.error_catalogue.flows import FLOW_COLUMN_TWICE, FLOW_VALUE_REFUSED
from polynya.model.names import column_problem, literal, quote, shown
from polynya.model.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    Array,
    DataType,
    Decimal,
    Void,
)

_CASES: Final = {"upper": "UPPER", "lower": "LOWER", "title": "INITCAP"}
_MOST_DIGITS: Final = 38
_WHOLE: Final = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
_RUNNING: Final = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"


def filtered(step: FlowStepScope, settings: FilterStep, rows: FlowRelation) -> FlowStepResult:
    """Keep the rows for which a condition is true."""
    condition = step.condition(rows, settings.condition, "condition")
    items = [quote(name) for name in rows.schema.names]
    return FlowStepResult(select(items, rows.source(), f"WHERE {condition}"), rows.schema)


def selected(step: FlowStepScope, settings: SelectStep, rows: FlowRelation) -> FlowStepResult:
    """Keep some columns."""
    if settings.columns is not None:
        columns = step.columns(rows, settings.columns, "columns")
    else:
        left_out = {column.name for column in step.columns(rows, settings.except_ or (), "except")}
        columns = [column for column in rows.schema.columns if column.name not in left_out]
        if not columns:
            step.refuse_type("a column", "the result", None, "except")
    names = [column.name for column in columns]
    schema = FlowSchema(tuple(columns), rows.schema.kept_keys(names))
    return FlowStepResult(select([quote(name) for name in names], rows.source()), schema)


def renamed(step: FlowStepScope, settings: RenameStep, rows: FlowRelation) -> FlowStepResult:
    """Give some columns other names."""
    new = {
        step.column(rows, old, "columns", old).name: name for old, name in settings.columns.items()
    }
    columns = tuple(
        replace(column, name=new.get(column.name, column.name)) for column in rows.schema.columns
    )
    step.distinct([column.name for column in columns], "columns")
    items = [item(quote(name), new.get(name, name)) for name in rows.schema.names]
    keys = tuple(frozenset(new.get(name, name) for name in key) for key in rows.schema.keys)
    return FlowStepResult(select(items, rows.source()), FlowSchema(columns, keys))


def derived(step: FlowStepScope, settings: DeriveStep, rows: FlowRelation) -> FlowStepResult:
    """Compute columns, over the columns as they were before."""
    made: dict[str, tuple[str, FlowColumn]] = {}
    names: list[str] = []
    for name, value in settings.columns.items():
        known = rows.schema.find(name)
        spelled = name if known is None else known.name
        names.append(spelled)
        if isinstance(value, DerivedColumn):
            found = step.expression(rows, value.expression, "columns", name, "expression")
            made[spelled] = (f"CAST({found.sql} AS {value.type})", FlowColumn(spelled, value.type))
        else:
            found = step.expression(rows, value, "columns", name)
            kind = None if isinstance(found.type, Void) else found.type
            made[spelled] = (found.sql, FlowColumn(spelled, kind))
    step.distinct(names, "columns")
    return _projected(rows, made)


def _projected(rows: FlowRelation, made: Mapping[str, tuple[str, FlowColumn]]) -> FlowStepResult:
    """The input with other values for some columns, and with more columns."""
    kept = [column for column in rows.schema.columns if column.name not in made]
    items, columns = [], []
    for column in rows.schema.columns:
        sql, now = made.get(column.name, (quote(column.name), column))
        items.append(item(sql, now.name))
        columns.append(now)
    for sql, column in made.values():
        if rows.schema.find(column.name) is None:
            items.append(item(sql, column.name))
            columns.append(column)
    keys = rows.schema.kept_keys(column.name for column in kept)
    return FlowStepResult(select(items, rows.source()), FlowSchema(tuple(columns), keys))


def cleansed(step: FlowStepScope, settings: CleanseStep, rows: FlowRelation) -> FlowStepResult:
    """Tidy values: spaces, other values, case, NULL; then one row of those that are duplicates."""
    made: dict[str, tuple[str, FlowColumn]] = {}

    def value_of(name: str, *keys: str | int, text: bool = True) -> tuple[str, FlowColumn]:
        """The value of a column after the changes before, and the column."""
        column = step.column(rows, name, *keys)
        if text and not is_text(column.type):
            step.refuse_type("text", shown(column.name), column.type, *keys)
        return made.get(column.name, (quote(column.name), column))

    for number, name in enumerate(settings.trim):
        value, column = value_of(name, "trim", number)
        made[column.name] = (f"TRIM({value})", column)
    for name, others in settings.replace.items():
        value, column = value_of(name, "replace", name)
        cases = " ".join(f"WHEN {literal(old)} THEN {literal(new)}" for old, new in others.items())
        made[column.name] = (f"CASE {value} {cases} ELSE {value} END", column)
    for name, case in settings.case.items():
        value, column = value_of(name, "case", name)
        made[column.name] = (f"{_CASES[case]}({value})", column)
    for name, values in settings.null_if.items():
        value, column = value_of(name, "null_if", name, text=False)
        listed = ", ".join(step.constant(one, column, "null_if", name) for one in values)
        made[column.name] = (f"CASE WHEN {value} IN ({listed}) THEN NULL ELSE {value} END", column)
    tidy = _projected(rows, made)
    if settings.dedupe is None:
        return tidy
    inner = FlowRelation("", ("(", *indented(tidy.lines), ")"), tidy.schema)
    source = inner if made else rows
    return _one_of_each(step, settings.dedupe, source, "dedupe")


def deduped(step: FlowStepScope, settings: DedupeStep, rows: FlowRelation) -> FlowStepResult:
    """Keep one row of those that are duplicates."""
    return _one_of_each(step, settings, rows)


def _one_of_each(
    step: FlowStepScope, settings: DedupeSettings, rows: FlowRelation, *keys: str
) -> FlowStepResult:
    names = [quote(name) for name in rows.schema.names]
    if not settings.keys:
        step.orderable(rows.schema.columns, *keys)
        schema = FlowSchema(rows.schema.columns, (*rows.schema.keys, frozenset(rows.schema.names)))
        return FlowStepResult(select(names, rows.source(), distinct=True), schema)
    same = step.columns(rows, settings.keys, *keys, "keys")
    order = step.columns(rows, settings.order, *keys, "order")
    step.orderable(same, *keys, "keys")
    step.orderable(order, *keys, "order")
    step.total_order(rows, [*same, *order], *keys, "order")
    direction = "DESC" if settings.keep == "latest" else "ASC"
    terms = ", ".join(f"{quote(column.name)} {direction} NULLS LAST" for column in order)
    parts = ", ".join(quote(column.name) for column in same)
    number = quote(rows.schema.free_name("row_number"))
    numbered = item(f"ROW_NUMBER() OVER (PARTITION BY {parts} ORDER BY {terms})", number[1:-1])
    inner = ["(", *indented(select([*names, numbered], rows.source())), ")"]
    schema = FlowSchema(
        rows.schema.columns, (frozenset(column.name for column in same), *rows.schema.keys)
    )
    return FlowStepResult(select(names, inner, f"WHERE {number} = 1"), schema)


def aggregated(step: FlowStepScope, settings: AggregateStep, rows: FlowRelation) -> FlowStepResult:
    """One row for each group."""
    by = step.columns(rows, settings.by, "by")
    step.orderable(by, "by")
    items, columns = [quote(column.name) for column in by], list(by)
    for name, value in settings.columns.items():
        sql, kind = _aggregate(step, value, rows, None, "columns", name)
        items.append(item(sql, name))
        columns.append(FlowColumn(name, kind))
    new_names(step, by, list(settings.columns), "columns")
    groups = [f"GROUP BY {', '.join(quote(column.name) for column in by)}"] if by else []
    keys = (frozenset(column.name for column in by),)
    lines = select(items, rows.source(), *groups)
    return FlowStepResult(lines, FlowSchema(tuple(columns), keys))


def new_names(
    step: FlowStepScope, kept: Sequence[FlowColumn], names: Sequence[str], *keys: str
) -> None:
    """Collect an error for each new column with the name of another one."""
    seen = FlowSchema(tuple(kept))
    for name in names:
        if seen.find(name) is not None:
            where = step.where(*keys, name)
            step.errors.append(FLOW_COLUMN_TWICE(where=where, step=step.label, column=shown(name)))
        seen = FlowSchema((*seen.columns, FlowColumn(name)))


def _aggregate(
    step: FlowStepScope,
    value: AggregateColumn,
    rows: FlowRelation,
    only: str | None,
    *keys: str | int,
) -> tuple[str, DataType | None]:
    """The SQL and the type of an aggregate, over the rows for which `only` is true."""
    function, argument = value.function, value.argument.strip()
    conditions = [] if only is None else [only]
    if value.where is not None:
        conditions.append(step.condition(rows, value.where, *keys, "where"))
    wrapped = conditions if len(conditions) < 2 else [f"({one})" for one in conditions]
    # Aggregates do not see NULL, so this is the same as FILTER, which fewer engines have.
    head = f"CASE WHEN {' AND '.join(wrapped)} THEN "
    if function == "count" and argument == "*":
        return f"COUNT({head}1 END)" if conditions else "COUNT(*)", BIGINT
    found = step.expression(rows, argument, *keys, function)
    sql, kind = f"{head}{found.sql} END" if conditions else found.sql, found.type
    match function:
        case "count":
            return f"COUNT({sql})", BIGINT
        case "count_distinct":
            _comparable(step, kind, *keys, function)
            return f"COUNT(DISTINCT {sql})", BIGINT
        case "sum" | "avg":
            _summable(step, kind, *keys, function)
            return f"{function.upper()}({sql})", _type_of_sum(function, kind)
        case "min" | "max":
            _comparable(step, kind, *keys, function)
            return f"{function.upper()}({sql})", _not_void(kind)
        case "any" | "every":
            step.is_condition(found, *keys, function)
            name = "BOOL_OR" if function == "any" else "BOOL_AND"
            return f"{name}({sql})", BOOLEAN
        case _:
            _comparable(step, kind, *keys, function)
            listed = None if _not_void(kind) is None else Array(found.type or STRING)
            return f"SORT_ARRAY(COLLECT_LIST({sql}))", listed


def _not_void(kind: DataType | None) -> DataType | None:
    return None if isinstance(kind, Void) else kind


def _comparable(step: FlowStepScope, kind: DataType | None, *keys: str | int) -> None:
    if not is_orderable(kind):
        step.refuse_type("a type that can be compared", "the expression", kind, *keys)


def _summable(step: FlowStepScope, kind: DataType | None, *keys: str | int) -> None:
    if not is_number(_not_void(kind)):
        step.refuse_type("a number", "the expression", kind, *keys)


def _type_of_sum(function: str, kind: DataType | None) -> DataType | None:
    """What Spark makes of a sum or a mean."""
    if isinstance(kind, Decimal):
        if function == "sum":
            return Decimal(min(_MOST_DIGITS, kind.precision + 10), kind.scale)
        precision, scale = kind.precision + 4, kind.scale + 4
        return Decimal(precision, scale) if precision <= _MOST_DIGITS else None
    if kind in {FLOAT, DOUBLE}:
        return DOUBLE
    if kind in {INT, BIGINT}:
        return BIGINT if function == "sum" else DOUBLE
    return None


def filled(step: FlowStepScope, settings: FillMissingStep, rows: FlowRelation) -> FlowStepResult:
    """Values where columns are NULL: the last one before, else a constant."""
    made: dict[str, tuple[str, FlowColumn]] = {}
    _, window = _window(step, settings, rows, total=bool(settings.last))
    for column in step.columns(rows, settings.last, "last"):
        sql = f"LAST_VALUE({quote(column.name)}) IGNORE NULLS OVER ({window} {_RUNNING})"
        made[column.name] = (sql, column)
    names = []
    for name, value in settings.values.items():
        column = step.column(rows, name, "values", name)
        names.append(column.name)
        before, _ = made.get(column.name, (quote(column.name), column))
        fill = step.constant(value, column, "values", name)
        made[column.name] = (f"COALESCE({before}, {fill})", column)
    step.distinct(names, "values")
    return _projected(rows, made)


def _window(
    step: FlowStepScope, settings: OrderedStep, rows: FlowRelation, *, total: bool
) -> tuple[str, str]:
    """What stands in the brackets of OVER, without and with the order.

    `total` asks that the order has no ties.
    """
    by = step.columns(rows, settings.by, "by")
    order = step.columns(rows, [name for name, _ in settings.terms], "order")
    step.orderable(by, "by")
    step.orderable(order, "order")
    if total:
        step.total_order(rows, [*by, *order], "order")
    together = f"PARTITION BY {', '.join(quote(column.name) for column in by)}" if by else ""
    parts = [together] if by else []
    if order:
        directions = [
            f"{quote(column.name)} {'DESC NULLS LAST' if way == 'desc' else 'ASC NULLS FIRST'}"
            for column, (_, way) in zip(order, settings.terms, strict=True)
        ]
        parts.append(f"ORDER BY {', '.join(directions)}")
    return together, " ".join(parts)


def windowed(step: FlowStepScope, settings: WindowStep, rows: FlowRelation) -> FlowStepResult:
    """Columns from the rows around each row."""
    needed = [
        column
        for column in settings.columns.values()
        if column.needs_order and column.function not in {"rank", "dense_rank"}
    ]
    whole, ordered = _window(step, settings, rows, total=bool(needed))
    made: dict[str, tuple[str, FlowColumn]] = {}
    for name, value in settings.columns.items():
        over = ordered if value.needs_order else whole
        sql, kind = _window_function(step, value, rows, over, name)
        made[name] = (sql, FlowColumn(name, kind))
    new_names(step, rows.schema.columns, list(settings.columns), "columns")
    return _projected(rows, made)


def _window_function(
    step: FlowStepScope, value: WindowColumn, rows: FlowRelation, over: str, name: str
) -> tuple[str, DataType | None]:
    function = value.function
    if value.argument is None:
        return f"{function.upper()}() OVER ({over})", INT
    if function in FRAMED:
        aggregate = AggregateColumn.model_validate({function: value.argument})
        sql, kind = _aggregate(step, aggregate, rows, None, "columns", name)
        if isinstance(value.rows, int):
            over = f"{over} ROWS BETWEEN {value.rows} PRECEDING AND CURRENT ROW"
        elif value.rows == "running":
            over = f"{over} {_RUNNING}"
        return f"{sql} OVER ({over})", kind
    found = step.expression(rows, value.argument, "columns", name, function)
    kind = _not_void(found.type)
    if function in {"lag", "lead"}:
        return f"{function.upper()}({found.sql}, {value.offset or 1}) OVER ({over})", kind
    return f"{function.upper()}_VALUE({found.sql}) OVER ({over} {_WHOLE})", kind


def pivoted(step: FlowStepScope, settings: PivotStep, rows: FlowRelation) -> FlowStepResult:
    """A column for each declared value of a column."""
    by = step.columns(rows, settings.by, "by")
    step.orderable(by, "by")
    by_value = step.column(rows, settings.column, "column")
    step.orderable([by_value], "column")
    named = settings.values
    if not isinstance(named, dict):
        texts = [str(one).lower() if isinstance(one, bool) else str(one) for one in named]
        for number, text in enumerate(texts):
            if (problem := column_problem(text)) is not None:
                where = step.where("values", number)
                fix = "write `values` as `name: value` lines"
                message = f"{step.label} cannot name a column after a value: {problem}"
                step.errors.append(FLOW_VALUE_REFUSED(message, where=where, fix=fix))
        step.distinct(texts, "values")
        named = dict(zip(texts, named, strict=True))
    new_names(step, by, list(named), "values")
    items, columns = [quote(column.name) for column in by], list(by)
    for number, (name, value) in enumerate(named.items()):
        key = name if isinstance(settings.values, dict) else number
        only = f"{quote(by_value.name)} = {step.constant(value, by_value, 'values', key)}"
        before = len(step.errors)
        sql, kind = _aggregate(step, settings.value, rows, only, "value")
        if number:
            # The same setting is wrong once, not once for each value.
            del step.errors[before:]
        items.append(item(sql, name))
        columns.append(FlowColumn(name, kind))
    group = f"GROUP BY {', '.join(quote(column.name) for column in by)}"
    keys = (frozenset(column.name for column in by),)
    lines = select(items, rows.source(), group)
    return FlowStepResult(lines, FlowSchema(tuple(columns), keys))


def unpivoted(step: FlowStepScope, settings: UnpivotStep, rows: FlowRelation) -> FlowStepResult:
    """A row for each of several columns, with its label and its value."""
    labels = _labels(settings.columns)
    columns = step.columns(rows, list(labels), "columns")
    _distinct_labels(step, labels)
    kept = [column for column in rows.schema.columns if column not in columns]
    new_names(step, kept, [settings.name], "name")
    new_names(step, [*kept, FlowColumn(settings.name)], [settings.value], "value")
    types = [column.type for column in columns]
    kind = types[0]
    for number, column in enumerate(columns[1:], start=1):
        met = FlowColumn(columns[number - 1].name, kind)
        kind = step.common(
            (met.name, met.type), (column.name, column.type), "columns",
            column.name if isinstance(settings.columns, dict) else number,
        )  # fmt: skip
    label = quote(rows.schema.free_name("label"))
    cases = " ".join(
        f"WHEN {literal(text)} THEN {cast_to(quote(column.name), column.type, kind)}"
        for column, text in zip(columns, labels.values(), strict=True)
    )
    value = f"CASE {label} {cases} END"
    texts = ", ".join(map(literal, labels.values()))
    items = [quote(column.name) for column in kept]
    items += [item(label, settings.name), item(value, settings.value)]
    view = f"LATERAL VIEW EXPLODE(ARRAY({texts})) {_free_table(rows)} AS {label}"
    tail = [f"WHERE {value} IS NOT NULL"] if settings.missing == "drop" else []
    keys = tuple(
        key | {settings.name} for key in rows.schema.kept_keys(column.name for column in kept)
    )
    schema = FlowSchema(
        (*kept, FlowColumn(settings.name, STRING), FlowColumn(settings.value, kind)), keys
    )
    return FlowStepResult(select(items, rows.source(), view, *tail), schema)


def _labels(columns: Columns | dict[str, str]) -> dict[str, str]:
    return columns if isinstance(columns, dict) else {name: name for name in columns}


def _distinct_labels(step: FlowStepScope, labels: Mapping[str, str]) -> None:
    seen: set[str] = set()
    for name, text in labels.items():
        if text in seen:
            message = f"{step.label} gives two columns the label {shown(text)}"
            where = step.where("columns", name)
            fix = "write another label"
            step.errors.append(FLOW_VALUE_REFUSED(message, where=where, fix=fix))
        seen.add(text)


def cast_to(sql: str, old: DataType | None, new: DataType | None) -> str:
    """A value in the type of all that meet it."""
    return sql if new is None or old is None or old == new else f"CAST({sql} AS {new})"


def _free_table(rows: FlowRelation) -> str:
    return quote(rows.schema.free_name("elements", [rows.name.rpartition(".")[2], "input"]))


def exploded(step: FlowStepScope, settings: ExplodeStep, rows: FlowRelation) -> FlowStepResult:
    """A row for each element of an array."""
    array = step.column(rows, settings.column, "column")
    if not isinstance(array.type, Array | None):
        step.refuse_type("an array", shown(array.name), array.type, "column")
    name = settings.into or array.name
    kept = [column for column in rows.schema.columns if column != array]
    new_names(step, kept, [name], "into")
    if settings.position is not None:
        new_names(step, [*kept, FlowColumn(name)], [settings.position], "position")
    element = rows.schema.free_name("element")
    number = rows.schema.free_name("number", [element])
    kind = array.type.element if isinstance(array.type, Array) else None
    items, columns = [], []
    for column in rows.schema.columns:
        inside = column == array
        items.append(
            item(quote(element if inside else column.name), name if inside else column.name)
        )
        columns.append(FlowColumn(name, kind) if inside else column)
    keys: tuple[frozenset[str], ...] = ()
    function, made = "EXPLODE", quote(element)
    if settings.position is not None:
        function, made = "POSEXPLODE", f"{quote(number)}, {quote(element)}"
        items.append(item(f"{quote(number)} + 1", settings.position))
        columns.append(FlowColumn(settings.position, INT))
        unchanged = rows.schema.kept_keys(column.name for column in kept)
        keys = tuple(key | {settings.position} for key in unchanged)
    outer = "OUTER " if settings.empty == "keep" else ""
    call = f"{function}({quote(array.name)})"
    view = f"LATERAL VIEW {outer}{call} {_free_table(rows)} AS {made}"
    return FlowStepResult(select(items, rows.source(), view), FlowSchema(tuple(columns), keys))
