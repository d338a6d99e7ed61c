"""How good the shape of a table is: a score, and the figures that make it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from polynya.lake.maintenance.look.facts import TableFacts
from polynya.lake.maintenance.rewrite.plan import OPEN_BYTES, Rule

#: What a query costs besides its data, in bytes that it would read in the same time.
QUERY_BYTES: Final = 64 * 2**20
#: Manifests of a table in good shape.
_FEW_MANIFESTS: Final = 8
_MANIFEST_BYTES: Final = 64 * 2**10


@dataclass(frozen=True, slots=True)
class Health:
    """The shape of a table. Sizes in bytes.

    Attributes:
        score: what a query of all of the table would cost in the best shape, in percent of what it
            costs: 100 is the best.
        files: data files, of an average size of `average_bytes`.
        delete_files: files of deletes, which delete `deleted_share` of the rows, 0 to 1.
        small_files, rows_not_optimised: small data files; rows in them, and deleted rows. Few small
            files do not count.
        outdated_bytes: size of the files of another layout than the table has now.
        metadata_bytes: size of the newest metadata file.
        snapshots: all that there are, since `oldest`.
        removed_orphan_bytes: size of the old files without a snapshot that the last look for them
            found and removed, at `orphans_at`; None before it. What came since nobody knows before
            the next look, nor is what is younger than `older_than` told from a commit under way.
    """

    score: int
    files: int
    average_bytes: int
    delete_files: int
    deleted_share: float
    manifests: int
    metadata_bytes: int
    snapshots: int
    oldest: datetime | None
    small_files: int
    rows_not_optimised: int
    outdated_bytes: int
    removed_orphan_bytes: int | None
    orphans_at: datetime | None


def health_of(facts: TableFacts, rule: Rule) -> Health:
    """The health of a table, from its facts."""
    orphans = facts.record.last.get("remove_orphan_files")
    share = facts.deleted_rows / max(1, facts.rows)
    return Health(
        score=_score(facts, rule, min(share, 1.0)),
        files=facts.data_files,
        average_bytes=facts.size_bytes // max(1, facts.data_files),
        delete_files=facts.delete_files,
        deleted_share=round(share, 4),
        manifests=facts.manifests,
        metadata_bytes=facts.metadata_bytes,
        snapshots=facts.snapshots,
        oldest=facts.oldest,
        small_files=facts.small_files,
        rows_not_optimised=facts.rows_not_optimised,
        outdated_bytes=facts.rewritable.outdated_bytes,
        removed_orphan_bytes=None if orphans is None else orphans.freed_bytes,
        orphans_at=None if orphans is None else orphans.at,
    )


def _score(facts: TableFacts, rule: Rule, dead: float) -> int:
    live = facts.size_bytes * (1 - dead)
    best = live + (live // rule.target_bytes + 1) * OPEN_BYTES
    opened = (facts.data_files + facts.delete_files) * OPEN_BYTES
    manifests = max(0, facts.manifests - _FEW_MANIFESTS) * _MANIFEST_BYTES
    found = facts.size_bytes + opened + manifests + facts.metadata_bytes
    return round(100 * min(1.0, (QUERY_BYTES + best) / (QUERY_BYTES + found)))
