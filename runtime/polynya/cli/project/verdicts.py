"""How a test of a task went, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator

from polynya.cli.output import Output
from polynya.testing.rows import Difference, Row
from polynya.testing.runner import Comparison, Verdict

#: Differences of one relation that are shown to people.
MOST_SHOWN = 20


def tell(output: Output, verdict: Verdict) -> None:
    """Say how a test went: one JSON line, or a line and what differs."""
    test = verdict.test
    seconds = round(verdict.seconds, 1)
    data: dict[str, object] = {
        "name": test.test.name,
        "task": test.task.name,
        "dataset": test.dataset.name,
        "where": test.where(),
        "ok": verdict.ok,
        "seconds": seconds,
        "relations": [_as_dict(verdict, one) for one in verdict.comparisons],
    }
    if verdict.error is not None:
        data["error"] = verdict.error.as_dict()
    head = f"{'ok  ' if verdict.ok else 'FAIL'}  {test.task.name}: {test.test.name} ({seconds} s)"
    output.result("test", data, "\n".join([head, *_lines(verdict)]))


def _as_dict(verdict: Verdict, one: Comparison) -> dict[str, object]:
    return {
        "relation": one.relation,
        "ok": one.ok,
        "rows": one.rows,
        "problems": one.problems,
        "differences": [
            {
                "kind": difference.kind,
                "where": _where(verdict, one, difference),
                "columns": difference.columns,
                "expected": difference.expected,
                "found": difference.found,
            }
            for difference in one.differences
        ],
    }


def _lines(verdict: Verdict) -> Iterator[str]:
    if verdict.ok:
        return
    yield f"  --> {verdict.test.where()}"
    if verdict.error is not None:
        yield "  the task failed:"
        yield from (f"  {line}" for line in verdict.error.render().splitlines())
    for one in verdict.comparisons:
        if not one.ok:
            yield from _comparison(verdict, one)


def _comparison(verdict: Verdict, one: Comparison) -> Iterator[str]:
    yield f"  {one.relation} ({one.rows} row{'' if one.rows == 1 else 's'}):"
    yield from (f"    {problem}" for problem in one.problems)
    for difference in one.differences[:MOST_SHOWN]:
        yield from _difference(verdict, one, difference)
    if len(one.differences) > MOST_SHOWN:
        yield f"    and {len(one.differences) - MOST_SHOWN} more"


def _difference(verdict: Verdict, one: Comparison, difference: Difference) -> Iterator[str]:
    where = _where(verdict, one, difference)
    expected, found = difference.expected, difference.found
    if expected is None:
        yield f"    unexpected  {_json(found or {})}"
    elif found is None:
        yield f"    missing     {_json(expected)}  ({where})"
    else:
        same = [name for name in expected if name not in difference.columns]
        shown = [name for name in same if name in verdict.keys] or same
        yield f"    different   {_json({name: expected[name] for name in shown})}  ({where})"
        for name in difference.columns:
            yield f"      {name}: expected {_json(expected[name])}, found {_json(found.get(name))}"


def _where(verdict: Verdict, one: Comparison, difference: Difference) -> str | None:
    if difference.number is None:
        return None
    return verdict.test.where("expect", one.relation, difference.number)


def _json(value: Row | object) -> str:
    return json.dumps(value, ensure_ascii=False)
