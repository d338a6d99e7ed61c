"""A flow drawn as text and as SVG: its tables and steps, what each reads, and its columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, Final
from xml.sax.saxutils import escape, quoteattr

from polynya.derived.flow import CompiledFlow

#: Columns that a box lists; the picture of a wide table stays readable.
_LISTED: Final = 8
_WIDTH: Final = 100
_TYPE_UNKNOWN: Final = "?"
_LONGEST_NAME: Final = 40
# Pixels.
_LETTER, _LINE, _PADDING, _GAP, _BETWEEN, _MARGIN = 7, 18, 10, 60, 24, 20


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """A box: a table or a step, what it reads, and its columns with a word about each."""

    name: str
    kind: str
    reads: tuple[str, ...]
    columns: Mapping[str, str | None]


def _nodes(flow: CompiledFlow) -> list[DrawnNode]:
    """The tables, then the steps in their order: each after all that it reads."""
    tables = [DrawnNode(one.name, "table", (), dict(one.columns)) for one in flow.inputs]
    steps = [DrawnNode(step.name, step.processor, step.reads, step.columns) for step in flow.steps]
    return [*tables, *steps]


def flow_text(flow: CompiledFlow) -> str:
    """The flow as lines of text: each table and step, `←` what it reads, and its columns below."""
    nodes = _nodes(flow)
    names = max(len(printable(node.name)) for node in nodes)
    kinds = max(len(node.kind) for node in nodes)
    lines = []
    for node in nodes:
        reads = f"  ← {', '.join(map(printable, node.reads))}" if node.reads else ""
        lines.append(f"{printable(node.name):{names}}  {node.kind:{kinds}}{reads}".rstrip())
        listed = ", ".join(f"{printable(name)} {kind}" for name, kind in _typed(node.columns))
        lines += [
            f"    {line}"
            for line in wrap(listed, _WIDTH - 4, break_long_words=False, break_on_hyphens=False)
        ]
    return "\n".join(lines)


def flow_facts(flow: CompiledFlow) -> dict[str, Any]:
    """The flow as JSON-ready values: its SQL, tables and steps with columns, types and keys."""
    return {
        "sql": flow.sql,
        "inputs": [
            {"name": one.name, "columns": dict(one.columns), "keys": list(one.keys)}
            for one in flow.inputs
        ],
        "steps": [
            {
                "name": step.name,
                "processor": step.processor,
                "reads": list(step.reads),
                "columns": dict(step.columns),
                "keys": [list(key) for key in step.keys],
            }
            for step in flow.steps
        ],
    }


def flow_svg(flow: CompiledFlow, title: str) -> str:
    """The flow as one SVG file, from left to right; it holds no script and refers to nothing."""
    return drawn_svg(_nodes(flow), title)


def drawn_svg(nodes: Sequence[DrawnNode], title: str) -> str:
    """Boxes as one SVG file, from left to right; it holds no script and refers to nothing.

    Each node comes after all that it reads; there is at least one.
    """
    boxes = _boxes(nodes)
    width = max(box.x + box.width for box in boxes.values()) + _MARGIN
    height = max(box.y + box.height for box in boxes.values()) + _MARGIN
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label={quoteattr(printable(title))} '
        'font-family="monospace" font-size="12">'
    )
    lines = [
        head,
        f"<title>{escape(printable(title))}</title>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for node in nodes:
        lines += [_arrow(boxes[name], boxes[node.name]) for name in dict.fromkeys(node.reads)]
    for node in nodes:
        lines += _drawn(node, boxes[node.name])
    return "\n".join([*lines, "</svg>", ""])


@dataclass(frozen=True, slots=True)
class _Box:
    x: int
    y: int
    width: int
    height: int


def _boxes(nodes: Iterable[DrawnNode]) -> dict[str, _Box]:
    """Where each box is: one layer after all that it reads, below the others of its layer."""
    layers: dict[str, int] = {}
    by_layer: dict[int, list[DrawnNode]] = {}
    for node in nodes:
        layers[node.name] = 1 + max((layers[name] for name in node.reads), default=-1)
        by_layer.setdefault(layers[node.name], []).append(node)
    boxes: dict[str, _Box] = {}
    x = _MARGIN
    for layer in sorted(by_layer):
        texts = {node.name: _texts(node) for node in by_layer[layer]}
        longest = max(len(line) for lines in texts.values() for line in lines)
        width, y = longest * _LETTER + 2 * _PADDING, _MARGIN
        for name, lines in texts.items():
            height = len(lines) * _LINE + 2 * _PADDING
            boxes[name] = _Box(x, y, width, height)
            y += height + _BETWEEN
        x += width + _GAP
    return boxes


def _texts(node: DrawnNode) -> list[str]:
    """The lines in a box."""
    typed = list(_typed(node.columns))
    lines = [f"{_cut(name)} {_cut(kind)}" for name, kind in typed[:_LISTED]]
    more = [f"… {len(typed) - _LISTED} more"] if len(typed) > _LISTED else []
    return [_cut(node.name), node.kind, *lines, *more]


def _drawn(node: DrawnNode, box: _Box) -> list[str]:
    color = "#eef3f8" if node.kind == "table" else "#ffffff"
    frame = (
        f'<rect x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" rx="4" '
        f'fill="{color}" stroke="#44546a"/>'
    )
    lines = [frame]
    for number, text in enumerate(_texts(node)):
        y = box.y + _PADDING + (number + 1) * _LINE - 5
        style = ' font-weight="bold"' if number == 0 else ' fill="#44546a"' if number == 1 else ""
        lines.append(f'<text x="{box.x + _PADDING}" y="{y}"{style}>{escape(text)}</text>')
    return lines


def _arrow(one: _Box, other: _Box) -> str:
    """A line from the right edge of a box to the left edge of one that reads it."""
    x, y = one.x + one.width, one.y + one.height // 2
    to_x, to_y = other.x, other.y + other.height // 2
    bend = _GAP // 2
    return (
        f'<path d="M {x} {y} C {x + bend} {y}, {to_x - bend} {to_y}, {to_x} {to_y} '
        f'm -6 -4 l 6 4 l -6 4" fill="none" stroke="#44546a"/>'
    )


def _typed(columns: Mapping[str, str | None]) -> Iterable[tuple[str, str]]:
    return ((name, kind or _TYPE_UNKNOWN) for name, kind in columns.items())


def printable(text: str) -> str:
    """A name from elsewhere without what a terminal or a file would take for more than letters."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _cut(text: str) -> str:
    safe = printable(text)
    return safe if len(safe) <= _LONGEST_NAME else f"{safe[:_LONGEST_NAME]}…"
