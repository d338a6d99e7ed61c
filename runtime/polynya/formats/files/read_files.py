"""How far the files of a landing folder were read, by path.

The state of each commit tells it. A folder that nobody empties has thousands of them, of which a
step changes a few: the JSON of those that were read to their end is made once and kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from itertools import islice
from typing import Final

from polynya.formats.batch import FileProgress

#: The JSON of files is kept when there are so many more of them.
_MANY: Final = 256


class ReadFiles(dict[str, FileProgress]):
    """Progress by path. Nobody changes it: `after` makes the next one."""

    __slots__ = ("_count", "_text")

    def __init__(self, files: Mapping[str, FileProgress] | None = None) -> None:
        super().__init__(files or {})
        #: JSON of the first `_count` files, all of them complete, without braces.
        self._text, self._count = "", 0

    @classmethod
    def of(cls, files: Mapping[str, FileProgress]) -> ReadFiles:
        """These files; itself when it is of this kind."""
        return files if isinstance(files, cls) else cls(files)

    def after(self, now: Mapping[str, FileProgress], live: Set[str] | None) -> ReadFiles:
        """These and what was read `now`, without files that are not `live`; None: all are."""
        files = ReadFiles(self)
        is_kept = not any(path in self and self[path].complete for path in now)
        if live is not None and not self.keys() <= live:
            is_kept = False
            files = ReadFiles({path: done for path, done in self.items() if path in live})
        files.update(now)
        if is_kept:
            files._text, files._count = self._text, self._count
        files._keep_text()
        return files

    def to_json(self) -> str:
        """An object; see `written`."""
        rest = _json(dict(islice(self.items(), self._count, None)))
        return "{" + ", ".join(one for one in (self._text, rest) if one) + "}"

    def _keep_text(self) -> None:
        """Keep the JSON of the complete files that follow those of which it is kept."""
        if len(self) - self._count < _MANY:
            return
        more: dict[str, FileProgress] = {}
        for path, done in islice(self.items(), self._count, None):
            if not done.complete:
                break
            more[path] = done
        self._text = ", ".join(one for one in (self._text, _json(more)) if one)
        self._count += len(more)

    def begun(self) -> dict[str, int]:
        """The stamps of the files that were not read to their end."""
        rest = islice(self.items(), self._count, None)
        return {path: one.stamp for path, one in rest if one.stamp and not one.complete}


def written(files: Mapping[str, FileProgress]) -> dict[str, list[int]]:
    """Progress as the JSON has it: [bytes, records, 0 or 1 + twice the stamp of a complete file].

    Earlier versions read the last one as true or false.
    """
    return {
        path: [p.size, p.records, 1 + 2 * p.stamp if p.complete else 0] for path, p in files.items()
    }


def read(files: Mapping[str, Sequence[int]], begun: Mapping[str, int]) -> dict[str, FileProgress]:
    """Progress out of the JSON; `begun` has the stamps of files that are not complete."""
    return {
        path: FileProgress(size, records, bool(complete), complete // 2 or begun.get(path, 0))
        for path, (size, records, complete) in files.items()
    }


def _json(files: Mapping[str, FileProgress]) -> str:
    return json.dumps(written(files), ensure_ascii=False)[1:-1]
