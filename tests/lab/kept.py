"""A dataset that many tests begin with: made once, and taken back to where it was for each.

Iceberg keeps every snapshot, and all that the engine knows of a dataset is in its table: a rollback
costs a twentieth of the runs that made it. It does not undo a change of the table's columns.
"""

from __future__ import annotations

import copy
from pathlib import Path

from tests.lab.lab import Feed


class Kept:
    """A feed as it was when this was made."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._snapshot = feed.table().state.snapshot
        self._landed = _contents(feed.folder)
        self._next_file = copy.copy(feed._files)
        self._now = feed.lab.clock.now()

    def again(self) -> Feed:
        """The feed in a table, a landing folder and at a time as they were."""
        old = self._feed
        lab = copy.copy(old.lab)
        lab.events = []
        lab.clock = type(old.lab.clock)(self._now)
        feed = Feed(lab, old.name, dict(old.settings), dict(old.more))
        feed._files = copy.copy(self._next_file)
        landed = _contents(old.folder)
        for path in landed.keys() - self._landed.keys():
            path.unlink()
        for path, content in self._landed.items():
            # The same file, where no test touched it: the engine sees a file that was replaced.
            if landed.get(path) != content:
                path.write_bytes(content)
        lab.spark.sql(
            f"CALL polynya.system.rollback_to_snapshot('{feed.internal}', {self._snapshot})"
        )
        return feed


def _contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
