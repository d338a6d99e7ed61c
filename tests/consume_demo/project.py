"""The project of `make demo`, fed a part at a time, and one of a moment of its catalog."""

from __future__ import annotations

import gzip
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Final

from examples.demo import CAPTURE, PROJECT

_PROJECT: Final = """\
apiVersion: polynya/v1
kind: project
name: bank
targets:
  local: {{landing: {live}/landing, warehouse: {live}/warehouse{catalog}}}
"""
_CATALOG: Final = ", catalog: {{uri: 'jdbc:sqlite:{file}'}}"


def write(folder: Path) -> None:
    """The tasks of the demo, and nothing landed yet."""
    shutil.copytree(PROJECT / "tasks", folder / "tasks")
    (folder / "landing" / "bank").mkdir(parents=True)
    shutil.copytree(PROJECT / "landing" / "users", folder / "landing" / "users")
    text = _PROJECT.format(live=folder, catalog="")
    (folder / "polynya.yml").write_text(text, "utf-8")


def at_one_moment(live: Path, folder: Path) -> Path:
    """A project whose catalog is a copy of the live one, so that all engines read one commit.

    The metadata files are copied, too: a table keeps the newest 21. Snapshots stay for hours.
    """
    folder.mkdir()
    shutil.copytree(live / "tasks", folder / "tasks")
    file = folder / "catalog.db"
    with (
        closing(sqlite3.connect(live / "warehouse" / "catalog.db")) as source,
        closing(sqlite3.connect(file)) as copy,
    ):
        source.backup(copy)
        names = "SELECT table_namespace, table_name, metadata_location FROM iceberg_tables"
        for number, (schema, name, place) in enumerate(copy.execute(names).fetchall()):
            kept = folder / f"{number}-{Path(place).name}"
            shutil.copyfile(place.removeprefix("file:"), kept)
            copy.execute(
                "UPDATE iceberg_tables SET metadata_location = ? "
                "WHERE table_namespace = ? AND table_name = ?",
                (str(kept), schema, name),
            )
        copy.commit()
    text = _PROJECT.format(live=live, catalog=_CATALOG.format(file=file))
    (folder / "polynya.yml").write_text(text, "utf-8")
    return folder


class Feed(threading.Thread):
    """Lands the capture of the demo again and again, some records at a time, until it is ended.

    What was landed before is a redelivery, which changes nothing: so a feed that has landed all
    still has something to be copied.
    """

    def __init__(self, folder: Path, records: int, seconds: float) -> None:
        """So many records every so many seconds."""
        super().__init__(daemon=True)
        self._landing, self._records, self._seconds = folder / "landing" / "bank", records, seconds
        self._ended = threading.Event()
        self.files = 0

    def run(self) -> None:
        """Land until the end."""
        while not self._ended.is_set():
            for part in self._parts():
                if self._ended.wait(self._seconds):
                    return
                self._land(part)

    def end(self) -> None:
        """Land nothing any more."""
        self._ended.set()
        self.join()

    def _parts(self) -> Iterator[bytes]:
        with gzip.open(PROJECT / CAPTURE) as lines:
            while part := b"".join(islice(lines, self._records)):
                yield part

    def _land(self, part: bytes) -> None:
        name = f"{self.files:06}.jsonl"
        # A file has its name only when it is whole.
        unfinished = self._landing.parent / f".{name}"
        unfinished.write_bytes(part)
        unfinished.rename(self._landing / name)
        self.files += 1
