"""`make newcomer`: go the newcomer's way, print what holds, and fail when something does not."""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from tests.newcomer import continuous, first_load, pages
from tests.newcomer.checks import Check, table, tried
from tests.newcomer.commands import commit, processors
from tests.newcomer.faults import interplay, machines
from tests.newcomer.faults.ground import Ground
from tests.newcomer.shop.project import Shop

PARTS: Final = ("pages", "feed", "continuous", "kills", "machines", "under-way")


def main(arguments: Sequence[str] | None = None) -> int:
    """Go the way that the options say; 0 when everything holds."""
    options = _options(arguments)
    home = Path(tempfile.mkdtemp(prefix="newcomer-", dir=options.folder))
    found: list[Check] = []
    try:
        for check in _checks(home, options):
            found.append(check)
            line = f"{check.outcome:8} {check.part}: {check.name}  {check.said}"
            print(line, *check.problems, sep="\n", flush=True)
    finally:
        print(f"\n{table(found)}")
        if options.json is not None:
            options.json.write_text(json.dumps(_report(options, found), indent=1) + "\n")
    holds = bool(found) and all(check.holds for check in found)
    if holds and not options.keep:
        shutil.rmtree(home)
    else:
        print(f"\nkept: {home}")
    return 0 if holds else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.newcomer", description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--only", default="", help="faults whose name has this in it")
    parser.add_argument("--records", type=int, default=432_600, help="of the feed")
    parser.add_argument("--minutes", type=float, default=15.0, help="of each continuous run")
    parser.add_argument("--floor", type=float, default=10.0, help="highest p95 of freshness, s")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="file for the result")
    parser.add_argument("--folder", type=Path, help="where projects are made; default: temporary")
    parser.add_argument("--keep", action="store_true", help="keep them also when all holds")
    return parser.parse_args(arguments)


def _checks(home: Path, options: argparse.Namespace) -> Iterator[Check]:
    """The checks of the chosen parts."""
    chosen = set(options.parts)
    if "pages" in chosen:
        yield from _pages(home)
    if chosen & {"feed", "continuous", "kills"}:
        # The tables of the feed are those that the files of a continuous run change.
        shop = Shop.made(home / "shop", options.seed)
        yield from first_load.checks(shop, options.records)
        for kills in (False, True):
            if ("kills" if kills else "continuous") in chosen:
                floor = None if kills else options.floor
                way = continuous.Options(options.minutes, floor, kills=kills, seed=options.seed)
                yield from continuous.checks(shop, way)
    if chosen & {"machines", "under-way"}:
        ground = Ground.made(home, options.seed)
        trials = [*machines.trials(ground)] if "machines" in chosen else []
        trials += interplay.trials(ground) if "under-way" in chosen else []
        yield from (one.made() for one in trials if options.only in one.name)


def _pages(home: Path) -> Iterator[Check]:
    for page in pages.PAGES:
        yield tried(
            "pages", page.name, partial(pages.differing, page.read_text("utf-8"), home / page.stem)
        )


def _report(options: argparse.Namespace, found: Sequence[Check]) -> dict[str, object]:
    """All of it for programs."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "python": platform.python_version(),
        "processors": processors(),
        "options": {name: str(value) for name, value in vars(options).items()},
        "ok": bool(found) and all(check.holds for check in found),
        "seconds": round(sum(check.seconds for check in found)),
        "checks": [check.as_json() for check in found],
    }


if __name__ == "__main__":
    began = time.monotonic()
    code = main()
    print(f"took {(time.monotonic() - began) / 60:.0f} min")
    sys.exit(code)
