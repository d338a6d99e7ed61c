"""From folded events to rows of the internal table: which go where, are written or removed.

Compares the fold with what is stored, so that a row that did not change is never written.
"""

from __future__ import annotations

from polynya.lake.fold import looks
from polynya.lake.fold.keys import key_hash
from polynya.lake.fold.shape import Shape, comparable
from polynya.lake.fold.sql import joined, selected, table_row
from polynya.lake.fold.unsent import is_unsent
from polynya.model.contract import headers as h
from polynya.model.contract.headers import Partition
from polynya.model.contract.identifiers import quote


def placed(shape: Shape) -> str:
    """CTE over `folded`: adds the columns PLACED that say what becomes of a version."""
    current = "__last AND NOT __gone" + ("" if shape.soft_delete else " AND NOT __del")
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


#: Versions that stay for their own sake where no history is kept.
_BASE = f"__part = '{Partition.CURRENT}' OR __del"


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
        h.UNSENT: f"to_json({looks.as_stored(shape)})",
        h.OLD_KEY: "__former",
    }
    return selected(table_row(shape, row))
