"""The way of an ordinary batch, which waits as pending changes: its rows are made in Arrow."""

from __future__ import annotations

from polynya.lake.copy.arrow_rows import arrow_rows, first_rejected
from polynya.lake.copy.way import Copying, CopyResult
from polynya.lake.iceberg.staging import write_rows


class Ordinary:
    """See the module."""

    def take(self, copying: Copying) -> CopyResult | None:
        """See `Way`."""
        if copying.at_once is not None or copying.first_load or copying.repeats_load:
            return None
        target = copying.target
        rows = arrow_rows(copying.batch, target.dataset, copying.shape, copying.times)
        if rows is None:
            return None
        copying.refuse_bad_records(lambda: first_rejected(rows))
        return copying.append(write_rows(target.table, rows))
