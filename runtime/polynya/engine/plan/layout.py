"""What a changed layout does to a table: files that are written from then on, never a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from polynya.engine.plan.change import Change
from polynya.lake.table.copy_state import CopyState
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.layout.terms import PartitionTerm, SortTerm
from polynya.model.config.recorded import LAYOUT, recorded
from polynya.model.datatypes import parse_type

_LATER: Final = "files that are there keep theirs until maintenance writes them again"
_MEANS: Final = {
    "partition_by": f"files of Current and Prior that are written from now on are parted so; "
    f"{_LATER}, and no query gives another result",
    "sort_by": f"full loads, and files that maintenance writes again, are sorted so; {_LATER}",
    "target_file_size": f"files that are written from now on get about this size; {_LATER}",
}


def layout_changes(dataset: ResolvedDataset, copy: CopyState) -> Iterator[Change]:
    """The changes that the settings of the layout bring."""
    after = recorded(dataset, {}, has_rows=False)
    for name in LAYOUT:
        before, now = copy.settings.get(name) or None, after[name] or None
        if before == now:
            continue
        what = f"{name}: {_shown(before)} → {_shown(now)}"
        why = _refusal(dataset, copy, name)
        if why is None:
            yield Change("layout", what, _MEANS[name], "apply")
        else:
            means = f"refused (POLYNYA-CFG-042): {why}; name another column or transform"
            yield Change("layout", what, means, "decide")


def _refusal(dataset: ResolvedDataset, copy: CopyState, name: str) -> str | None:
    """Why a column of the table cannot be used so."""
    terms: dict[str, list[tuple[PartitionTerm | SortTerm, str]]] = {
        "partition_by": [(one, one.column) for one in dataset.layout.partition_by],
        "sort_by": [(one, column) for one in dataset.layout.sort_by for column in one.columns],
    }
    for term, column in terms.get(name, ()):
        known = copy.columns.schema.get(column)
        if known is not None and known != "void" and (why := term.refusal(parse_type(known))):
            return f"`{column}`: {why}"
    return None


def _shown(value: object) -> str:
    if value is None:
        return "not set"
    return f"[{', '.join(value)}]" if isinstance(value, list) else f"{value:,} bytes"
