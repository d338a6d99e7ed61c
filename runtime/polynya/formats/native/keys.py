"""A proof that the keys of a split are all different, where they are sorted as in most exports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from polynya.formats.loads import KeyRange
from polynya.model.types import BIGINT, INT, STRING, DataType

_KINDS = frozenset({INT, BIGINT, STRING})


@dataclass(slots=True)
class KeyWatch:
    """Watches the keys of a split in the order of reading. NULLs are no keys."""

    low: int | str | None = None
    high: int | str | None = None
    ordered: bool = True

    def see(self, columns: Sequence[pa.Array], kinds: Sequence[DataType]) -> None:
        """Take the keys of some more records."""
        if not self.ordered:
            return
        self.ordered = len(columns) == 1 and kinds[0] in _KINDS
        if not self.ordered:
            return
        keys = columns[0].drop_null()
        if not len(keys):
            return
        first, last = keys[0].as_py(), keys[-1].as_py()
        rises = pc.all(pc.less(keys[:-1], keys[1:]), min_count=0).as_py()
        self.ordered = bool(rises) and (self.high is None or self.high < first)
        self.low, self.high = first if self.low is None else self.low, last

    @property
    def range(self) -> KeyRange | None:
        """The range of keys that are all different, None when they may not be."""
        if not self.ordered or self.low is None or self.high is None:
            return None
        return KeyRange(self.low, self.high)
