"""`make capture-kills`: a capture of a real PostgreSQL is killed again and again, then compared.

Two writers change the database all the time. Each capture is told at random where it dies
(`deadly.py`), or is killed from outside after a random time; sometimes the server is killed with
it, and sometimes two captures run at once. At the end what the log makes of the tables must be what
the database has, and the events of each transaction must have landed once, without a gap.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from examples.servers.postgresql import PostgresServer
from polynya.capture.wire import WorkerSettings
from tests.capture.worker.deadly import BOUNDARIES
from tests.capture.worker.process import CaptureProcess
from tests.capture.worker.shop import Writer, a_shop, assert_same, landed, settings_of, transactions

_LONGEST_LIFE = 60.0
_OTHERS = ("any moment", "server", "two at once")


@dataclass(slots=True)
class Outcome:
    """What a run of kills did.

    Attributes:
        kills: by where they struck.
        transactions: that were streamed.
        events: that landed.
        seconds: of all.
    """

    kills: Counter[str] = field(default_factory=Counter)
    transactions: int = 0
    events: int = 0
    seconds: float = 0.0


class Kills:
    """One database and one landing zone, and captures that come and go."""

    def __init__(
        self, server: PostgresServer, folder: Path, seed: int, say: Callable[[str], None]
    ) -> None:
        self._server, self._folder, self._say = server, folder, say
        self._draw = random.Random(seed)
        self.outcome = Outcome()

    def run(self, kills: int) -> Outcome:
        """Kill so often, then compare. Raises AssertionError when anything differs."""
        began = time.monotonic()
        writers = [Writer(self._server, seed) for seed in (1, 2)]
        for number in range(kills):
            where = self._draw.choice([*BOUNDARIES, *_OTHERS])
            self._strike(where)
            self._say(f"{number + 1}/{kills}: {where}")
        for writer in writers:
            writer.stop()
        once = CaptureProcess(self._settings(mode="once"), self._folder / "log")
        assert once.ended() == 0, once.told[-1:]
        assert_same(self._server, self._folder)
        values = landed(self._folder)
        outcome = self.outcome
        outcome.transactions, outcome.events = len(transactions(values)), len(values)
        outcome.seconds = time.monotonic() - began
        return outcome

    def _settings(self, **changes: object) -> WorkerSettings:
        draw = self._draw
        usual = {
            "chunk_rows": draw.choice([50, 200, 1000]),
            "roll_bytes": draw.choice([2**14, 2**20]),
            "roll_seconds": draw.choice([0.0, 0.2, 1.0]),
        }
        return settings_of(self._server, self._folder, **{**usual, **changes})

    def _strike(self, where: str) -> None:
        log, settings = self._folder / "log", self._settings()
        deadly = () if where in _OTHERS else (where, str(self._draw.randrange(1, 12)))
        captures = [CaptureProcess(settings, log, *deadly)]
        if where == "two at once":
            captures.append(CaptureProcess(settings, log))
        if where in {"inside", "any moment"}:
            self._large_transaction()
        # A boundary that is not reached in this life is replaced by some moment of it.
        _one_ends(captures, _LONGEST_LIFE if deadly else self._draw.uniform(0.5, 15))
        reached = captures[0].process.poll() == -signal.SIGKILL
        if where == "server":
            self._server.kill()
            self._server.start()
        for one in captures:
            one.kill()
        self.outcome.kills[where if reached or not deadly else "any moment"] += 1

    def _large_transaction(self) -> None:
        first = 10_000_000 + self._draw.randrange(1_000_000) * 1000
        self._server.run(
            f"INSERT INTO a SELECT {first} + i, 'large' FROM generate_series(1, 900) i; "
            f"UPDATE a SET v = v || '!' WHERE id > {first}"
        )


def _one_ends(captures: Sequence[CaptureProcess], seconds: float) -> None:
    """Wait until one has ended, but not longer."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if any(one.process.poll() is not None for one in captures):
            return
        time.sleep(0.05)


def table(outcome: Outcome, seed: int) -> str:
    """The outcome as a row of a table for people."""
    kills = ", ".join(f"{where} {count}" for where, count in sorted(outcome.kills.items()))
    return (
        f"| {time.strftime('%Y-%m-%d', time.gmtime())} | {seed} | {sum(outcome.kills.values())}: "
        f"{kills} | {outcome.transactions:,} | {outcome.events:,} | {outcome.seconds / 60:.0f} | "
        "none lost, none doubled |"
    )


def main(arguments: list[str]) -> int:
    """Kill as the arguments say; 1 when something was lost or doubled."""
    parser = argparse.ArgumentParser(prog="capture-kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="how many (100)")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn (1)")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, a_shop() as server:
        kills = Kills(server, Path(folder), given.seed, lambda line: print(line, flush=True))
        try:
            outcome = kills.run(given.kills)
        except AssertionError as error:
            print(f"DIFFERENT: {str(error)[:2000]}")
            return 1
    print(table(outcome, given.seed))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
