"""What `make demo-streams` runs: a Kafka broker and a Kinesis server become live tables.

A generator writes nested events, with bad ones among them, to both. Both are landed every second
and transformed into an append-only table and a merged one with history. Meanwhile the broker and
Polynya are killed and a shard is split. Exit code 1 when the end is not exactly what was written.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.aws import REGION
from tests.cluster_demo.agents import Failed
from tests.cluster_demo.folder import clean
from tests.oracle.packs.driver import ROOT
from tests.streams_demo import project
from tests.streams_demo.generator import Generator, KinesisWriter, kafka_writer
from tests.streams_demo.judge import Verdict
from tests.streams_demo.messages import messages
from tests.streams_demo.program import Program
from tests.streams_demo.servers import servers
from tests.streams_demo.story import Story

FOLDER = ROOT / "build" / "streams-demo"
_MARK = ".streams-demo"
#: Seconds between two groups of messages.
_PAUSE = 0.25


def _print(text: str) -> None:
    print(text, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.streams_demo", description=__doc__)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where it works; made anew")
    parser.add_argument(
        "--rate", type=int, default=100, help="messages a second to each source, 4 to 200"
    )
    options = parser.parse_args(arguments)
    if not 4 <= options.rate <= 200:
        parser.error("--rate is from 4 to 200")
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, _interrupted)
    try:
        return tell(options.folder.resolve(), rate=options.rate)
    except Failed as failure:
        print(failure, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; all that it started is ended", file=sys.stderr)
        return 130


def tell(folder: Path, *, rate: int, out: Callable[[str], None] = _print) -> int:
    """Tell the story in a folder; 0 when nothing was lost, doubled or wrong."""
    began = time.monotonic()

    def say(text: str) -> None:
        out(f"{time.monotonic() - began:6.1f} s  {text}")

    clean(folder, _MARK)
    with ExitStack() as stack:
        say("a Kafka broker and a Kinesis server start on this machine")
        started = stack.enter_context(servers(folder))
        project.write(folder, started.broker.address, started.endpoint, REGION)
        writers: dict[str, Any] = {
            "kafka": stack.enter_context(kafka_writer(started.broker, project.STREAM)),
            "kinesis": KinesisWriter(started.kinesis, project.STREAM),
        }
        generators = {
            source: Generator(writer, messages(seed, int(rate * _PAUSE)), _PAUSE)
            for seed, (source, writer) in enumerate(writers.items())
        }
        program = Program(folder)
        stack.callback(program.end)
        story = Story(folder, started, program, generators, say)
        story.begin()
        story.kill_after("stream.landed", "a batch has just landed")
        story.kill_broker()
        story.split_shard()
        story.kill_after("batch.copied", "a batch was just copied")
        verdicts = story.finish()
    return _conclude(story, verdicts, say)


def _conclude(story: Story, verdicts: Sequence[Verdict], say: Callable[[str], None]) -> int:
    count = story.program.count
    say(f"{len(story.faults)} faults: {'; '.join(story.faults)}")
    say(f"{count('stream.landed'):,} batches landed, {count('batch.copied'):,} batches copied")
    width = max(len(one.name) for one in verdicts)
    say(f"   {'':<{width}}  written   found  lost  doubled  wrong")
    for one in verdicts:
        say(
            f"   {one.name:<{width}}  {one.wanted:>7,} {one.found:>7,}"
            f" {one.lost:>5} {one.doubled:>8} {one.wrong:>6}"
        )
    bad = [one.name for one in verdicts if not one.holds]
    say(f"NOT as written: {', '.join(bad)}" if bad else "0 lost, 0 doubled, 0 wrong")
    return int(bool(bad))


def _interrupted(*_given: object) -> None:
    """End at Ctrl-C, or when asked to. A second one does not disturb the clearing up."""
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
