"""Three tables by files: a first load, then changes, and what came of both."""

from __future__ import annotations

from collections.abc import Iterator

from tests.newcomer.checks import Check, tried
from tests.newcomer.shop.feed import SHARES, TABLES
from tests.newcomer.shop.project import Shop

PART = "feed"
#: Parts of the records of a table that are its first load; the rest are changes.
_LOADED = 0.7
#: Files of a load, and of the changes of each of the two runs after it.
_LOAD_FILES, _CHANGE_FILES = 3, 5


def checks(shop: Shop, records: int) -> Iterator[Check]:
    """Land so many records in three runs, and compare after each."""
    yield tried(PART, "first load", lambda: _loaded(shop, records))
    yield tried(PART, "changes, pending", lambda: _changed(shop, records, apply="never"))
    yield tried(PART, "changes, applied", lambda: _changed(shop, records, apply="always"))
    yield tried(PART, "verify", lambda: _verified(shop))


def _loaded(shop: Shop, records: int) -> Check:
    for table in TABLES:
        for _ in range(_LOAD_FILES):
            rows = round(records * SHARES[table.name] * _LOADED / _LOAD_FILES)
            shop.land_load(table, rows)
    return _ran(shop, "policy")


def _changed(shop: Shop, records: int, *, apply: str) -> Check:
    for table in TABLES:
        for _ in range(_CHANGE_FILES):
            rows = round(records * SHARES[table.name] * (1 - _LOADED) / 2 / _CHANGE_FILES)
            shop.land_changes(table, rows)
    return _ran(shop, apply)


def _ran(shop: Shop, apply: str) -> Check:
    """One run over what has landed, what it says, and what is in the tables."""
    (run,) = [
        one
        for one in shop.polynya.objects("run", "--once", "--apply", apply)
        if one["type"] == "run"
    ]
    rate = run["records"] / run["seconds"]
    said = f"{run['records']:,} records in {run['seconds']:.0f} s, {rate:,.0f}/s"
    figures = {"records": run["records"], "seconds": run["seconds"]}
    damage = shop.damage(stored=apply == "always")
    return Check(PART, "", tuple(damage), said, figures)


def _verified(shop: Shop) -> list[str]:
    printed = shop.polynya.call("verify")
    return [] if printed.code == 0 else [printed.output + printed.errors]
