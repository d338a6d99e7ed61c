"""A catalog that reports an error, whether or not it made the commit."""

from __future__ import annotations

from typing import Any


class Lying:
    """A Java table or transaction whose commit is made, or not, and ends with an error either way.

    Of a table it is the commit of the next row delta, of a transaction that of the whole. The error
    is one of Java. The JVM is given: the session of Spark is that of a thread, and steps have
    threads of their own.
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
        self._lie(self._real.commit)

    def commitTransaction(self) -> None:
        """See Iceberg's `Transaction`."""
        self._lie(self._real.commitTransaction)

    def _lie(self, commit: Any) -> None:
        if self._made:
            commit()
        self._jvm.java.lang.Class.forName("an error that says nothing about the commit")


class LyingAtLast(Lying):
    """A Java transaction: what is committed within it is, and the whole reports an error."""

    def newRowDelta(self) -> Any:
        """See Iceberg's `Transaction`."""
        return self._real.newRowDelta()
