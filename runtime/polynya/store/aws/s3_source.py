"""A place in an S3 bucket that others write: listed by how keys begin.

Who may list only below a prefix is told by S3 that what is missing there is forbidden: a request
for one object has no prefix. So an object that is forbidden and not listed is one that is gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from polynya.model.errors import DependencyError
from polynya.store.aws.clients import is_denied
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

    def _meaning(self, error: Exception, action: str, path: str) -> Exception:
        if action.startswith("read ") and is_denied(error) and self._is_gone(path):
            return FileNotFoundError(self._where(path))
        return super()._meaning(error, action, path)

    def _is_gone(self, path: str) -> bool:
        try:
            # The path itself is the first of those that begin with it.
            first = next(self.beginning(path), None)
        except DependencyError:
            return False
        return first is None or first.path != path
