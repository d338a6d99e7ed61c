"""Sees when the records of a file are in the newest snapshot of their table.

It looks at what any reader sees: the catalog's file, the metadata that it names, and the files of
the snapshots that are new. A live view shows what its snapshot holds, which is checked now and then
by asking one. To ask views all the time would take the processor from what is measured.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.newcomer.shop.freshness import Landed
from tests.oracle.packs.read_back import metadata_location

LOOK_SECONDS = 0.2
#: As the format says: a manifest of data files; an entry that the snapshot added.
_DATA, _ADDED = 0, 1


class Watcher:
    """Looks at tables until it is stopped. `names` are datasets by their internal table."""

    def __init__(self, folder: Path, names: dict[tuple[str, str], str]) -> None:
        self._folder, self._names = folder, names
        self._at: dict[str, str] = {}
        self._sequence: dict[str, int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watcher")
        self._broken: BaseException | None = None
        #: The moment at which the records of a file were seen first, in monotonic seconds.
        self.seen: dict[Landed, float] = {}

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._broken is not None:
            raise self._broken

    def look(self) -> None:
        """Take note of what is new."""
        for (space, table), name in self._names.items():
            place = metadata_location(self._folder, space, table)
            if place == self._at.get(name):
                continue
            moment = time.monotonic()
            for number in self._new_batches(name, place):
                self.seen.setdefault((name, number), moment)
            self._at[name] = place

    def _watch(self) -> None:
        try:
            while not self._stop.wait(LOOK_SECONDS):
                self.look()
            self.look()
        except BaseException as error:
            self._broken = error

    def _new_batches(self, name: str, place: str) -> set[int]:
        metadata = json.loads(Path(place).read_bytes())
        known = self._sequence.get(name, 0)
        new = [one for one in metadata["snapshots"] if one["sequence-number"] > known]
        self._sequence[name] = metadata["last-sequence-number"]
        found: set[int] = set()
        for snapshot in new:
            for file in added_files(snapshot):
                found |= _batches(file)
        return found


def added_files(snapshot: dict[str, Any]) -> Iterator[Path]:
    """Data files that a snapshot added."""
    for manifest in _avro(snapshot["manifest-list"]):
        if manifest["content"] != _DATA or manifest["added_snapshot_id"] != snapshot["snapshot-id"]:
            continue
        for entry in _avro(manifest["manifest_path"]):
            if entry["status"] == _ADDED:
                yield _path(entry["data_file"]["file_path"])


def _batches(file: Path) -> set[int]:
    """Numbers of landed files whose records are in a data file; none in the engine's own."""
    if "batch" not in pq.read_schema(file).names:
        return set()
    column = pq.read_table(file, columns=["batch"]).column("batch")
    return set(pc.unique(column.drop_null()).to_pylist())


def _avro(place: str) -> Iterator[Any]:
    with _path(place).open("rb") as stream:
        yield from fastavro.reader(stream)


def _path(place: str) -> Path:
    return Path(place.removeprefix("file://").removeprefix("file:"))
