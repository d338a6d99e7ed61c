"""What tells one definition of a view from another: its text and the types of its columns."""

from __future__ import annotations

import hashlib

from polynya.lake.fold.shape import Shape

#: Property of a view that holds its definition.
DEFINITION = "polynya.definition"


def definition_of(shape: Shape, sql: str, stored: object = None) -> str:
    """The definition of a view with this text.

    `stored` tells the columns that the table has by now, where the shape does not know them.
    """
    # A view keeps the types that its columns had when it was made.
    types: object = [shape.type_of(name) for name in shape.data]
    if stored is not None:
        types = (types, stored)
    return hashlib.sha256(f"{types}\n{sql}".encode()).hexdigest()[:32]
