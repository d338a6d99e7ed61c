"""`python -m stacks.verify --stage NAME --yes`: try a stage like NAME in your account."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from polynya.model.errors import ConfigErrors
from stacks.settings.cluster_checks import PROJECT
from stacks.settings.loader import load_deployment
from stacks.settings.stage import StageConfig
from stacks.verify.account import Account
from stacks.verify.edge import Edge
from stacks.verify.report import dollars, passed, planned_lines, report, result_line
from stacks.verify.run import Clock, run
from stacks.verify.steps import plan
from stacks.verify.teardown import TearDown
from stacks.verify.throwaway import write_stage
from stacks.verify.trial import Trial

FOLDER = PROJECT / "build" / "verify"


class SystemClock:
    """The clock of this machine."""

    def now(self) -> float:
        """Seconds since some moment."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


def main(arguments: Sequence[str] | None = None) -> int:
    """Say what will be done; do it when `--yes` is given. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m stacks.verify", description=__doc__)
    parser.add_argument("--stage", required=True, help="the stage that the trial is like")
    parser.add_argument("--yes", action="store_true", help="create and destroy resources, and pay")
    options = parser.parse_args(arguments)
    try:
        like = load_deployment(PROJECT / "config").stage(options.stage)
    except ConfigErrors as errors:
        print(errors.render(), file=sys.stderr)
        return errors.exit_code
    stage = write_stage(like, FOLDER / "config")
    clock = SystemClock()
    # A service manager's stop is a stop by hand: what was created is removed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return verify(Account(stage, clock, FOLDER), stage, clock, FOLDER, confirmed=bool(options.yes))


def verify(edge: Edge, stage: StageConfig, clock: Clock, folder: Path, *, confirmed: bool) -> int:
    """Run the steps at an edge, print the report and write it to `folder`; returns the exit code.

    Without confirmation the plan is printed, and nothing is done.
    """
    steps = plan(edge.fidelity)
    print(*planned_lines(steps), sep="\n")
    if not confirmed:
        hour = sum(cost for _, cost in dollars(stage, 1))
        print(
            f"\nnothing was done. It takes about an hour and costs about ${hour:.2f} at list "
            "prices. fix: add YES=1 to do it"
        )
        return 2
    print()
    trial, teardown = Trial(edge, clock, folder), TearDown(edge)
    actions = {**trial.by_name(), **teardown.by_name()}
    results = run(steps, actions, clock, lambda result: print(result_line(result), flush=True))
    text = report(results, stage, teardown.remains)
    (folder / "report.md").write_text(text, "utf-8")
    print(f"\n{text}")
    return 0 if passed(results) else 1


if __name__ == "__main__":
    sys.exit(main())
