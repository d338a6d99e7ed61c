"""`polynya lineage`: where columns come from, and what depends on them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

from cyclopts import Parameter

from polynya.cli.context import Context
from polynya.cli.visible import visible
from polynya.store.clock import SystemClock

if TYPE_CHECKING:
    from polynya.derived.column_graph import ColumnGraph, Node

_Output: TypeAlias = Literal["text", "json", "openlineage", "svg"]
_TEE, _LAST, _BAR, _GAP = "├── ", "└── ", "│   ", "    "
#: What stands in place of a part of the tree that is above.
_ABOVE: Final = "  (above)"


def lineage(
    subject: str | None = None,
    *,
    impact: bool = False,
    output: Annotated[_Output, Parameter(name=("--output", "-o"))] = "text",
    context: Context,
) -> None:
    """Show what columns are made of, from the source to mirrors, or with `--impact` what uses them.

    Reads the settings, and the columns of tables that exist from the catalog. Needs no Java. A
    column that no table has yet is known as far as settings name it; where the lineage of a query
    cannot be told, its columns say so.

    For example: `polynya lineage shop.orders.amount --impact`.

    Args:
        subject: a dataset or a column: `schema.view` or `schema.view.column`. Default: everything.
        impact: show what depends on it, instead of what it depends on.
        output: `text` (default), `json`, `openlineage` for events of OpenLineage, one on a line,
            or `svg` for a picture.
    """
    # Start-up time: PyIceberg and sqlglot.
    from polynya.derived.drawing import drawn_svg
    from polynya.derived.openlineage import job_events
    from polynya.engine.commands.lineage import nodes_of, project_graph
    from polynya.lake.spark.catalog import has_tables, python_catalog

    project = context.load()
    catalog = python_catalog(project.target) if has_tables(project.target) else None
    whole = project_graph(project, catalog)
    starts = nodes_of(whole, subject)
    if subject is None:
        graph = whole
    else:
        graph = whole.downstream(starts) if impact else whole.upstream(starts)
    data: dict[str, Any] = {
        "subject": subject,
        "direction": "downstream" if impact else "upstream",
        "datasets": graph.facts(),
    }
    namespace = f"polynya://{project.project.name}/{project.target.name}"
    at = SystemClock().now()
    match output:
        case "json":
            text = json.dumps(data, indent=2)
        case "openlineage":
            # Whole datasets: a server takes the columns of an event for all that there are.
            events = [
                event
                for event in job_events(whole, namespace, at)
                if any(one["name"] in graph.datasets for one in event["outputs"])
            ]
            text, data = "\n".join(map(json.dumps, events)), {"events": events}
        case "svg":
            boxes = graph.drawn()
            title = subject or project.project.name
            text = drawn_svg(boxes, title).rstrip("\n") if boxes else ""
        case "text":
            text = "\n".join(lineage_lines(graph, starts, impact=impact))
    context.output.result("lineage", data, visible(text))


def lineage_lines(graph: ColumnGraph, starts: Sequence[Node], *, impact: bool) -> Iterator[str]:
    """A tree for each start: below a column what it is made of, or with `impact` what uses it.

    What stands in the tree a second time is not unfolded again.
    """
    # Start-up time: sqlglot.
    from polynya.derived.drawing import printable

    steps: dict[Node, list[tuple[Node, str]]] = {}
    for use in graph.uses():
        one, other = (use.origin, use.made) if impact else (use.made, use.origin)
        if use.kinds or impact:
            words = ", ".join(kind.value.lower().replace("_", " ") for kind in sorted(use.kinds))
            steps.setdefault(one, []).append((other, words))
    notes = _notes(graph)
    seen: set[Node] = set()

    def name(node: Node) -> str:
        dataset, column = node
        text = f"rows of {dataset}" if column is None else f"{dataset}.{column}"
        return printable(text)

    def below(node: Node, indent: str) -> Iterator[str]:
        children = steps.get(node, [])
        for at, (child, words) in enumerate(children):
            last = at + 1 == len(children)
            again = child in seen and bool(steps.get(child))
            note = "" if again else notes.get(child, "")
            line = f"{name(child)}{note}{'  ' + words if words else ''}{_ABOVE if again else ''}"
            yield f"{indent}{_LAST if last else _TEE}{line}"
            if child not in seen:
                seen.add(child)
                yield from below(child, indent + (_GAP if last else _BAR))

    roots = [node for node in starts if node[1] is not None or steps.get(node)]
    if not impact:
        roots += [(one, None) for one in graph.datasets if steps.get((one, None))]
    for node in dict.fromkeys(roots):
        is_leaf = graph.datasets[node[0]].kind == "source" and not steps.get(node)
        if (node in seen and node[1] is not None) or (is_leaf and len(roots) > 1):
            continue
        seen.add(node)
        yield f"{name(node)}{notes.get(node, '')}"
        yield from below(node, "")


def _notes(graph: ColumnGraph) -> dict[Node, str]:
    """What has to be said about columns and rows beside where they come from."""
    # Start-up time: sqlglot.
    from polynya.derived.drawing import printable

    notes: dict[Node, str] = {}
    for dataset in graph.datasets.values():
        for column in dataset.columns:
            said: list[str] = []
            if column.origins.unknown:
                said.append(f"not known: {column.origins.unknown[0]}")
            elif dataset.known != "stored" and dataset.kind != "source":
                said.append("not made yet")
            if column.masked_by is not None:
                said.append(f"masked by {column.masked_by}")
            if said:
                notes[dataset.name, column.name] = f"  ({printable('; '.join(said))})"
        if dataset.rows.unknown:
            notes[dataset.name, None] = f"  (not known: {printable(dataset.rows.unknown[0])})"
    return notes
