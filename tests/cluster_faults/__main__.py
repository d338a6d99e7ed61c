"""What `make cluster-faults` runs: agents merge live input while machines and the store fail.

Each row that landed is looked for in the tables at the end, by code that shares nothing with the
runtime. Exit code 1 when one is lost or there twice, when units had to wait for an owner for too
long, when what a later version wrote was lost, or when too little happened to prove anything.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.cluster_demo import project
from tests.cluster_demo.agents import Failed
from tests.cluster_demo.judge import Verdict, judge
from tests.cluster_demo.servers import BUCKET
from tests.cluster_faults.faults import Struck
from tests.cluster_faults.feed import Feed, Source
from tests.cluster_faults.judging import Spreads, by_phase, too_late, vacuous
from tests.cluster_faults.versions import claims, forgotten, met
from tests.cluster_faults.world import Arm, World, world
from tests.oracle.packs.driver import ROOT

FOLDER = ROOT / "build" / "cluster-faults"
_MARK = ".cluster-faults"


@dataclass(frozen=True)
class Found:
    """What a run came to."""

    struck: tuple[Struck, ...]
    counts: Counter[str]
    alone: Spreads
    overlapping: Spreads
    verdicts: tuple[Verdict, ...]
    problems: tuple[str, ...]
    late: tuple[str, ...]
    vacuous: tuple[str, ...]

    @property
    def wrong(self) -> int:
        """Rows that are lost or there twice."""
        return sum(one.lost + one.surplus for one in self.verdicts)

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        kinds = Counter(str(one.kind) for one in self.struck)
        phases = {"alone": self.alone, "overlapping": self.overlapping}
        seconds = {
            phase: {name: one and asdict(one) for name, one in spreads.items()}
            for phase, spreads in phases.items()
        }
        return {
            "faults": kinds,
            "counts": self.counts,
            "seconds": seconds,
            "tables": [asdict(one) for one in self.verdicts],
            "problems": self.problems,
            "late": self.late,
            "vacuous": self.vacuous,
        }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster_faults", description=__doc__)
    parser.add_argument("--faults", type=int, default=500, help="how many overlap")
    parser.add_argument("--alone", type=int, default=40, help="how many strike alone before them")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lease", type=float, default=30.0, help="seconds; the product has 30")
    parser.add_argument("--fence-off", action="store_true", help="the control arm: has to fail")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where it works; emptied first")
    parser.add_argument("--json", type=Path, help="file for all figures")
    options = parser.parse_args(arguments)
    arm = Arm(options.lease, fenced=not options.fence_off)
    faults = {"alone": options.alone, "overlapping": options.faults}
    try:
        found = suffered(options.folder.resolve(), arm, faults, options.seed, say=print)
    except Failed as failure:
        print(failure, file=sys.stderr)
        return 1
    if options.json is not None:
        options.json.write_text(json.dumps(found.as_json(), indent=1), "utf-8")
    return int(bool(found.wrong or found.problems or found.late or found.vacuous))


def suffered(
    folder: Path,
    arm: Arm,
    faults: Mapping[str, int],
    seed: int,
    *,
    say: Callable[[str], None],
    pause: tuple[float, float] = (2.0, 10.0),
    every: float = 2.0,
) -> Found:
    """So many faults `alone` and then so many `overlapping`, `pause` seconds between two of them.

    All the time a file lands for each table every `every` seconds.
    """
    began = time.monotonic()

    def told(text: str) -> None:
        say(f"{time.monotonic() - began:7.1f} s  {text}")

    _clean(folder)
    sources = [
        Source.of("accounts", f"accounts_{n}", keyed=True, seed=seed + n) for n in range(3)
    ] + [Source.of("lines", f"lines_{n}", keyed=False, seed=seed + 3 + n) for n in range(3)]
    tables = [one.dataset for one in sources]
    project.write(folder, f"s3://{BUCKET}/config", tables)
    feed = Feed(folder / "landing", sources, pause=every)
    with world(folder, arm, seed, told) as at:
        feed.start()
        at.ready()
        at.share()
        told(f"{len(at.nodes)} nodes share {len(tables)} tables")
        at.suffer_alone(faults["alone"], len(tables), pause)
        at.suffer(faults["overlapping"], pause)
        told("all faults have struck; what is left of them ends")
        at.ready()
        time.sleep(arm.lease / 3)
        feed.finish()
        at.end()
        try:
            at.agents.polynya("run", "--once", "--apply", "always", "--project", str(folder))
        except Failed as failure:
            at.problems.append(str(failure))
        rows = sum(len(one.events) for one in sources)
        found = _found(at, judge(folder, tables), arm, rows=rows, faults=faults)
    _tell(found, told)
    return found


def _found(
    at: World, verdicts: Sequence[Verdict], arm: Arm, *, rows: int, faults: Mapping[str, int]
) -> Found:
    said = at.agents.said()
    claimed = claims(said, at.launches)
    kinds = Counter(one["type"] for one in said)
    counts = Counter(
        {
            "faults": len(at.struck),
            "rows": rows,
            "batches": kinds["batch.copied"],
            "claims": kinds["unit.claimed"],
            "releases": kinds["unit.released"],
            "lost units": kinds["unit.lost"],
            "fenced commits": kinds["unit.fenced"],
            "alarms": kinds["unit.alarm"],
        }
    )
    counts.update(met(claimed))
    for node in at.nodes.values():
        counts.update({f"requests: {fate}": n for fate, n in node.proxy.fates.items()})
    counts.update({f"ended by itself, {what}": n for what, n in at.unplanned.items()})
    alone, overlapping = by_phase(said, at.struck, faults["alone"], arm.lease)
    return Found(
        tuple(at.struck),
        counts,
        alone,
        overlapping,
        tuple(verdicts),
        (*at.problems, *forgotten(claimed, at.records())),
        too_late(alone, overlapping, arm.lease),
        vacuous(counts, alone, overlapping, faults=faults),
    )


def _tell(found: Found, say: Callable[[str], None]) -> None:
    say("the tables, against what landed:")
    for one in found.verdicts:
        say(f"   {one.name:<14} {one.wanted:>6} rows: {one.lost} lost, {one.surplus} too many")
    for phase, spreads in (("one at a time", found.alone), ("overlapping", found.overlapping)):
        say(f"faults that struck {phase}:")
        for what, spread in spreads.items():
            if spread is not None:
                say(
                    f"   {what:<50} {spread.count:4} times: median {spread.median:.1f} s, "
                    f"p99 {spread.p99:.1f} s, most {spread.most:.1f} s"
                )
    for what, number in found.counts.items():
        say(f"   {what:<40} {number:8,}")
    for problem in (*found.problems, *found.late, *found.vacuous):
        say(problem)
    say("0 lost, 0 duplicated" if not found.wrong else f"{found.wrong} rows are wrong")


def _clean(folder: Path) -> None:
    """Empty the folder; one that is not of this check is left alone."""
    if folder.exists() and any(folder.iterdir()) and not (folder / _MARK).exists():
        raise Failed(f"{folder} was not made by this check; it was left alone")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / _MARK).touch()


if __name__ == "__main__":
    sys.exit(main())
