"""The fold as SQL: the events of some records in, their versions out (semantics section 4).

Apply and the live views run the same text, so that a query sees the same rows before, during and
after an apply. Every step is one common table expression; `fold` strings them together. `placed`
then compares the versions with what is stored, so that an apply never writes a row that did not
change. Nothing here reads or writes.

Input: one row per event, stored versions included, with the data columns and the columns EVENT of
`columns.py`; `__stored` is NULL for an event that was not applied yet. Output: the data columns
with carried values, and the columns EVENT and FOLDED of `columns.py`.

The apply state keeps truncates forever, because events older than a truncate may still arrive.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from polynya.lake.fold import sql
from polynya.lake.fold.columns import EVENT_HEADERS, STORED_FIELDS, STORED_TYPE
from polynya.lake.fold.shape import Shape, comparable
from polynya.lake.fold.sql import (
    SEQUENCE,
    STORED_SEQUENCE,
    is_delete,
    is_unsent,
    joined,
    key_hash,
    selected,
    table_row,
)
from polynya.model import headers as h
from polynya.model.headers import Partition
from polynya.model.names import literal, quote


@dataclass(frozen=True, slots=True)
class TruncateEvent:
    """One truncate: its place in the order of events, and its time in epoch microseconds."""

    change_identifier: str
    tail: str | None
    micros: int

    @property
    def sequence(self) -> str:
        """Its sequence."""
        return self.change_identifier + (self.tail or "")


def merged(old: Iterable[TruncateEvent], new: Iterable[TruncateEvent]) -> list[TruncateEvent]:
    """All truncates in ascending order; of several with one sequence the earliest time counts."""
    by_sequence: dict[str, TruncateEvent] = {}
    for item in sorted([*old, *new], key=lambda truncate: (truncate.sequence, truncate.micros)):
        by_sequence.setdefault(item.sequence, item)
    return list(by_sequence.values())


def as_sql(truncates: Sequence[TruncateEvent]) -> str | None:
    """SQL array of struct<seq, ci, tail, ts>, None when there is no truncate."""
    if not truncates:
        return None
    items = []
    for item in truncates:
        tail = literal(item.tail) if item.tail else "CAST(NULL AS STRING)"
        items.append(
            f"named_struct('seq', {literal(item.sequence)}, "
            f"'ci', {literal(item.change_identifier)}, "
            f"'tail', {tail}, 'ts', timestamp_micros({item.micros}L))"
        )
    return f"array({', '.join(items)})"


#: `hdr__source_position` of a delete that a truncate made
TRUNCATED = "truncate"


def event_columns(shape: Shape) -> str:
    """Select list that turns rows of Changes into input of the fold."""
    return ", ".join(
        [*map(quote, shape.data), *_renamed(), f"CAST(NULL AS {STORED_TYPE}) AS __stored"]
    )


def raw_columns(shape: Shape, *, located: bool, values: bool = True) -> str:
    """Columns of Current and Prior that `stored_columns` needs, as they are in the table.

    Reading them and making the input of the fold are two steps, so that a join in between throws
    away the rows that do not matter before anything is made of them. `located` adds file and
    position, which only the applier needs. Without `values` only the keys of the data are read.
    """
    data = shape.data if values else shape.keys
    headers = dict.fromkeys([*EVENT_HEADERS.values(), *STORED_FIELDS.values()])
    return ", ".join([*map(quote, data), *headers, *(["_file", "_pos"] if located else [])])


def stored_columns(shape: Shape, *, located: bool, values: bool = True, late: str = "false") -> str:
    """Select list over `raw_columns` that makes the input of the fold of them.

    `late` is the condition that an event of the record is not newer than the version.
    """
    fields = [f"'{name}', {column}" for name, column in STORED_FIELDS.items()]
    fields += ["'file', _file, 'pos', _pos"] if located else ["'file', '', 'pos', 0L"]
    fields.append(f"'late', {late}")
    stored = f"CAST(named_struct({', '.join(fields)}) AS {STORED_TYPE}) AS __stored"
    data = [
        quote(name)
        if values or name in shape.keys
        else f"CAST(NULL AS {shape.type_of(name)}) AS {quote(name)}"
        for name in shape.data
    ]
    return ", ".join([*data, *_renamed(), stored])


def _renamed() -> list[str]:
    # A list is stored as text: one column of nested values makes Iceberg read all row by row.
    lists = {h.UNSENT: f"from_json({h.UNSENT}, 'array<string>')"}
    return [f"{lists.get(column, column)} AS {name}" for name, column in EVENT_HEADERS.items()]


def fold(shape: Shape, source: str, *, truncates: str | None = None) -> list[tuple[str, str]]:
    """Return the common table expressions of the fold; the last one, `folded`, is the result.

    `source` names the relation of events. `truncates` is an SQL array of struct<seq, ci, tail, ts>
    in ascending order of seq, None when the dataset never saw a truncate.
    """
    steps = [("sequenced", _sequenced(source))]
    name = "sequenced"
    if truncates is not None:
        steps.append(("spread", _spread(shape, truncates)))
        name = "spread"
    if shape.replaces:
        steps += replaced_elements(shape, name)
        name = "replaced"
    deletes_many = truncates is not None or shape.replaces
    steps += [
        ("ranked", with_ties(shape, name)),
        ("collapsed", _collapsed(shape, truncates=deletes_many)),
    ]
    name = "collapsed"
    if deletes_many:
        steps.append(("effective", _effective(shape)))
        name = "effective"
    steps.append(("numbered", _numbered(shape, name)))
    name = "numbered"
    if shape.partial:
        steps.append(("filled", _filled(shape, name)))
        name = "filled"
    if shape.fills_deletes:
        steps += [("carried", _carried(shape, name)), ("shown", _shown(shape))]
        name = "shown"
    if shape.looks:
        steps.append(("observed", _observed(shape, name)))
        name = "observed"
    return [*steps, ("folded", _folded(shape, name))]


def with_clause(steps: list[tuple[str, str]]) -> str:
    """`WITH a AS (…), b AS (…)` of named steps."""
    return "WITH " + ",\n".join(f"{name} AS ({text})" for name, text in steps)


def _sequenced(source: str) -> str:
    return (
        f"SELECT *, {SEQUENCE} AS __seq, coalesce({is_delete('__op')}, false) AS __del, "
        "__stored IS NOT NULL AS __own, "
        f"coalesce(__position = '{TRUNCATED}', false) AS __trunc FROM {source}"
    )


def _spread(shape: Shape, truncates: str) -> str:
    """Put the first truncate after each upsert among the events of its record, as a delete.

    Whether it meets an open version is decided when all events stand in order (`effective`).
    """
    after = f"get(filter({truncates}, t -> t.seq > __seq), 0)"
    first = f"SELECT *, IF(__del, NULL, {after}) AS __next_truncate FROM sequenced"
    changed = {
        "__ci": "__next_truncate.ci",
        "__tail": "__next_truncate.tail",
        "__position": f"'{TRUNCATED}'",
        "__op": "'D'",
        "__ts": "__next_truncate.ts",
        "__unsent": "NULL",
        "__former": "NULL",
        "__stored": "NULL",
        "__seq": "__next_truncate.seq",
        "__del": "true",
        "__own": "false",
        "__trunc": "true",
    }
    made = ", ".join(f"IF(__copy, {new}, {name}) AS {name}" for name, new in changed.items())
    data = _replaced(shape, {name: f"IF(__copy, NULL, {quote(name)})" for name in shape.values})
    twice = "IF(__next_truncate IS NULL, array(false), array(false, true))"
    return f"SELECT {data}, {made} FROM ({first}) LATERAL VIEW explode({twice}) c AS __copy"


def newest_elements(shape: Shape, rows: str) -> str:
    """The rows of a reload without elements that are not in the newest record of theirs."""
    newest = f"max({STORED_SEQUENCE}) OVER (PARTITION BY {shape.touching_list()})"
    return (
        f"SELECT * FROM (SELECT *, {newest} AS __newest FROM ({rows})) "
        f"WHERE {STORED_SEQUENCE} = __newest AND NOT ({shape.is_record()})"
    )


def replaced_elements(shape: Shape, source: str) -> list[tuple[str, str]]:
    """Steps that delete the elements which a newer record lacks; the last one is `replaced`.

    A record is an event of its own, a delete without the keys of an element, in the place of its
    elements. To an element it means what a truncate means to a table: it ends the version that is
    open, unless the record has an event of the element itself. So the result does not depend on the
    order of arrival.

    Of two records in one place the later source position counts, and the elements of the other one
    do not exist. Without a position both are one record. The earliest time counts.
    """
    parent = shape.touching_list()
    record = f"({shape.is_record()})"
    place = f"OVER (PARTITION BY {parent}, __seq)"
    counted = f"SELECT *, max(IF({record}, __position, NULL)) {place} AS __counts FROM {source}"
    lost = "NOT __trunc AND __counts IS NOT NULL AND NOT coalesce(__position = __counts, false)"
    judged = f"SELECT *, {lost} AS __lost FROM ({counted})"
    since = f"min(IF({record} AND NOT __lost, __ts, NULL)) {place}"
    records = f"SELECT *, {since} AS __since FROM ({judged})"
    data = _replaced(shape, {name: f"IF(__lost, NULL, {quote(name)})" for name in shape.values})
    settled = {
        "__position": f"IF(__lost, '{TRUNCATED}', __position)",
        "__op": "IF(__lost, 'D', __op)",
        # What an earlier fold deleted may have been told the time of a record that does not count.
        "__ts": "IF(__lost OR __trunc, coalesce(__since, __ts), __ts)",
        "__unsent": "IF(__lost, NULL, __unsent)",
        "__former": "IF(__lost, NULL, __former)",
        "__del": "__del OR __lost",
        "__trunc": "__trunc OR __lost",
    }
    changed = ", ".join(f"{value} AS {name}" for name, value in settled.items())
    counting = (
        f"SELECT {data}, __ci, __tail, {changed}, __stored, __seq, __own, __since "
        f"FROM records WHERE NOT (__lost AND {record} AND __stored IS NULL)"
    )
    later = (
        f"OVER (PARTITION BY {parent} ORDER BY __seq DESC, {record} "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    )
    following = {
        "__next_ci": "__ci",
        "__next_tail": "coalesce(__tail, '')",
        "__next_ts": "__since",
        "__next_seq": "__seq",
    }
    nearest = ", ".join(
        f"last_value(IF({record}, {value}, NULL), true) {later} AS {name}"
        for name, value in following.items()
    )
    own = f"lead(__seq) OVER (PARTITION BY {shape.key_list()}, __trunc ORDER BY __seq)"
    # The last event of an element in its place, where the next record has none of it.
    ends = (
        f"NOT __del AND NOT {record} AND __next_seq IS NOT NULL "
        "AND NOT coalesce(__own_seq IN (__seq, __next_seq), false)"
    )
    return [
        ("records", records),
        ("settled", counting),
        ("following", f"SELECT *, {nearest}, {own} AS __own_seq FROM settled"),
        ("replaced", _with_deletes(shape, "following", ends)),
    ]


def _with_deletes(shape: Shape, source: str, ends: str) -> str:
    """The events, and a delete by the record that follows for each that `ends` there.

    Not by an array that is exploded: views of other engines run this text, too.
    """
    events = {
        "__ci": "__next_ci",
        "__tail": "nullif(__next_tail, '')",
        "__position": f"'{TRUNCATED}'",
        "__op": "'D'",
        "__ts": "__next_ts",
        "__unsent": "CAST(NULL AS ARRAY<STRING>)",
        "__former": "CAST(NULL AS STRING)",
        "__stored": f"CAST(NULL AS {STORED_TYPE})",
        "__seq": "__next_seq",
        "__del": "true",
        "__own": "false",
        "__trunc": "true",
    }
    nothing = {name: f"CAST(NULL AS {shape.type_of(name)})" for name in shape.values}
    deletes = ", ".join(f"{value} AS {name}" for name, value in events.items())
    return (
        f"SELECT {_replaced(shape, {})}, {', '.join(events)} FROM {source} UNION ALL "
        f"SELECT {_replaced(shape, nothing)}, {deletes} FROM {source} WHERE {ends}"
    )


def with_ties(shape: Shape, source: str) -> str:
    """The events, with `__tie`; `source` has the key columns and `__seq`."""
    over = over_record(shape)
    tie = (
        f"coalesce(lag(__seq) {over} = __seq, false) OR coalesce(lead(__seq) {over} = __seq, false)"
    )
    return f"SELECT *, {tie} AS __tie FROM {source}"


#: Which of the events of one sequence counts, but for what their content decides: it comes first.
PRECEDENCE = "__trunc, __del DESC, __position DESC NULLS LAST"


def precedence(shape: Shape) -> str:
    """The same with their content; what stays equal has the same data, or is a delete."""
    return f"{PRECEDENCE}, IF(__tie AND NOT __del, {content_hash(shape)}, '') DESC"


def content_hash(shape: Shape) -> str:
    """SQL of the hash of what the source sent: the last resort when two events claim one sequence.

    NULLs and columns that were not sent do not count, and columns are taken in the order of their
    names, because the columns of the table and their order depend on what arrived first.
    """
    parts = []
    for name in sorted(shape.values):
        value = quote(name)
        if name in shape.partial:
            value = f"IF({is_unsent(shape, name)}, NULL, {value})"
        parts += _spelled(shape, name, value)
    parts += ["'hdr__unsent'", "array_sort(__unsent)"]
    return f"sha1(to_json(named_struct({', '.join(parts)})))"


def _spelled(shape: Shape, name: str, value: str) -> list[str]:
    """A field of the content: its name and its value.

    A value of a column that was rewritten is spelled as it was before, or a tie that was decided
    would be decided otherwise. Each former type is a field of its own: JSON leaves out the others.
    """
    parts: list[str] = []
    earlier = "false"
    for kind in shape.former.get(name, ()):
        cast = f"try_cast({value} AS {kind})"
        holds = f"coalesce(try_cast({cast} AS {shape.type_of(name)}) = {value}, false)"
        parts += [literal(name), f"IF({holds} AND NOT ({earlier}), {cast}, NULL)"]
        earlier = f"{earlier} OR {holds}"
    return [*parts, literal(name), f"IF({earlier}, NULL, {value})" if parts else value]


def _order(shape: Shape) -> str:
    """The same of events with their times, stored ones first."""
    return f"{precedence(shape)}, __ts, __own DESC"


def _collapsed(shape: Shape, *, truncates: bool) -> str:
    """One event for each sequence of a record, whatever the order of arrival.

    Semantics section 4, rule 1. `__stored` then tells where the version of this sequence is stored,
    even when another event won. Only truncates make versions that are `__gone`.
    """
    ranked = (
        f"SELECT *, row_number() {over_record(shape, '__seq', order=_order(shape))} AS __rank, "
        f"max(__stored) {over_record(shape, '__seq', order='')} AS __place FROM ranked"
    )
    kept = (
        "__ci, __tail, __position, __op, __ts, __unsent, __former, __seq, __del, __own, __trunc, "
        "__place AS __stored"
    )
    kept += "" if truncates else ", false AS __gone"
    return f"SELECT {_replaced(shape, {})}, {kept} FROM ({ranked}) WHERE __rank = 1"


def _effective(shape: Shape) -> str:
    """A truncate deletes a record only where its version is open.

    A stored delete of a truncate that no longer meets one is gone. If it is the oldest version that
    was loaded, the one that it closed was not: nothing in this batch is older than that.
    """
    alone = "NOT __own"
    if shape.replaces:
        # It may have been an element of a record that does not count: then it closes nothing.
        alone = f"NOT (__own AND coalesce({is_delete('__stored.op')}, false))"
    closed = f"coalesce(lag(__del) {over_record(shape)}, {alone})"
    marked = f"SELECT *, __trunc AND {closed} AS __gone FROM collapsed"
    return f"SELECT * FROM ({marked}) WHERE NOT __gone OR __stored IS NOT NULL"


def _numbered(shape: Shape, source: str) -> str:
    over = over_record(shape, "__gone")
    before = over_record(shape, "__gone", frame="ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING")
    return (
        f"SELECT *, row_number() {over} AS __nth, lag(__del) {over} AS __del_before, "
        f"coalesce(sum(CAST(__del AS INT)) {before}, 0) AS __life, "
        f"min(__stored.ins) {over_record(shape, order='')} AS __ins, {_struct(shape)} AS __orig "
        f"FROM {source}"
    )


def _filled(shape: Shape, source: str) -> str:
    """Give a column that was not sent the value valid just before; a delete ends inheritance.

    The oldest loaded version keeps what is stored with it: its predecessors were not loaded because
    nothing in this batch is older. The same holds for a record that changed its key: its values
    were carried over before the fold.
    """
    over, over_after = (
        over_record(shape, "__gone", "__life", frame=f"ROWS BETWEEN {frame}")
        for frame in ("UNBOUNDED PRECEDING AND CURRENT ROW", "1 FOLLOWING AND UNBOUNDED FOLLOWING")
    )
    over_before = over_record(
        shape, "__gone", frame="ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
    )
    filled, conditions = {}, []
    for name in shape.partial:
        base = sql.is_base(shape, name) if shape.looks else "(__own AND __nth = 1)"
        sent = f"NOT {is_unsent(shape, name)} OR __former IS NOT NULL OR {base}"
        known = f"IF(NOT __del AND ({sent}), named_struct('v', {quote(name)}), NULL)"
        latest = f"last_value({known}, true) {over}"
        value = f"{latest}.v"
        if shape.looks:
            is_told = f"{latest} IS NOT NULL"
            if shape.links:
                is_open = sql.carries_nothing(shape, name)
                is_told = f"NOT last_value(IF({known} IS NULL, NULL, {is_open}), true) {over}"
                is_told = f"coalesce({is_told}, false)"
            later = sql.shown_later(shape, name, over_before, over_after)
            value = f"IF({is_told}, {value}, {later})"
            conditions.append(is_told)
        filled[name] = f"IF(__del, {quote(name)}, {value})"
    more = f", {joined(conditions, 'AND')} AS __told" if conditions else ""
    return f"SELECT {_replaced(shape, filled)}, {_passed()}{more} FROM {source}"


def _passed(gone: str = "__gone") -> str:
    """Columns of an event that steps only pass on, but for what is `gone`."""
    return (
        "__ci, __tail, __position, __op, __ts, __unsent, __former, __seq, __del, __own, __trunc, "
        f"__stored, {gone}, __ins, __nth, __del_before, __orig"
    )


def _carried(shape: Shape, source: str) -> str:
    over = over_record(shape, "__gone", frame="ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW")
    shown = f"IF(__del AND NOT (__own AND __nth = 1), NULL, {_struct(shape)})"
    return f"SELECT *, last_value({shown}, true) {over} AS __before FROM {source}"


def _shown(shape: Shape) -> str:
    """A delete shows the values that the record had before it."""
    shown = {name: f"IF(__del, __before.{quote(name)}, {quote(name)})" for name in shape.values}
    more = ", __told" if shape.looks and shape.partial else ""
    return f"SELECT {_replaced(shape, shown)}, {_passed()}{more} FROM carried"


def _observed(shape: Shape, source: str) -> str:
    """A look that shows nothing new makes no version."""
    nothing_new = sql.shows_nothing_new(shape, over_record(shape, "__gone"))
    passed = _passed(f"__gone OR {nothing_new} AS __gone")
    return f"SELECT {_replaced(shape, {})}, {passed} FROM {source}"


def _folded(shape: Shape, source: str) -> str:
    """`from` never goes backwards along the sequence; `to` is the `from` of the next version."""
    over = over_record(shape, "__gone")
    # Both ends in one pass over the window: a `lead` of `__from` would need a second one.
    here, next_too = (
        over_record(shape, "__gone", frame=f"ROWS BETWEEN UNBOUNDED PRECEDING AND {end}")
        for end in ("CURRENT ROW", "1 FOLLOWING")
    )
    is_last = f"lead(__seq) {over} IS NULL"
    live_before = "coalesce(NOT __del_before, false)"
    # Without history the version before may not be the one that was before it when it was folded.
    is_told = (
        "__own AND __nth = 1" if shape.history else f"__own AND coalesce(lag(__own) {over}, true)"
    )
    loaded = sql.IS_LOADED if shape.looks else "__op = 'L'"
    operation = (
        f"CASE WHEN __del THEN __op WHEN {is_told} THEN __op "
        f"WHEN {loaded} AND NOT {live_before} THEN 'L' "
        f"WHEN __op IN ('i', 'u') THEN IF({live_before}, 'u', 'i') "
        f"WHEN {live_before} THEN 'U' ELSE 'I' END"
    )
    start = _start(shape)
    return (
        f"SELECT *, max({start}) {here} AS __from, "
        f"IF({is_last}, CAST(NULL AS TIMESTAMP), max({start}) {next_too}) AS __to, "
        f"{is_last} AS __last, {operation} AS __new_op FROM {source}"
    )


def _start(shape: Shape) -> str:
    """The time from which a version is valid by itself.

    The oldest loaded version may have been raised by one that is not loaded. Without history the
    versions between are not stored, so that each stored `from` stands for all that came before it.
    """
    known = "__own AND __nth = 1" if shape.history else "__own"
    return f"IF({known}, __stored.`from`, __ts)"


def over_record(shape: Shape, *extra: str, order: str = "__seq", frame: str = "") -> str:
    """A window over the events of one record, those with the same `extra`."""
    partition = ", ".join([shape.key_list(), *extra])
    ordered = f"ORDER BY {order}" if order else ""
    return f"OVER (PARTITION BY {partition} {ordered} {frame})"


def _replaced(shape: Shape, replacement: dict[str, str]) -> str:
    """Data columns as a select list, some of them replaced by expressions."""
    return ", ".join(
        f"{replacement[name]} AS {quote(name)}" if name in replacement else quote(name)
        for name in shape.data
    )


def _struct(shape: Shape) -> str:
    return f"named_struct({', '.join(f'{literal(name)}, {quote(name)}' for name in shape.data)})"


#: Versions that stay for their own sake where no history is kept.
_BASE = f"__part = '{Partition.CURRENT}' OR __del"


def placed(shape: Shape) -> str:
    """CTE over `folded`: adds the columns PLACED that say what becomes of a version."""
    current = "__last AND NOT __gone" + ("" if shape.soft_delete else " AND NOT __del")
    current += f" AND NOT ({shape.is_record()})" if shape.replaces else ""
    same = [
        "__own",
        "__stored.part = __part",
        "__stored.`from` <=> __from",
        f"__stored.`to` <=> {end(shape)}",
        "__stored.op <=> __new_op",
    ]
    if shape.fills_deletes:
        same += [
            f"{comparable(quote(name), shape.columns[name])} <=> "
            f"{comparable(f'__orig.{quote(name)}', shape.columns[name])}"
            for name in shape.values
        ]
    inner = (
        f"SELECT *, IF({current}, '{Partition.CURRENT}', '{Partition.PRIOR}') AS __part, "
        "__from > __ts AS __raised FROM folded"
    )
    if _keeps_predecessors(shape):
        over = f"OVER ({_backwards(shape)} ROWS UNBOUNDED PRECEDING)"
        inner = f"SELECT *, count_if({_BASE}) {over} AS __base FROM ({inner})"
    judged = (
        f"SELECT *, NOT __gone AND ({_kept(shape)}){_young(shape)} AS __kept, "
        f"({joined(same, 'AND')}) AS __same "
        f"FROM ({inner})"
    )
    return (
        "SELECT *, __kept AND NOT __same AS __write, "
        "__stored IS NOT NULL AND NOT (__kept AND __same) AS __drop "
        f"FROM ({judged})"
    )


def _kept(shape: Shape) -> str:
    """Without history only tombstones remain, and the versions whose values others show."""
    if shape.history:
        return "true"
    if not _keeps_predecessors(shape):
        # What a truncate deleted needs no tombstone, the truncate itself is never forgotten. But
        # a fold of kept events would know of the time before which the record cannot begin again.
        return _BASE if shape.keeps_events else f"({_BASE}) AND NOT (__del AND __trunc)"
    # All versions between this one and the next that stays must need the one before them.
    over = f"OVER ({_backwards(shape, '__base')} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    return f"{_BASE} OR (__base > 0 AND count_if(NOT ({_shows_older(shape)})) {over} = 0)"


def _young(shape: Shape) -> str:
    """A version that is so old that others of its age have left does not come in."""
    expired = shape.is_expired()
    return "" if expired is None else f" AND NOT {expired}"


def _shows_older(shape: Shape) -> str:
    """Whether a version shows values of the one before it."""
    return joined(["__del", *(is_unsent(shape, name) for name in shape.partial)], "OR")


def _keeps_predecessors(shape: Shape) -> bool:
    return not shape.history and shape.fills_deletes


def _backwards(shape: Shape, *extra: str) -> str:
    keys = ", ".join([shape.key_list(), "__gone", *extra])
    return f"PARTITION BY {keys} ORDER BY __seq DESC"


def end(shape: Shape, prefix: str = "") -> str:
    """End of a version, which is not known where the versions between are not stored."""
    return f"{prefix}__to" if shape.history else "CAST(NULL AS TIMESTAMP)"


def table_rows(shape: Shape, engine: str) -> str:
    """Select list that makes rows of the internal table, in the order of its columns.

    `engine` is the SQL of the engine's time.
    """
    current = f"__part = '{Partition.CURRENT}'"
    moved = f"__own AND __stored.part = '{Partition.CURRENT}'"
    inserted = f"coalesce(__ins, IF(__new_op = 'L', __from, {engine}))"
    row = {
        h.PARTITION: "__part",
        h.KEY_HASH: key_hash(shape),
        h.CHANGE_IDENTIFIER: "__ci",
        h.SEQUENCE_TAIL: "__tail",
        h.SOURCE_POSITION: "__position",
        h.OPERATION: "__new_op",
        h.TIMESTAMP: "__ts",
        h.FROM_TIMESTAMP: "__from",
        h.TO_TIMESTAMP: f"IF({current}, NULL, {end(shape)})",
        h.INSERTED_TIMESTAMP: f"IF({current}, {inserted}, NULL)",
        h.MODIFIED_TIMESTAMP: f"IF({current}, IF(__same, __stored.mod, {engine}), NULL)",
        h.WAS_CURRENT_FROM: f"IF(__own, coalesce(__stored.wcf, __stored.mod, {engine}), {engine})",
        h.WAS_CURRENT_TO: f"IF({current}, NULL, "
        f"IF(__own AND NOT ({moved}), coalesce(__stored.wct, {engine}), {engine}))",
        h.UNSENT: f"to_json({sql.as_stored(shape)})",
        h.OLD_KEY: "__former",
    }
    return selected(table_row(shape, row))
