"""What sessions do to the bank in MariaDB, filled by chance."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

from tests.capture_demo.bank import Limits, Step, text


def _transfer(chance: random.Random, limits: Limits) -> Iterator[str]:
    aid, tid, bid = chance.randint(1, limits.accounts), chance.randint(1, 10), chance.randint(1, 10)
    delta = chance.randint(-5000, 5000)
    yield "BEGIN"
    yield f"UPDATE accounts SET balance = balance + {delta}.25 WHERE aid = {aid}"
    yield f"UPDATE tellers SET balance = balance + {delta} WHERE tid = {tid}"
    yield f"UPDATE branches SET balance = balance + {delta} WHERE bid = {bid}"
    yield f"INSERT INTO history VALUES ({tid}, {bid}, {aid}, {delta}, NOW(6))"
    yield "COMMIT"


def _touch(chance: random.Random, limits: Limits) -> Iterator[str]:
    number = chance.randint(1, limits.documents)
    yield (
        f"UPDATE documents SET version = version + 1, title = {text(chance)},"
        f" body = IF({chance.random()} < 0.1, REPEAT(MD5({chance.random()}), 300), body)"
        f" WHERE id = {number}"
    )


def _open(chance: random.Random, limits: Limits) -> Iterator[str]:
    aid = limits.accounts + chance.randint(1, 10**9)
    yield (
        f"INSERT INTO accounts (aid, bid, balance, owner, opened) VALUES ({aid}, 1,"
        f" {chance.randint(-(10**6), 10**6)}.5, {text(chance)}, NOW(6))"
        " ON DUPLICATE KEY UPDATE owner = VALUES(owner)"
    )


def _close(chance: random.Random, limits: Limits) -> Iterator[str]:
    yield f"DELETE FROM accounts WHERE aid = {chance.randint(1, limits.accounts)}"


def _rename(chance: random.Random, limits: Limits) -> Iterator[str]:
    """A change of key: to a new one, or to one that was there before."""
    old, new = chance.randint(1, limits.accounts), limits.accounts + chance.randint(1, 5000)
    if chance.random() < 0.5:
        old, new = new, old
    yield f"UPDATE IGNORE accounts SET aid = {new} WHERE aid = {old}"


def _relabel(chance: random.Random, limits: Limits) -> Iterator[str]:
    sku = f"sku {chance.randint(1, limits.prices)}"
    yield (
        f"UPDATE IGNORE prices SET sku = CONCAT(sku, '{chance.choice(('a', 'é'))}'),"
        f" price = price + 0.0625 WHERE sku = '{sku}' AND CHAR_LENGTH(sku) < 12"
    )
    yield f"INSERT IGNORE INTO prices VALUES ('region 0', '{sku}', NULL)"


def _fill_basket(chance: random.Random, limits: Limits) -> Iterator[str]:
    first, aid = chance.randint(1, 10**9), chance.randint(1, limits.accounts)
    rows = ", ".join(f"({first + n}, {aid}, {text(chance)})" for n in range(chance.randint(1, 5)))
    yield f"INSERT IGNORE INTO baskets VALUES {rows}"


def _undone(chance: random.Random, limits: Limits) -> Iterator[str]:
    """What is rolled back, whole or in part, leaves no trace."""
    yield "BEGIN"
    yield f"UPDATE accounts SET owner = {text(chance)} WHERE aid = {chance.randint(1, 500)}"
    yield "SAVEPOINT here"
    yield f"DELETE FROM accounts WHERE aid BETWEEN 1 AND {chance.randint(1, 500)}"
    yield "ROLLBACK TO here"
    yield chance.choice(("COMMIT", "ROLLBACK"))


def _long(chance: random.Random, limits: Limits) -> Iterator[str]:
    """A transaction that begins before others and ends after them."""
    first = chance.randint(1, limits.accounts)
    yield "BEGIN"
    yield f"UPDATE accounts SET active = 1 - active WHERE aid BETWEEN {first} AND {first + 300}"
    yield "DO SLEEP(0.7)"
    yield f"UPDATE accounts SET bid = bid + 1 WHERE aid BETWEEN {first + 100} AND {first + 200}"
    yield "DO SLEEP(0.3)"
    yield "COMMIT"


STEPS: Final[dict[Step, int]] = {
    _transfer: 50, _touch: 12, _open: 8, _close: 4, _rename: 6, _relabel: 5, _fill_basket: 8,
    _undone: 4, _long: 1,
}  # fmt: skip
