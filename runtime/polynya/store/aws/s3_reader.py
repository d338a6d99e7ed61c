"""A seekable file over ranged requests: whole blocks, of which the last few are kept."""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

#: One request of this size costs about as much time as ten of a tenth; most landed files are
#: smaller, and cost one request.
BLOCK_BYTES: Final = 8 << 20
#: A Parquet file is read at its end, then in its middle.
_KEPT_BLOCKS: Final = 3


@dataclass(frozen=True, slots=True)
class Block:
    """Bytes of an object, the size of all of it, and a tag of its version."""

    data: bytes
    total: int
    tag: str


#: (first byte, byte after the last, tag of the version or None) → the block
Fetch: TypeAlias = Callable[[int, int, "str | None"], Block]


class BlockReader(io.RawIOBase):
    """Reads an object block by block. Opening it reads the first block.

    Not for several threads. All blocks are of the version of the first one, or `fetch` raises.
    """

    def __init__(self, fetch: Fetch, block_bytes: int = BLOCK_BYTES) -> None:
        self._fetch = fetch
        self._block_bytes = block_bytes
        self._blocks: OrderedDict[int, bytes] = OrderedDict()
        first = fetch(0, block_bytes, None)
        self._blocks[0] = first.data
        self._total, self._tag = first.total, first.tag
        self._position = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Position in bytes."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move; costs nothing until the next read."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._total}[whence]
        if base + offset < 0:
            raise ValueError(f"negative position {base + offset}")
        self._position = base + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as the block of the position reaches; 0 at the end."""
        if self._position >= self._total:
            return 0
        number, inside = divmod(self._position, self._block_bytes)
        view = memoryview(buffer).cast("B")
        piece = self._block(number)[inside : inside + len(view)]
        view[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)

    def _block(self, number: int) -> bytes:
        if number not in self._blocks:
            start = number * self._block_bytes
            end = min(start + self._block_bytes, self._total)
            self._blocks[number] = self._fetch(start, end, self._tag).data
            if len(self._blocks) > _KEPT_BLOCKS:
                self._blocks.popitem(last=False)
        self._blocks.move_to_end(number)
        return self._blocks[number]
