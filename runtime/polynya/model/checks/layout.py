"""Terms of a layout that contradict each other, or that the declared columns do not allow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.layout.terms import TIMES, PartitionTerm, SortTerm, age_refusal
from polynya.model.contract.identifiers import shown
from polynya.model.documents.problems import Problem
from polynya.model.formats.registry import rules_of

_TOGETHER, _TYPES = "POLYNYA-CFG-041", "POLYNYA-CFG-042"


def layout_problems(final: ResolvedDataset, path: tuple[str | int, ...]) -> Iterator[Problem]:
    """Yield what is wrong with how the files of a dataset are to be laid out."""
    layout = final.layout
    yield from _retained(final, (*path, "retention", "column"))
    yield from _partitioned(layout.partition_by, (*path, "partition_by"))
    yield from _sorted(layout.sort_by, (*path, "sort_by"))
    for setting, terms in _terms(final).items():
        for index, columns in terms:
            for column in columns:
                yield from _column(final, column, (*path, setting, index))
    for index, one in enumerate(layout.partition_by):
        kind = final.events.columns.get(one.column)
        if kind is not None and (why := one.refusal(kind)):
            yield Problem((*path, "partition_by", index), _TYPES, why)
    for index, by in enumerate(layout.sort_by):
        for column in by.columns:
            kind = final.events.columns.get(column)
            if kind is not None and (why := by.refusal(kind)):
                yield Problem((*path, "sort_by", index), _TYPES, why)


def _retained(final: ResolvedDataset, path: tuple[str | int, ...]) -> Iterator[Problem]:
    retention = final.kept.retention
    if retention is None:
        return
    yield from _column(final, retention.column, path)
    kind = final.events.columns.get(retention.column)
    if kind is not None and (why := age_refusal(kind)):
        yield Problem(path, "POLYNYA-CFG-043", why)


def _terms(final: ResolvedDataset) -> dict[str, list[tuple[int, tuple[str, ...]]]]:
    layout = final.layout
    return {
        "partition_by": [(n, (one.column,)) for n, one in enumerate(layout.partition_by)],
        "sort_by": [(n, one.columns) for n, one in enumerate(layout.sort_by)],
    }


def _partitioned(terms: Sequence[PartitionTerm], path: tuple[str | int, ...]) -> Iterator[Problem]:
    yield from _twice([str(one) for one in terms], path)
    by_time = Counter(one.column for one in terms if one.transform in TIMES)
    for column, count in by_time.items():
        found = {one.transform for one in terms if one.column == column} & {*TIMES}
        if count > 1 and len(found) > 1:
            finest = max(found, key=TIMES.index)
            yield Problem(
                path,
                _TOGETHER,
                f"{shown(column)} is parted by time more than once",
                f"keep `{finest}`: a query that asks for a longer time reads its files too",
            )


def _sorted(terms: Sequence[SortTerm], path: tuple[str | int, ...]) -> Iterator[Problem]:
    if len(terms) > 1 and any(one.order == "zorder" for one in terms):
        yield Problem(path, _TOGETHER, "`zorder` stands alone", "name all its columns inside of it")
    yield from _twice([column for one in terms for column in one.columns], path)


def _twice(names: Sequence[str], path: tuple[str | int, ...]) -> Iterator[Problem]:
    for name, count in Counter(names).items():
        if count > 1:
            yield Problem(path, _TOGETHER, f"{shown(name)} is named twice", "name it once")


def _column(final: ResolvedDataset, column: str, path: tuple[str | int, ...]) -> Iterator[Problem]:
    if column in final.events.except_columns:
        yield Problem(
            path,
            _TOGETHER,
            f"column {shown(column)} is excepted, so later rows hold NULL in it",
            "take it out of `except_columns`, or name another column",
        )
    known = final.events.columns
    named = rules_of(final.landing.format).has_header_lines and not (
        final.landing.delivery.has_header
    )
    if named and known and column not in known:
        near = get_close_matches(column, sorted(known), n=1)
        meant = f"did you mean {shown(near[0])}?" if near else "name one of `columns`"
        yield Problem(path, _TOGETHER, f"there is no column {shown(column)}", meant)
