"""In which columns a stored version is not the one that its events make, as SQL.

`d` is the derived version, `t` the stored one (see `apply/from_events.py`). Without history, some
of what is stored depends on what was stored when an event came, so that it cannot be compared.
"""

from __future__ import annotations

from polynya.lake.fold import versions
from polynya.lake.fold.shape import Shape, comparable
from polynya.lake.fold.sql import is_delete
from polynya.model.contract import headers as h
from polynya.model.contract.identifiers import literal, quote


def wrong_columns(shape: Shape) -> str:
    """Array of the names of the columns in which the stored version is not the derived one.

    Empty where there is only one of the two.
    """
    pairs = {
        h.PARTITION: ("d.__part", "t.__stored.part"),
        h.OPERATION: (_told("d.__new_op", shape), _told("t.__stored.op", shape)),
        h.FROM_TIMESTAMP: ("d.__from", "t.__stored.`from`"),
        h.TO_TIMESTAMP: (versions.end(shape, "d."), "t.__stored.`to`"),
    }
    same = {name: f"{one} <=> {other}" for name, (one, other) in pairs.items()}
    nothing = _shows_nothing(shape)
    for name in shape.values:
        one, other = (comparable(f"{side}.{quote(name)}", shape.columns[name]) for side in "dt")
        same[name] = f"({nothing}) OR {one} <=> {other}"
    named = ", ".join(f"IF({equal}, NULL, {literal(name)})" for name, equal in same.items())
    both = "d.__seq IS NOT NULL AND t.__seq IS NOT NULL"
    return f"IF({both}, filter(array({named}), name -> name IS NOT NULL), array())"


def _shows_nothing(shape: Shape) -> str:
    """Whether nothing reads the values of a version: those of a delete that no view shows.

    What it shows of the version before depends on whether that was still stored (see
    `differences`).
    """
    hidden = not (shape.history or shape.soft_delete or shape.links)
    if shape.expired is not None and shape.partial:
        # What a version inherits may have left before its event came.
        return "true"
    return is_delete("d.__new_op") if hidden or shape.expired is not None else "false"


def _told(operation: str, shape: Shape) -> str:
    """What can be compared of an operation (see `differences`)."""
    whole = shape.history and shape.expired is None
    return operation if whole else f"({is_delete(operation)})"
