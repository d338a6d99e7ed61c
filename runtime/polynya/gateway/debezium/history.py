"""The history of schemas that binlog connectors need to read their log, kept beside the batches.

It is a file of the engine that only grows. What has grown is put before the batch that came after
it: a history ahead of the data does no harm, one behind would make the log unreadable.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow as pa

from polynya.gateway.landing.log import HISTORY, CaptureLog
from polynya.gateway.landing.statements import as_read
from polynya.model.errors import OperationError

_DIGITS: Final = 20


class KeptHistory:
    """The history of one run of an engine, and what of it is kept."""

    def __init__(self, file: Path, log: CaptureLog) -> None:
        self._file, self._log = file, log
        self._size = 0

    def restore(self, number: int) -> bool:
        """Bring back the history of a number before the engine starts; whether there is one.

        Raises:
            OperationError: POLYNYA-GTW-009, it is not there.
        """
        if not number:
            return False
        path = self._path(number)
        try:
            packed = self._log.store.get(path)
        except FileNotFoundError as error:
            raise OperationError(
                "POLYNYA-GTW-009",
                "the history of schemas of the capture is not there",
                where=path,
                state="nothing was landed since the newest batch; the database keeps its changes",
                fix="put the object back; if it is lost for ever, load all tables anew: "
                "`polynya landing reload`",
            ) from error
        with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as content:
            text = content.read()
        text = as_read(text)
        self._file.write_bytes(text)
        self._size = len(text)
        return True

    def kept(self, number: int) -> int:
        """Put what has grown since a number; the number that has all of it."""
        # Asked before each batch: a history of many tables is large.
        if not self._file.is_file() or self._file.stat().st_size <= self._size:
            return number
        text = self._file.read_bytes()
        kept = put_history(self._log, number + 1, text)
        self._size = len(text)
        return kept

    def _path(self, number: int) -> str:
        return _path(self._log, number)


def put_history(log: CaptureLog, number: int, text: bytes) -> int:
    """Keep a history, before the batch that names it; its number, `number` or the next free one.

    One that no batch names may be there, after a kill or of a capture that loses the next number.
    None is ever replaced: a batch may come to name it.
    """
    data: bytes = pa.compress(text, codec="zstd", asbytes=True)
    while not log.store.put_if_absent(_path(log, number), data):
        number += 1
    return number


def _path(log: CaptureLog, number: int) -> str:
    return f"{log.folder}/{HISTORY}/{number:0{_DIGITS}d}.jsonl.zst"
