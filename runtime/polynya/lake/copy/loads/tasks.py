"""What one task of a load does: it reads its splits, and writes what it can write by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from polynya.formats.loads import Report, Split, SplitReader
from polynya.lake.copy.loads.direct import Direct, DirectWriter, Written
from polynya.lake.spark.tasks.python import Said

#: Jobs of other datasets wait for a core as long as a task takes: two seconds or so. Each task
#: makes data files of its own, which should not be too small either.
_LEAST_BYTES = 16 * 1024 * 1024
_MOST_BYTES = 64 * 1024 * 1024
#: Tasks for each core of a load that is not small.
_EACH_CORE = 4


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
    """Splits that one task reads after another: neighbours, about as many bytes each.

    As many tasks for each core, so that all cores are done at about the same time.
    """
    of_core = sum(split.size for split in splits) // max(cores, 1)
    count = max(min(of_core // _LEAST_BYTES, _EACH_CORE), -(-of_core // _MOST_BYTES), 1)
    each = max(of_core // count, 1)
    tasks: list[list[Split]] = [[]]
    size = 0
    for split in splits:
        if tasks[-1] and size + split.size // 2 >= each:
            tasks.append([])
            size = 0
        tasks[-1].append(split)
        size += split.size
    return tasks
