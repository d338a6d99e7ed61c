"""Random histories through files and the CLI: the views equal the fold at every step.

One project holds datasets of every kind (history or not, soft deletes, coalescing, composite keys,
native and Debezium records, several arrivals of the same events); each step lands a part of every
one in random order, and whether it applies alternates.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.oracle.arrivals import VARIATIONS
from tests.oracle.cases import DATA, Case
from tests.oracle.expect import history_rows
from tests.oracle.fold import UPSERT, Event, append_only, fold
from tests.oracle.histories import (
    SeededChoices,
    Shape,
    captured_history,
    ignoring_nulls,
    native_history,
    seeded,
)
from tests.oracle.packs.datasets import Dataset, arrivals
from tests.oracle.packs.driver import Driver
from tests.oracle.packs.pack import Pack, alternating
from tests.oracle.packs.read_back import partition_counts
from tests.oracle.strategies import captured_events, deliveries, native_events
from tests.oracle.values import as_time, bag, canonical, difference

pytestmark = [pytest.mark.spark, pytest.mark.slow]
STEPS = 3
SEED = int(os.environ.get("POLYNYA_TEST_SEED", "1"))
EXAMPLES = int(os.environ.get("POLYNYA_TEST_EXAMPLES", "1"))
EVENTS = int(os.environ.get("POLYNYA_TEST_EVENTS", "300"))

TYPED = ("name", "n", "x", "ok", "tags", "more", "amount", "day", "seen")
PLAIN = Shape(columns=TYPED, key_count=40, truncates=1)
PAIRS = Shape(keys=("id", "part"), columns=("name", "n"), key_count=40)
SPOILED = Shape(columns=("name",), key_count=20, bad=10)
CALM = Shape(columns=("name", "n", "ok"), key_count=40, nulls=50)
LARGE = Shape(columns=("name", "amount", "note", "tags"), key_count=40, truncates=1)
SPARSE = Shape(columns=("name", "n", "tags"), key_count=40, nulls=50, truncates=1)
IGNORE = {"ignore_null_updates": True}
LOADED = Shape(keys=("id", "part"), columns=("name", "note"), key_count=40, loads=60, truncates=1)


def _datasets() -> dict[str, Dataset]:
    plain = native_history(seeded(SEED), PLAIN, EVENTS)
    large = captured_history(seeded(SEED + 1), LARGE, EVENTS)
    loaded = captured_history(seeded(SEED + 2), LOADED, EVENTS)
    sparse = native_history(seeded(SEED + 18), SPARSE, EVENTS)

    def native(name: str, shape: Shape, events: list, seed: int, **how: object) -> Dataset:
        return Dataset(
            "native", name, shape.keys, shape.columns, arrivals(events, STEPS, SEED + seed), **how
        )

    def captured(name: str, shape: Shape, events: list, seed: int, **how: object) -> Dataset:
        return Dataset(
            "captured",
            name,
            shape.keys,
            shape.columns,
            arrivals(events, STEPS, SEED + seed),
            format="debezium",
            **how,
        )

    made = [
        native("typed", PLAIN, plain, 1),
        native("typed_again", PLAIN, plain, 2),
        native("typed_current", PLAIN, plain, 3, history=False),
        native("typed_soft", PLAIN, plain, 4, soft=True),
        native("typed_soft_current", PLAIN, plain, 5, soft=True, history=False),
        native("pairs", PAIRS, native_history(seeded(SEED + 3), PAIRS, EVENTS), 6),
        native("spoiled", SPOILED, native_history(seeded(SEED + 4), SPOILED, EVENTS // 2), 7),
        native("calm", CALM, native_history(seeded(SEED + 5), CALM, EVENTS), 8, coalesce=True),
        native(
            "tracked",
            CALM,
            native_history(seeded(SEED + 6), CALM, EVENTS),
            9,
            coalesce=True,
            tracked=("ok",),
        ),
        native("sparse", SPARSE, ignoring_nulls(sparse), 15, extra=IGNORE),
        native("sparse_current", SPARSE, ignoring_nulls(sparse), 16, history=False, extra=IGNORE),
        native(
            "sparse_some",
            SPARSE,
            ignoring_nulls(sparse, ("n", "tags")),
            17,
            soft=True,
            history=False,
            extra={"ignore_null_updates": ["n", "tags"]},
        ),
        captured("large", LARGE, large, 10),
        captured("large_current", LARGE, large, 11, history=False),
        captured("large_soft", LARGE, large, 12, soft=True),
        captured("loaded", LOADED, loaded, 13),
        captured("loaded_current", LOADED, loaded, 14, history=False),
    ]
    return {dataset.name: dataset for dataset in made}


DATASETS = _datasets()


@dataclass
class Outcome:
    """Mismatches of every dataset, by moment."""

    driver: Driver
    directory: Path
    found: dict[str, list[str]] = field(default_factory=dict)

    def check(self, moment: str, step: int) -> None:
        """Compare all views with the fold of what has landed."""
        wanted = [(name, sql) for name, one in DATASETS.items() for sql in one.statements()]
        results = self.driver.query(self.directory, [sql for _, sql in wanted])
        for name, dataset in DATASETS.items():
            mine = [rows for (owner, _), rows in zip(wanted, results, strict=True) if owner == name]
            texts = [f"{moment}: {text}" for text in dataset.mismatches(mine, step)]
            self.found.setdefault(name, []).extend(texts)


@pytest.fixture(scope="session")
def outcome(driver: Driver, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """All steps run; views compared after each, and once more when everything is applied."""
    made = Outcome(driver, tmp_path_factory.mktemp("histories"))
    pack = Pack(made.directory, [dataset.landing() for dataset in DATASETS.values()])
    pack.run(driver, alternating, after=lambda step: made.check(alternating(step), step + 1))
    driver.run_project(made.directory, "always")
    made.check("applied", STEPS)
    return made


@pytest.mark.parametrize("name", DATASETS)
def test_views_equal_the_fold_at_every_step(outcome: Outcome, name: str) -> None:
    assert not outcome.found[name], "\n".join(outcome.found[name])[:6000]


def test_rejected_rows_are_in_quarantine(outcome: Outcome) -> None:
    rejected = fold(DATASETS["spoiled"].landed()).rejected

    assert partition_counts(outcome.directory, "native", "spoiled")["quarantine"] == rejected > 0


@pytest.mark.parametrize("variation", ["given", "reversed"])
def test_the_public_random_histories(driver: Driver, tmp_path: Path, variation: str) -> None:
    """Expected rows are those of Spark's own reconciler; given order: after every batch."""
    corpora = json.loads((DATA / "random_histories.json").read_text("utf-8"))["corpora"]
    for corpus in corpora:
        case = Case.of_corpus(corpus)
        batches = VARIATIONS[variation](case.batches)
        events = [[case.event(row) for row in batch] for batch in batches]
        flat = [[_numbered(event) for event in batch] for batch in events]
        columns = tuple(case.data_columns)
        dataset = Dataset("corpus", "histories", ("id",), columns, flat, coalesce=True)
        found: list[str] = []

        def after(step: int, dataset: Dataset = dataset, found: list = found) -> None:
            found += dataset.mismatches(driver.query(tmp_path, dataset.statements()), step + 1)

        Pack(tmp_path, [dataset.landing()]).run(driver, alternating, after=after)
        wanted = corpus["expected_after_each_batch"][-1]
        columns = "id, a, b, hdr__from_timestamp AS f, hdr__to_timestamp AS t"
        view = f"{dataset.view}__history"
        (rows,) = driver.query(tmp_path, [f"SELECT {columns} FROM {view} WHERE NOT hdr__deleted"])
        got = [(r["id"], r["a"], r["b"], as_time(r["f"]), as_time(r["t"])) for r in rows]

        assert not found, "\n".join(found)[:6000]
        assert difference(bag(case.timed(wanted)), bag(got)) == ""
        assert len(history_rows(case, fold(map(case.event, case.rows)))) == len(wanted)


