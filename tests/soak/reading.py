"""A process that stays open and asks live views, as a dashboard does.

It is one of its own: what feeds the run has all that landed in memory, and pauses for it.
"""

from __future__ import annotations

import re
import time
from multiprocessing import get_context
from multiprocessing.connection import Connection
from types import TracebackType

from tests.newcomer.shop.project import SCHEMA, Shop, connected
from tests.oracle.packs.read_back import internal_table, metadata_location


class Reader:
    """Asks the live view of each table of a shop, of its newest commit."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self._texts = {one.name: shop.views(one) for one in shop.tables}
        context = get_context("spawn")
        self._asker, asked = context.Pipe()
        self._process = context.Process(target=answer, args=(asked,), daemon=True)

    def __enter__(self) -> Reader:
        self._process.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._asker.send(None)
        self._process.join()

    def seconds(self, name: str) -> float:
        """How long a question to the live view of a table takes that has to read all of it."""
        place = metadata_location(self._shop.folder, *internal_table(SCHEMA, name))
        question = f'SELECT count(*), max("batch") FROM {SCHEMA}."{name}"'
        self._asker.send((at(self._texts[name], place), question))
        rows, took = self._asker.recv()
        if not rows:
            raise AssertionError(f"the live view of {name} is empty")
        return float(took)


def answer(asked: Connection) -> None:
    """Make views and count the rows of one, again and again, until None comes."""
    with connected() as connection:
        while (wanted := asked.recv()) is not None:
            views, question = wanted
            connection.execute(views)
            began = time.monotonic()
            (found,) = connection.execute(question).fetchall()
            asked.send((found[0], time.monotonic() - began))


_METADATA = re.compile(r"iceberg_scan\('[^']*'\)")


def at(views: str, place: str) -> str:
    """The statements that make live views, with another metadata file of the same table.

    `polynya views` would say the same: the shape of these tables does not change.
    """
    quoted = place.replace("'", "''")
    return _METADATA.sub(lambda _: f"iceberg_scan('{quoted}')", views)
