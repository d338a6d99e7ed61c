"""Sessions that change the tables of a shop while they are captured."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from examples.servers.mariadb import Server


class Writer(threading.Thread):
    """Changes rows of all kinds until it is told to end; begins again when the server was away."""

    def __init__(self, server: Server, seed: int) -> None:
        super().__init__(daemon=True)
        self._server, self._random, self._seed = server, random.Random(seed), seed
        self._ended = threading.Event()
        self.transactions = 0

    def run(self) -> None:
        while not self._ended.is_set():
            try:
                session = self._server.connect("shop", autocommit=False)
                with session.cursor() as cursor:
                    while not self._ended.is_set():
                        for _ in range(self._random.choice((1, 1, 2, 30))):
                            cursor.execute(self._statement())
                        (session.rollback if self._random.random() < 0.1 else session.commit)()
                        self.transactions += 1
            except Exception:
                time.sleep(0.2)

    def _statement(self) -> str:
        number = self._random.randrange(4000)
        return self._random.choice((
            f"INSERT IGNORE INTO orders VALUES ({number}, 'new', {number}, NULL)",
            f"REPLACE INTO orders VALUES ({number}, 'replaced', -{number}, x'00')",
            f"UPDATE orders SET n = n + 1 WHERE id BETWEEN {number} AND {number + 5}",
            f"UPDATE IGNORE orders SET id = {self._random.randrange(4000)} WHERE id = {number}",
            f"DELETE FROM orders WHERE id = {number}",
            f"REPLACE INTO notes VALUES ({number}, {self._seed}, '{number}')",
        ))  # fmt: skip

    def end(self) -> None:
        self._ended.set()
        self.join(60)


@contextmanager
def writers(server: Server, count: int = 3) -> Iterator[list[Writer]]:
    """Some of them, as long as the block runs."""
    made = [Writer(server, seed) for seed in range(count)]
    for one in made:
        one.start()
    try:
        yield made
    finally:
        for one in made:
            one.end()