def _numbered(event: Event) -> Event:
    """The event with its bare sequence number, as native records carry it."""
    return replace(event, sequence=event.sequence[1][0])


def test_undecided_ties_are_the_same_in_any_arrival(driver: Driver, tmp_path: Path) -> None:
    """Upserts of equal sequence and no position: the greater content wins, whoever comes first."""
    shape = Shape(columns=("name", "n"), key_count=4, deletes=0, equal_sequence=0)
    first = native_history(seeded(SEED + 7), shape, 24)
    choices = seeded(SEED + 8)
    events = [*first, *(_other(event, choices) for event in first[::2])]
    made = [
        Dataset("ties", f"t{n}", ("id",), shape.columns, arrivals(events, STEPS, n))
        for n in range(3)
    ]
    assert fold(events).ties

    Pack(tmp_path, [one.landing() for one in made]).run(driver, alternating)

    results = driver.query(tmp_path, [text for one in made for text in one.statements()])
    shown = [(canonical(results[i]), canonical(results[i + 1])) for i in (0, 2, 4)]
    contents = [(bag(r.values() for r in a), bag(r.values() for r in b)) for a, b in shown]
    assert contents[0] == contents[1] == contents[2]


def _other(event: Event, choices: SeededChoices) -> Event:
    return replace(event, values={"name": f"other{choices.integer(0, 9)}", "n": 7})


