"""What `make cluster-demo` runs: agents that share a project, lose nodes and get new ones.

A moto server holds the configuration and the coordination, a local Kinesis server the heartbeats;
where that is not installed it is a folder, which the first and the last lines say. Files land all
the time. Exit code 1 when a table does not hold exactly what landed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from polynya.testing.fake_imds import fake_imds
from tests.cluster_demo import captured, project
from tests.cluster_demo.agents import Agents, Failed
from tests.cluster_demo.folder import clean
from tests.cluster_demo.judge import Verdict
from tests.cluster_demo.servers import BUCKET, credentials, s3_server, stream
from tests.cluster_demo.story import Story
from tests.oracle.packs.driver import ROOT

FOLDER = ROOT / "build" / "cluster-demo"
_MARK = ".cluster-demo"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster_demo", description=__doc__)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where it works; made anew")
    parser.add_argument("--rows", type=int, default=600, help="rows of each table")
    parser.add_argument("--short", action="store_true", help="only a crash and a Spot notice")
    options = parser.parse_args(arguments)
    try:
        return tell(options.folder.resolve(), rows=options.rows, short=options.short)
    except Failed as failure:
        print(failure, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def tell(folder: Path, *, rows: int, short: bool, out: Callable[[str], None] = print) -> int:
    """Tell the story in a folder; 0 when nothing was lost and nothing duplicated."""
    began = time.monotonic()

    def say(text: str) -> None:
        out(f"{time.monotonic() - began:6.1f} s  {text}")

    clean(folder, _MARK)
    tables = captured.datasets(rows)
    config, coordination = f"s3://{BUCKET}/config", f"s3://{BUCKET}/coordination"
    project.write(folder, config, tables)
    with s3_server() as endpoint, stream(folder) as told, fake_imds() as imds:
        say(f"a moto server at {endpoint} has the bucket; {told.text}")
        variables = {
            **credentials(endpoint),
            **told.variables,
            "POLYNYA_COORDINATION": coordination,
            "POLYNYA_CLUSTER": "demo",
        }
        options = ["--config", config, "--stream", told.name, "--drain-seconds", "60"]
        agents = Agents(folder, options, variables)
        feeder = project.Feeder(
            folder / "landing", tables, files=rows // 20, shares=4 if short else 6
        )
        story = Story(folder, agents, tables, imds, feeder, say)
        try:
            agents.polynya("config", "push", "--project", str(folder))
            say(f"{len(tables)} tables in {len({one.task for one in tables})} tasks, pushed to S3")
            story.begin()
            story.crash()
            if not short:
                story.join()
                story.stall()
            story.interrupt()
            if not short:
                last = tables[-1]
                story.edit(replace(last, name="lines_late", events=last.events[: rows // 4]))
            verdicts = story.finish()
        finally:
            agents.end()
    say(told.text)
    return _conclude(story, verdicts, say)


def _conclude(story: Story, verdicts: Sequence[Verdict], say: Callable[[str], None]) -> int:
    say("the tables, against what landed:")
    for one in verdicts:
        say(f"   {one.name:<14} {one.wanted:>6} rows: {one.lost} lost, {one.surplus} too many")
    for what, seconds in story.figures.items():
        say(f"   {what:<58} {seconds:6.1f} s")
    say("   " + ", ".join(f"{number} {what}" for what, number in story.counts.items()))
    wrong = sum(one.lost + one.surplus for one in verdicts)
    say("0 lost, 0 duplicated" if not wrong else f"{wrong} rows are wrong")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
