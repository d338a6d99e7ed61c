"""The documents of a configuration bucket: those that agents have in force, changed in place.

A change is an edit of the plain file in the bucket. It is in force at once and without a push, and
`polynya config pull` brings it home. It is written only while the object is still the one that the
change was made of, so that of two people one is refused, also where one of them edits the bucket
with another program.
"""

from __future__ import annotations

import threading

from typing_extensions import override

from polynya.model.config.access import ACCESS_FILES
from polynya.model.error_catalogue.cluster import CONFIGURATION_MISSING
from polynya.model.loader import LoadedProject
from polynya.server.configuration import write_document
from polynya.server.documents import ProjectDocument, ProjectDocuments
from polynya.store.config_bucket import snapshot_of
from polynya.store.configuration import BucketReader, BucketState
from polynya.store.object_store import ObjectStore
from polynya.store.places import store_at


class BucketDocuments(ProjectDocuments):
    """The documents of a configuration bucket. Usable from many threads.

    Every method raises what `BucketReader.read` raises, and ConfigError POLYNYA-BKT-006 where
    nothing was ever pushed.
    """

    def __init__(
        self, project: LoadedProject, target: str | None, store: ObjectStore, name: str
    ) -> None:
        super().__init__(project.directory, target)
        self._store, self._name = store, name
        self._reader = BucketReader(store, name)
        self._reading = threading.Lock()

    @classmethod
    def of(cls, project: LoadedProject, target: str | None) -> BucketDocuments:
        """Those of the bucket of a target. Raises ConfigError POLYNYA-BKT-006 if it has none."""
        place = project.target.config
        if place is None:
            raise CONFIGURATION_MISSING(
                f"the target {project.target.name} has no setting `config`",
                fix=f"set `targets.{project.target.name}.config` to `s3://BUCKET/PREFIX`",
            )
        return cls(project, target, store_at(place, project.target.aws), str(place))

    @override
    def all(self) -> list[ProjectDocument]:
        files = snapshot_of(self._read(), self._name).files
        return [
            ProjectDocument(path, content)
            for path, content in sorted(files.items())
            if path not in ACCESS_FILES
        ]

    @override
    def find(self, path: str) -> ProjectDocument | None:
        reading = self._read()
        content = snapshot_of(reading, self._name).files.get(path)
        if path in ACCESS_FILES or content is None:
            return None
        plain = reading.plain.get(path)
        return ProjectDocument(path, content, None if plain is None else plain.version)

    @override
    def _write(self, path: str, before: ProjectDocument | None, content: bytes | None) -> None:
        version = None if before is None else before.stored
        write_document(self._store, path, content, version)

    def _read(self) -> BucketState:
        with self._reading:
            return self._reader.read()
