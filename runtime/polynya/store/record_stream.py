"""The stream by which nodes tell their state. Advisory: what is lost in it changes nothing."""

from __future__ import annotations

from typing import Protocol


class RecordStream(Protocol):
    """Records under keys."""

    def put(self, key: str, data: bytes) -> None:
        """Add a record; records of one key keep their order.

        Raises:
            PolynyaError: it was not added, as far as is known.
        """
        ...
