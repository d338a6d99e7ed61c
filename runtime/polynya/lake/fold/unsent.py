"""Which columns an event did not send: the contents of `hdr__unsent`, and how they are read.

The list may be inverted: with `ALL_BUT` in it, it names the columns that were sent, so that it also
holds of columns that only later events know.

A column is written by its name. Renaming changes no stored row, so a renamed column is still found
by the names it had; and a new column with a name that stands for another one is written as a text
of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from polynya.lake.fold.shape import Shape
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.contract.headers import ALL_BUT
from polynya.model.contract.identifiers import literal, quote

#: column → texts that stand for it, the last one for new events; just its name when it is missing
Texts = Mapping[str, Iterable[str]]


def is_unsent(shape: Shape, column: str, alias: str = "") -> str:
    """Condition that the event at `alias` did not send a column."""
    unsent = f"{alias}.__unsent" if alias else "__unsent"
    found = [
        f"array_contains({unsent}, {literal(text)})"
        for text in shape.unsent_texts.get(column, (column,))
    ]
    return f"coalesce(({' OR '.join(found)}) <> array_contains({unsent}, '{ALL_BUT}'), false)"


def as_written(shape: Shape, names: str) -> str:
    """An array of column names as the array that is stored."""
    pairs = [
        f"{literal(column)}, {literal(texts[-1])}"
        for column, texts in shape.unsent_texts.items()
        if texts[-1] != column
    ]
    if not pairs:
        return names
    return f"transform({names}, n -> coalesce(element_at(map({', '.join(pairs)}), n), n))"


def ignored_nulls(dataset: ResolvedDataset) -> tuple[str, ...]:
    """Columns that an update may leave out as NULL, as a list of columns that were not sent."""
    ignored = dataset.events.ignore_null_updates
    if isinstance(ignored, bool):
        return (ALL_BUT,) if ignored else ()
    return ignored


def left_out(dataset: ResolvedDataset, shape: Shape, present: set[str]) -> str:
    """SQL of what is stored for a landed event: what was not sent, and ignored NULLs of updates.

    `present` are the columns of the landed relation.
    """
    ignored = ignored_nulls(dataset)
    if not ignored:
        return f"to_json({as_written(shape, '__unsent')})"
    if ALL_BUT in ignored:
        before = f"array('{ALL_BUT}')"
        listed = [
            f"IF({quote(name)} IS NULL, NULL, {literal(name)})"
            for name in shape.values
            if name in present
        ]
    else:
        before = "coalesce(__unsent, CAST(array() AS ARRAY<STRING>))"
        null = {name: f"{quote(name)} IS NULL" for name in present}
        listed = [f"IF({null.get(name, 'true')}, {literal(name)}, NULL)" for name in ignored]
    found = f"array_compact(array({', '.join(['CAST(NULL AS STRING)', *listed])}))"
    unsent = f"IF(__decided = 'U', array_union({before}, {found}), __unsent)"
    return f"nullif(to_json({as_written(shape, unsent)}), '[]')"


def after_renames(texts: Texts, renames: Mapping[str, str]) -> dict[str, list[str]]:
    """The texts after columns were renamed (old name → new name)."""
    moved = {
        renames.get(column, column): list(found)
        for column, found in {**{old: [old] for old in renames}, **texts}.items()
    }
    for new in renames.values():
        moved[new].append(_fresh(new, moved))
    return moved


def after_additions(texts: Texts, columns: Iterable[str]) -> dict[str, list[str]]:
    """The texts after columns were added."""
    grown = {column: list(found) for column, found in texts.items()}
    for column in columns:
        if column not in grown and _is_taken(column, grown):
            grown[column] = [_fresh(column, grown)]
    return grown


def _is_taken(text: str, texts: Texts) -> bool:
    return any(text in found for found in texts.values())


def _fresh(name: str, texts: Texts) -> str:
    """The name, or the name with a number that no text has."""
    text, number = name, 1
    while _is_taken(text, texts):
        number += 1
        # No column name holds a control character.
        text = f"{name}\x1f{number}"
    return text
