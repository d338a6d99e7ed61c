"""`make soak`: feed ten tables for two hours with maintenance and without; fail if one decays."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from tests.newcomer.checks import Check, table
from tests.newcomer.commands import commit, processors
from tests.soak.feeding import Options, Ran, soaked
from tests.soak.judging import checks, figures


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as the options say; 0 when everything holds."""
    asked = _asked(arguments)
    options = Options(
        asked.minutes, asked.tables, asked.every, asked.records, asked.rows, asked.seed
    )
    print(_head(options, beside=asked.beside), flush=True)
    home = Path(tempfile.mkdtemp(prefix="soak-", dir=asked.folder))
    ran = _ran(home, options, asked)
    by = {one.maintained: one for one in ran}
    found = list(checks(by[True], by.get(False), options))
    for one in ran:
        print(f"\nmaintenance {'on' if one.maintained else 'off'}: {one.freshness}")
        print(figures(one))
    print(f"\n{table(found)}")
    print(*(f"{one.part}: {text}" for one in found for text in one.problems), sep="\n")
    if asked.json is not None:
        asked.json.write_text(json.dumps(_report(asked, ran, found), indent=1) + "\n")
    holds = all(one.holds for one in found)
    if holds and not asked.keep:
        shutil.rmtree(home)
    else:
        print(f"kept: {home}")
    return 0 if holds else 1


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=120.0, help="of each run")
    parser.add_argument("--tables", type=int, default=10)
    parser.add_argument("--every", type=float, default=2.0, help="seconds between two files")
    parser.add_argument("--records", type=int, default=25, help="of a file")
    parser.add_argument("--rows", type=int, default=20_000, help="first load of each table")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--beside", action="store_true", help="both at the same time")
    parser.add_argument("--only-on", action="store_true", help="no run without maintenance")
    parser.add_argument("--json", type=Path, help="file for the result")
    parser.add_argument("--folder", type=Path, help="where projects are made; default: temporary")
    parser.add_argument("--keep", action="store_true", help="keep them also when all holds")
    return parser.parse_args(arguments)


def _head(options: Options, *, beside: bool) -> str:
    """What is run, and what is otherwise than in a full run."""
    settings = options.settings(maintained=True)["maintenance"]["snapshot_expiry"]
    at = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    together = ", both at the same time on processors of their own" if beside else ""
    feed = f"a file of {options.records} every {options.every:g} s"
    machine = f"commit {commit()}, {processors()} processors{together}"
    lines = [
        f"{at}, {machine}: {options.tables} tables, {options.minutes:g} min, {feed}",
        f"snapshots expire after {settings['age']}, {settings['keep']} stay",
    ]
    if options.haste > 1:
        lines.append(
            f"actions come {options.haste:.1f} times as soon as in two hours: "
            f"an action by itself costs 1/{options.haste**2:.0f} of its price, "
            f"a table is taken to be read {options.haste:.1f} times as often"
        )
    return "\n".join(lines)


def _ran(home: Path, options: Options, asked: argparse.Namespace) -> list[Ran]:
    """The runs, one after the other or at the same time.

    At the same time each has its own processors, where there are two: what decays without
    maintenance takes more of them with each minute, and would slow the other one down.
    """
    kinds = (True,) if asked.only_on else (True, False)
    processors = sorted(os.sched_getaffinity(0))

    def one(maintained: bool) -> Ran:
        if asked.beside and len(processors) > 1:
            # Of this thread, and so of all that it starts.
            os.sched_setaffinity(0, processors[0 if maintained else 1 :: 2])
        name = "on" if maintained else "off"
        return soaked(home / name, options, maintained=maintained)

    with ThreadPoolExecutor(len(kinds) if asked.beside else 1) as pool:
        return list(pool.map(one, kinds))


def _report(
    asked: argparse.Namespace, ran: Sequence[Ran], found: Sequence[Check]
) -> dict[str, object]:
    """All of it for programs."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "python": platform.python_version(),
        "processors": processors(),
        "options": {name: str(value) for name, value in vars(asked).items()},
        "ok": all(one.holds for one in found),
        "checks": [one.as_json() for one in found],
        "runs": [asdict(one) for one in ran],
    }


if __name__ == "__main__":
    sys.exit(main())
