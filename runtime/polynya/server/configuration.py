"""The project folder of a server that follows a configuration bucket.

On a machine that is replaced the folder is a copy: the bucket holds the truth. The server reads it
again and again, and writes a change to the bucket first.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Final

from polynya.engine.errors import as_polynya
from polynya.model.documents.yaml import MAX_FILE_BYTES
from polynya.model.error_catalogue.server import DOCUMENT_CHANGED
from polynya.model.error_catalogue.server_operations import FOLDER_NOT_FOLLOWING
from polynya.observe.cluster import ConfigurationUnreadable
from polynya.observe.events import EventSink
from polynya.store.config_bucket import BucketSource
from polynya.store.configuration import plain_path, project_files
from polynya.store.object_store import LocalObjectStore, ObjectStore

#: Seconds between two looks: a listing and two small objects each.
EVERY_SECONDS: Final = 30.0
#: Holds the name of the bucket that a folder follows.
_MARK: Final = ".polynya/followed"


class FollowedConfiguration:
    """Keeps a project folder as the configuration in force in a bucket.

    `lock` is held while a change is written to both, so that a reading from before does not take it
    back. `name` is how messages call the bucket.
    """

    def __init__(self, folder: Path, bucket: ObjectStore, name: str, tell: EventSink) -> None:
        self.bucket, self.name = bucket, name
        self.lock = threading.RLock()
        self._folder, self._tell = folder, tell
        self._source = BucketSource(bucket, name)
        self._identity: str | None = None
        self._unread: str | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="configuration", daemon=True)

    def begin(self) -> None:
        """Take the folder, and read the bucket for the first time.

        Raises:
            ConfigError: the folder has another project (POLYNYA-SRV-061), or nothing was ever
                pushed (POLYNYA-BKT-006).
            PolynyaError: the bucket cannot be read.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        mark = self._folder / _MARK
        known = mark.read_text(encoding="utf-8") if mark.is_file() else None
        if known != self.name and (known is not None or any(project_files(self._folder))):
            raise FOLDER_NOT_FOLLOWING(where=str(self._folder), bucket=self.name)
        LocalObjectStore(self._folder).put(_MARK, self.name.encode())
        self.follow()

    def start(self) -> None:
        """Follow from now on, by a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """End after the reading that is under way."""
        self._stop.set()

    def follow(self) -> None:
        """Read the bucket, and write what differs. Raises as `begin`."""
        with self.lock:
            snapshot = self._source.read()
            if snapshot.identity == self._identity:
                return
            folder = LocalObjectStore(self._folder)
            for path, content in snapshot.files.items():
                place = self._folder / path
                if not place.is_file() or place.read_bytes() != content:
                    folder.put(path, content)
            for path in set(project_files(self._folder)) - snapshot.files.keys():
                folder.delete(path)
            self._identity = snapshot.identity

    def write(self, path: str, content: bytes | None, before: bytes | None) -> None:
        """Replace a document in the bucket, or remove it where `content` is None.

        It counts as an edit by hand until the next push. Hold `lock`.

        Raises ConflictError POLYNYA-SRV-008: the bucket has something else than `before`.
        """
        try:
            known = self.bucket.read(plain_path(path), MAX_FILE_BYTES + 1)
        except FileNotFoundError:
            known = None
        if (known and known.data) != before:
            raise DOCUMENT_CHANGED(path=path)
        write_document(self.bucket, path, content, None if known is None else known.version)
        # What the bucket has now differs from what was read last.
        self._identity = None

    def _keep(self) -> None:
        while not self._stop.wait(EVERY_SECONDS):
            try:
                self.follow()
                self._unread = None
            except Exception as error:  # noqa: BLE001 - what was read last stays; told once
                told = as_polynya(error)
                if str(told) != self._unread:
                    self._unread = str(told)
                    self._tell(ConfigurationUnreadable(subject=self.name, error=told))


def write_document(
    bucket: ObjectStore, path: str, content: bytes | None, version: str | None
) -> None:
    """Replace the object of a document, or remove it where `content` is None.

    `version` is what the bucket has to have, None for no object. Raises ConflictError
    POLYNYA-SRV-008: it has something else.
    """
    place = plain_path(path)
    if content is None:
        written = version is None or bucket.delete_if_unchanged(place, version)
    elif version is None:
        written = bucket.put_if_absent(place, content)
    else:
        written = bucket.put_if_unchanged(place, content, version)
    if not written:
        raise DOCUMENT_CHANGED(path=path)
