"""A place in an S3 bucket that others write: listed by how keys begin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from polynya.store.aws.s3 import S3ObjectStore


class S3SourceStore(S3ObjectStore):
    """An object store below a prefix of a bucket of which parts are listed."""

    def __reduce__(self) -> tuple[type[S3ObjectStore], tuple[Any, ...]]:
        """Tasks in other processes open clients of their own."""
        return S3SourceStore, (self.location, self._access)

    def folders(self, start: str) -> Iterator[str]:
        """The folders that begin with `start`; a request for each thousand of them."""
        root = self._root()
        for page in self._pages(root + start, start, Delimiter="/"):
            for entry in page.get("CommonPrefixes", ()):
                yield str(entry["Prefix"]).removeprefix(root)
