"""What one task of a load does: it reads its splits, and writes what it can write by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from polynya.formats.loads import Report, Split, SplitReader
from polynya.lake.copy.direct import Direct, DirectWriter, Written
from polynya.lake.spark.tasks import Said

#: The steps of other datasets wait for a core as long as a task takes: ten seconds or so.
_TASK_BYTES = 128 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class TaskWork:
    """The work of all tasks; it is sent to each.

    Attributes:
        reader: reads splits.
        tasks: the splits of each task.
        rejected: rows of files that cannot be read.
        direct: how tasks write rows, None when they write none.
        reports: of splits, by their number.
        written: files, by the number of the task.
    """

    reader: SplitReader
    tasks: Sequence[Sequence[Split]]
    rejected: pa.RecordBatch
    direct: Direct | None
    reports: Said[Report]
    written: Said[list[Written]]

    def rows(self, number: int) -> Iterator[pa.RecordBatch]:
        """The rows of a task that it does not write."""
        if number == 0 and self.rejected.num_rows:
            yield self.rejected
        writer = None if self.direct is None else DirectWriter(self.direct)
        for split in self.tasks[number]:
            for batch in self.reader.read(split, self.reports.say):
                left = batch if writer is None else writer.take(batch)
                if left.num_rows:
                    yield left
        if writer is not None:
            self.written.say(number, writer.close())


def tasks_of(splits: Sequence[Split], cores: int) -> list[list[Split]]:
    """Splits that one task reads after another: neighbours, about as many bytes each."""
    total = sum(split.size for split in splits)
    each = max(min(total // max(cores, 1), _TASK_BYTES), 1)
    tasks: list[list[Split]] = [[]]
    size = 0
    for split in splits:
        if tasks[-1] and size + split.size // 2 >= each:
            tasks.append([])
            size = 0
        tasks[-1].append(split)
        size += split.size
    return tasks
