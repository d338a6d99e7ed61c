"""A process that stays open and asks live views, as a dashboard does."""

from __future__ import annotations

import re
import time
from types import TracebackType

from tests.newcomer.shop.project import SCHEMA, Shop, connected
from tests.oracle.packs.read_back import internal_table, metadata_location


class Reader:
    """Asks the live view of each table of a shop, of its newest commit."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self._texts = {one.name: shop.views(one) for one in shop.tables}
        self._connection = connected()

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    def seconds(self, name: str) -> float:
        """How long a question to the live view of a table takes that has to read all of it."""
        place = metadata_location(self._shop.folder, *internal_table(SCHEMA, name))
        self._connection.execute(at(self._texts[name], place))
        began = time.monotonic()
        (found,) = self._connection.execute(
            f'SELECT count(*), max("batch") FROM {SCHEMA}."{name}"'
        ).fetchall()
        if not found[0]:
            raise AssertionError(f"the live view of {name} is empty")
        return time.monotonic() - began


_METADATA = re.compile(r"iceberg_scan\('[^']*'\)")


def at(views: str, place: str) -> str:
    """The statements that make live views, with another metadata file of the same table.

    `polynya views` would say the same: the shape of these tables does not change.
    """
    quoted = place.replace("'", "''")
    return _METADATA.sub(lambda _: f"iceberg_scan('{quoted}')", views)
