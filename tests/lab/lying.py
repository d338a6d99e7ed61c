"""A catalog that reports an error, whether or not it made the commit."""

from __future__ import annotations

from typing import Any


class Lying:
    """A Java table whose row delta is committed, or not, and ends with an error of Java either way.

    The JVM is given: the session of Spark is that of a thread, and steps have threads of their own.
    """

    def __init__(self, real: Any, jvm: Any, *, made: bool) -> None:
        self._real, self._jvm, self._made = real, jvm, made

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def newRowDelta(self) -> Any:
        """See Iceberg's `Table`."""
        return Lying(self._real.newRowDelta(), self._jvm, made=self._made)

    def commit(self) -> None:
        """See Iceberg's `PendingUpdate`."""
        if self._made:
            self._real.commit()
        self._jvm.java.lang.Class.forName("an error that says nothing about the commit")
