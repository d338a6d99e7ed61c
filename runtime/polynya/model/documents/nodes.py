"""A parsed YAML or JSON document in which every value knows its line and column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Scalar: TypeAlias = str | int | float | bool | None
Plain: TypeAlias = Scalar | list["Plain"] | dict[str, "Plain"]
Path: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A 1-based line and column in a file."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """One value. `size` counts a shared sub-tree as often as it shows."""

    value: Scalar
    place: Place
    size: int = 1


@dataclass(frozen=True, slots=True)
class ListNode:
    """A sequence."""

    items: tuple[Node, ...]
    place: Place
    size: int


@dataclass(frozen=True, slots=True)
class MapNode:
    """A mapping with unique text keys; each entry also has the place of its key."""

    entries: dict[str, tuple[Place, Node]]
    place: Place
    size: int


Node: TypeAlias = ScalarNode | ListNode | MapNode


def place_of(root: Node, path: Sequence[str | int]) -> Place:
    """Return the place of a path: of the key in a mapping, of the item in a list.

    Follows the path as far as the document goes; parts that are no keys (pydantic's union tags)
    are skipped.
    """
    node, place = root, root.place
    for part in path:
        if isinstance(node, MapNode) and part in node.entries:
            place, node = node.entries[str(part)]
        elif isinstance(node, ListNode) and isinstance(part, int) and part < len(node.items):
            node = node.items[part]
            place = node.place
    return place


def dotted(path: Sequence[str | int]) -> str:
    """Return a path as people write it: `datasets[0].keys`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text