def test_append_only_keeps_every_landed_row(driver: Driver, tmp_path: Path) -> None:
    shape = Shape(columns=("name", "n", "x"), deletes=0, equal_sequence=0)
    events = native_history(seeded(SEED + 9), shape, 60)
    dataset = Dataset(
        "plain",
        "log",
        (),
        ("id", *shape.columns),
        arrivals([_unkeyed(event) for event in events], STEPS, 4),
        history=False,
        extra={
            "mode": "append_only",
            "keys": [],
            "sequence_by": [],
            "apply_as_deletes": None,
            "apply_as_truncates": None,
        },
    )

    Pack(tmp_path, [dataset.landing()]).run(driver, alternating)

    (rows,) = driver.query(tmp_path, dataset.statements())
    names = dataset.columns
    assert Counter(bag(tuple(row[name] for name in names) for row in rows)) == Counter(
        bag(tuple(canonical(v.get(n)) for n in names) for v in append_only(dataset.landed()))
    )


def _unkeyed(event: Event) -> Event:
    return replace(event, key=(), values={"id": event.key[0], **event.values})


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(st.data())
def test_hypothesis_finds_no_history_that_differs(
    driver: Driver, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Eight small histories of Hypothesis' own taste, in one project."""
    directory = tmp_path_factory.mktemp("drawn")
    made = []
    for number in range(4):
        events = data.draw(native_events(Shape(key_count=3, truncates=8), most=16))
        made.append(
            Dataset(
                "drawn_native",
                f"n{number}",
                ("id",),
                ("name", "n"),
                data.draw(deliveries(events)),
                history=number != 3,
            )
        )
        events = data.draw(captured_events(most=16))
        made.append(
            Dataset(
                "drawn_captured",
                f"c{number}",
                ("id",),
                ("name", "note"),
                data.draw(deliveries(events)),
                format="debezium",
                history=number != 3,
            )
        )
    # Columns are known from the data: a dataset without any row of values has none to query.
    made = [one for one in made if any(event.op == UPSERT for event in one.landed())]
    if not made:
        return

    Pack(directory, [one.landing() for one in made]).run(driver, alternating)

    results = iter(driver.query(directory, [text for one in made for text in one.statements()]))
    found = [
        text for one in made for text in one.mismatches([next(results) for _ in one.statements()])
    ]
    assert not found, "\n".join(found)
