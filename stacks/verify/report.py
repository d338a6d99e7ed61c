"""The report of a verification: each step, how real it was, what it took, and what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from stacks.settings import prices
from stacks.settings.stage import StageConfig
from stacks.verify.run import Ending, Result
from stacks.verify.steps import Fidelity, Planned


def passed(results: Sequence[Result]) -> bool:
    """Whether nothing failed."""
    return not any(result.ending is Ending.FAILED for result in results)


def planned_lines(steps: Sequence[Planned]) -> Iterator[str]:
    """What will be done, before anything is."""
    for planned in steps:
        real = "" if planned.fidelity is Fidelity.REAL else f" ({_how(planned)})"
        yield f"{planned.step.name:<10} {planned.step.why}{real}"


def result_line(result: Result) -> str:
    """One line as a step ends."""
    took = result.ended - result.began
    return f"{result.planned.step.name:<10} {result.ending} after {took:.0f} s: {result.said}"


def report(results: Sequence[Result], stage: StageConfig, left: Sequence[str]) -> str:
    """The whole report, in Markdown."""
    lines = ["# Verification of a deployment", "", _verdict(results), ""]
    lines += ["| step | result | how real | seconds | what was seen | what it shows |"]
    lines += ["|---|---|---|---|---|---|"]
    for each in results:
        seconds = f"{each.ended - each.began:.0f}"
        seen = " ".join(each.said.split()).replace("|", "\\|")
        step = each.planned.step
        lines.append(f"| {step.name} | {each.ending} | {_how(each.planned)} | {seconds} | {seen} | "
                     f"{step.why} |")  # fmt: skip
    lines += ["", "## Cost", "", *_cost(results, stage), "", "## Left", ""]
    lines += [f"- {each}" for each in left] or ["Nothing."]
    return "\n".join(lines) + "\n"


def _how(planned: Planned) -> str:
    return f"{planned.fidelity}: {planned.because}" if planned.because else str(planned.fidelity)


def _verdict(results: Sequence[Result]) -> str:
    endings = Counter(result.ending for result in results)
    real = sum(
        result.ending is Ending.PASSED and result.planned.fidelity is Fidelity.REAL
        for result in results
    )
    said = "passed" if passed(results) else "FAILED"
    return (
        f"{said}: {endings[Ending.PASSED]} of {len(results)} steps passed, {real} of them real; "
        f"{endings[Ending.FAILED]} failed, {endings[Ending.SKIPPED]} skipped."
    )


def _cost(results: Sequence[Result], stage: StageConfig) -> Iterator[str]:
    began = {result.planned.step.name: result for result in results}
    if began["deploy"].ending is Ending.SKIPPED:
        yield "Nothing was created."
        return
    if began["deploy"].planned.fidelity is not Fidelity.REAL:
        yield "Nothing: no account was used. An hour of the same stage:"
        yield ""
        hours = 1.0
    else:
        hours = (began["destroy"].ended - began["deploy"].began) / 3600
    lines = dollars(stage, hours)
    yield from ["| line | dollars |", "|---|---|"]
    yield from (f"| {name} | {cost:.2f} |" for name, cost in lines)
    yield f"| **{hours:.1f} hours** | **{sum(cost for _, cost in lines):.2f}** |"
    yield ""
    yield f"List prices of us-east-1, {prices.AS_OF}; two nodes all the time; no requests, no logs."


def dollars(stage: StageConfig, hours: float) -> list[tuple[str, float]]:
    """What a trial of so many hours costs at most, by part."""
    zones = stage.network.endpoint_zones or stage.network.zone_count
    endpoints = len(stage.endpoints) * zones
    month = hours / prices.HOURS_A_MONTH
    nodes = prices.node_hours(spot=2 * hours, on_demand=0, root_volume_gib=50)
    lines = [
        (f"interface endpoints: {endpoints}", endpoints * prices.ENDPOINT_ZONE_HOUR * hours),
        ("nodes: 2 on Spot", nodes),
        ("key", prices.KEY_MONTH * month),
        ("fault injection, 3 minutes", 3 * prices.FAULT_ACTION_MINUTE),
    ]
    if stage.stream.enabled:
        lines.append(("workload stream", stage.stream.shards * prices.SHARD_HOUR * hours))
    return lines
