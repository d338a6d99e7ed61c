"""What was committed to a table, from its snapshots: each step with its reason and its rows.

Every step of every process is a commit, so the snapshots are the log of what runs have done. It
goes back as far as maintenance keeps snapshots. Needs no JVM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

_PREFIX: Final = "polynya."
#: What a snapshot counts of its files, as Iceberg's summaries call it.
_FILES: Final = ("added-data-files", "deleted-data-files", "added-files-size", "total-data-files")
#: What it counts of rows that it wrote, took out with their files, or deleted at their places.
_ROWS: Final = ("added-records", "deleted-records", "added-position-deletes")
#: Deletes that name no place, and places that are shown again: others than Polynya commit these.
_ROWS_OF_OTHERS: Final = ("added-equality-deletes", "removed-position-deletes")
#: Steps that change no row of the live views of their table.
_NEUTRAL_STEPS: Final = frozenset(
    {
        "takeover",
        "reload",
        "reload-begin",
        "reload-abandon",
        "rewrite-data-files",
        "rewrite-position-delete-files",
        "rewrite_manifests",
        "expire_changes",
    }
)


@dataclass(frozen=True, slots=True)
class TableCommit:
    """One commit.

    Attributes:
        at: of the commit, by the clock of the process that made it.
        snapshot: its id.
        step: such as `copy`, `apply`, `copy+apply`, `derive` or `takeover`; "" of others' commits.
        reason: why an apply or an action of maintenance was taken.
        rows: such as `in`, `out`, `filtered` and `quarantined` of a copy, or `events`, `current`,
            `prior` and `removed` of an apply, as far as they are not 0.
        files: of the snapshot: `added-data-files`, `deleted-data-files`, `added-files-size` (bytes)
            and `total-data-files`.
        owner: of a takeover: the process from which on all steps are.
        epoch: of a takeover.
    """

    at: datetime
    snapshot: int
    step: str
    reason: str = ""
    rows: Mapping[str, int] = field(default_factory=dict)
    files: Mapping[str, int] = field(default_factory=dict)
    owner: str = ""
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class OwnerSteps:
    """What one process has committed to a table while it owned it.

    `began` and `ended` are the times of its first and last commit that are known. `steps` counts
    commits by step, `rows` adds their rows up.
    """

    owner: str
    epoch: int | None
    began: datetime
    ended: datetime
    steps: Mapping[str, int]
    rows: Mapping[str, int]


def commits(metadata: Mapping[str, Any]) -> list[TableCommit]:
    """The commits whose snapshots are there, oldest first.

    `metadata` is that of the table, as Iceberg's specification writes it in JSON.
    """
    found = []
    for one in metadata.get("snapshots") or ():
        summary: Mapping[str, str] = one.get("summary") or {}
        own = {
            name.removeprefix(_PREFIX): text
            for name, text in summary.items()
            if name.startswith(_PREFIX)
        }
        epoch = own.pop("epoch", "")
        found.append(
            TableCommit(
                datetime.fromtimestamp(one["timestamp-ms"] / 1000, UTC),
                one["snapshot-id"],
                own.pop("step", ""),
                own.pop("reason", "") or own.pop("reload", ""),
                {
                    name.removeprefix("rows-"): int(text)
                    for name, text in own.items()
                    if _is_some(text) and not name.endswith("-files")
                },
                {name: int(summary[name]) for name in _FILES if _is_some(summary.get(name, ""))},
                own.get("owner", ""),
                int(epoch) if epoch.isdecimal() else None,
            )
        )
    return sorted(found, key=lambda one: (one.at, one.snapshot))


def _is_some(text: str) -> bool:
    return text.isdecimal() and len(text) < 19 and int(text) > 0


def steps_by_owner(found: Sequence[TableCommit], owner: str) -> list[OwnerSteps]:
    """What each process has done, oldest first; `owner` is the one that has the table now."""
    parts: list[list[TableCommit]] = []
    for one in found:
        if one.step == "takeover" or not parts:
            parts.append([])
        parts[-1].append(one)
    return [
        _of_owner(part, owner if part is parts[-1] else "")
        for part in parts
        if any(one.step != "takeover" for one in part)
    ]


def _of_owner(part: Sequence[TableCommit], owner: str) -> OwnerSteps:
    steps: dict[str, int] = {}
    rows: dict[str, int] = {}
    for one in part:
        if one.step == "takeover":
            continue
        steps[one.step] = steps.get(one.step, 0) + 1
        for name, count in one.rows.items():
            rows[name] = rows.get(name, 0) + count
    first = part[0]
    return OwnerSteps(first.owner or owner, first.epoch, first.at, part[-1].at, steps, rows)


def in_words(one: TableCommit) -> Iterator[str]:
    """What a commit did, in parts: its rows, and why it was made."""
    yield from (f"{count:,} {name.replace('-', ' ')}" for name, count in one.rows.items())
    if one.reason:
        yield one.reason


def changes_rows(summary: Mapping[str, Any]) -> bool:
    """Whether a snapshot of a table, by its summary, may show other rows than its parent."""
    step = summary.get("polynya.step")
    if summary.get("operation") == "replace" or step in _NEUTRAL_STEPS:
        return False
    # The apply that ends a reload takes in its rows.
    return step != "apply" or "polynya.reload" in summary


def snapshots_between(
    metadata: Mapping[str, Any],
    before: int,
    now: int,
    changes: Callable[[Mapping[str, Any]], bool] = changes_rows,
) -> list[Mapping[str, Any]] | None:
    """The snapshots after `before` up to `now` that may show other rows than their parents.

    `metadata` is that of the table, as Iceberg's specification writes it in JSON; `before` is the
    older one; `changes` tells by its summary whether a snapshot counts. None where the line between
    them is broken: a snapshot has expired, or the table was rolled back.
    """
    snapshots = {one["snapshot-id"]: one for one in metadata.get("snapshots", ())}
    found, at = [], now
    while at != before:
        snapshot = snapshots.get(at)
        if snapshot is None:
            return None
        if changes(snapshot.get("summary", {})):
            found.append(snapshot)
        at = snapshot.get("parent-snapshot-id")
    return found[::-1]


def snapshots_since(
    metadata: Mapping[str, Any],
    before: int,
    now: int,
    changes: Callable[[Mapping[str, Any]], bool] = changes_rows,
) -> list[Mapping[str, Any]] | str:
    """The same, or the reason, as a sentence, where the line between them is broken."""
    if before not in {one["snapshot-id"] for one in metadata.get("snapshots", ())}:
        return "the snapshot that it has read has expired"
    found = snapshots_between(metadata, before, now, changes)
    return "a snapshot since the one that it has read has expired" if found is None else found


def most_changed_rows(snapshots: Iterable[Mapping[str, Any]], *, of_others: bool = False) -> int:
    """How many rows some snapshots have changed at most, by their summaries: no file is read.

    They are the rows that the snapshots wrote or took out. One that was replaced counts twice, and
    so does one that two snapshots changed.
    """
    names = (*_ROWS, *_ROWS_OF_OTHERS) if of_others else _ROWS
    summaries = (one.get("summary", {}) for one in snapshots)
    return sum(int(one[name]) for one in summaries for name in names if _is_some(one.get(name, "")))
