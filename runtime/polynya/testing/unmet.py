"""Columns that settings name and that no record of any test has: a typing error, most likely."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from polynya.model.errors import ConfigError
from polynya.testing.runner import Verdict


def unmet_columns(verdicts: Sequence[Verdict]) -> Iterator[ConfigError]:
    """What no test of a dataset could show; `verdicts` are those of all its tests.

    One test may well leave a column out, to show what happens without it.
    """
    tests: dict[tuple[str, str], list[Verdict]] = {}
    for one in verdicts:
        if one.error is None:
            tests.setdefault((one.test.task.name, one.test.dataset.name), []).append(one)
    for (task, dataset), done in tests.items():
        first = {(column.setting, column.column): column for column in done[0].unmet}
        for place in sorted(first):
            if all(any((c.setting, c.column) == place for c in one.unmet) for one in done):
                setting, column = place
                meant = first[place].meant
                guess = f"did you mean `{meant}`? " if meant else ""
                yield ConfigError(
                    "POLYNYA-CFG-030",
                    f"{task}.{dataset}: `{setting}` names `{column}`, "
                    "which no record of its tests has",
                    where=done[0].test.where(),
                    fix=f"{guess}Correct it, give it to a record, or name it under "
                    "`optional_columns`",
                )
