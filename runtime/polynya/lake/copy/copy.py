"""Copy: append landed events to Changes, rejected ones to Quarantine, a first load to Current.

One write for all of it, by Spark or in Arrow, and one commit with the source position, so that the
figures come from what was committed and nothing can be counted twice or lost (semantics sections 8,
10, 11).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from polynya.formats.batch import DatasetBatch
from polynya.lake.apply.applier import Applier
from polynya.lake.copy.after import state_after
from polynya.lake.copy.loads.repeated import may_repeat
from polynya.lake.copy.ordinary import Ordinary
from polynya.lake.copy.queried import Queried
from polynya.lake.copy.routes import follows, is_first_load, reason_to_apply_at_once
from polynya.lake.copy.times import Times
from polynya.lake.copy.way import Copying, CopyResult, Way
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.guards import agreed_keys
from polynya.lake.table.replayed import Replayed


def copy_batch(
    target: DatasetTable,
    batch: DatasetBatch,
    applier: Applier,
    *,
    now: datetime,
    live_files: Iterable[str] | None = None,
    replayed: Replayed | None = None,
    ways: Sequence[Way] | None = None,
) -> CopyResult:
    """Commit one landed batch to a table that was entered (`guards.enter`).

    `live_files` are the landed files that still exist; the position forgets all others. `replayed`
    are quarantined records that this batch read again: they leave the quarantine in the same
    commit. `ways` are tried in order, by default the cheapest first. Most batches only append. A
    batch that the live views could not show by themselves (a truncate, say) is applied in the same
    commit. Raises BadRecordError for a bad record of a dataset that does not quarantine them.
    """
    keys = agreed_keys(target, batch)
    target.grow(batch.schema)
    following = state_after(target, batch, keys, now=now, live_files=live_files)
    if replayed is not None:
        following = replayed.discounted(following)
    shape = target.stored_shape(batch.schema, keys, following)
    at_once = reason_to_apply_at_once(target, batch, shape)
    copying = Copying(
        target,
        batch,
        shape,
        following,
        Times(
            now,
            following.position.load_started_at,
            target.state.apply.horizon,
            follows(target, batch, shape),
        ),
        at_once=at_once,
        first_load=at_once is None and is_first_load(target, batch, shape),
        repeats_load=may_repeat(target, batch, shape),
        replayed=replayed,
    )
    found = (way.take(copying) for way in ways or (Ordinary(), Queried(applier)))
    return next(result for result in found if result is not None)
