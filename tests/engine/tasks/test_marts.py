"""A data mart in Spark over live tables shows what plain Python says, after random histories."""

from __future__ import annotations

import os
from datetime import datetime
from random import Random
from typing import Any

import pytest
from ruamel.yaml import YAML

from polynya.engine.commands.rebuild import recreate
from polynya.engine.runner import run_once, units
from polynya.model.config.derived import DerivedTask
from polynya.model.config.mart import DataMart
from polynya.model.config.settings import DatasetSettings
from polynya.model.config.task import StorageTask, resolved
from polynya.model.project_marts import as_mart
from polynya.observe.engine import RowsDerived
from tests.derived.mart_shop import BEGIN, MART, TABLES, Change, Shop, changes, check, row
from tests.lab.lab import Feed, Lab, drop, put

SEED = int(os.environ.get("POLYNYA_TEST_SEED", "1"))


class LiveShop:
    """The tables of a shop in a lab, a mart over them, and what both have to show."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.shop = Shop()
        self.feeds = {name: self._feed(name) for name in TABLES}
        self.tasks: list[StorageTask] = [feed.task for feed in self.feeds.values()]
        document = YAML(typ="safe").load(MART.replace("BEFORE", "first_version"))
        document |= {
            "name": f"{lab.schema}_mart",
            "from": [task.name for task in self.tasks],
        }
        mart = DataMart.model_validate(document)
        made = as_mart(mart, {task.name: task for task in self.tasks}, DatasetSettings())
        assert isinstance(made, DerivedTask)
        self.mart = made
        self._count = 0

    def _feed(self, name: str) -> Feed:
        columns = TABLES[name]
        times = {one: kind for one, kind in columns.items() if kind == "timestamp"}
        return self.lab.feed(
            name,
            task={"name": f"{self.lab.schema}_{name}"},
            keys=[next(iter(columns))],
            columns=times or None,
        )

    def land(self, changes: list[Change]) -> None:
        """Land changes; late ones have their place in the order of the source."""
        records: dict[str, list[dict[str, Any]]] = {}
        for change in changes:
            self._count += 1
            self.shop.take(change)
            order = int((change.at - BEGIN).total_seconds()) * 100_000 + self._count
            names = iter(TABLES[change.table])
            record: dict[str, Any] = {next(names): change.key}
            for column, value in zip(names, change.values or (), strict=False):
                record[column] = value.isoformat() if isinstance(value, datetime) else value
            record |= {"op": "D" if change.values is None else "U", "seq": order}
            records.setdefault(change.table, []).append(record | {"at": change.at.isoformat()})
        for log in self.shop.log.values():
            log.sort(key=lambda change: change.at)
        for name, landed in records.items():
            self.feeds[name].land(*landed)

    def run(self) -> None:
        """One run of all tasks, as `polynya run --once` has it."""
        context = self.lab.context("never")
        tasks = [self.mart, *self.tasks]
        for failure in run_once(context, units(context, tasks)).failures.values():
            raise failure

    def answer(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query over the mart."""
        table = self.lab.spark.sql(sql.replace("sales.", f"{self.mart.schema_}.")).toArrow()
        return [tuple(one.values()) for one in table.to_pylist()]

    def steps(self) -> int:
        """How many times a table of the mart was derived."""
        return sum(isinstance(event, RowsDerived) for event in self.lab.events)

    def keys(self) -> set[tuple[Any, ...]]:
        """Surrogate keys of customers with what they stand for."""
        return set(self.answer("SELECT customer_id, valid_from, customer_key FROM sales.customer"))


@pytest.mark.slow
def test_a_star_follows_random_histories_and_keeps_its_keys(lab: Lab) -> None:
    """Late changes, deletes, rows that refer to nothing yet; an apply, and a new dimension."""
    random, live = Random(SEED), LiveShop(lab)
    # Every column has a value once, so that all tables have all columns.
    live.land([Change(name, 1, BEGIN, whole_row(name, random)) for name in TABLES])
    for _ in range(2):
        live.land(changes(random, 40))
        live.run()
        check(live.answer, live.shop)

    steps = live.steps()
    live.feeds["customer"].apply()
    live.run()
    assert live.steps() == steps, "an apply of an input causes no step"

    keys = live.keys()
    (customer,) = (one for one in live.mart.datasets if one.name == "customer")
    recreate(lab.context(), live.mart, [resolved(live.mart, customer)], whole_task=False)
    live.run()
    assert live.keys() == keys
    check(live.answer, live.shop)


def whole_row(table: str, random: Random) -> tuple[Any, ...]:
    """A row without NULL."""
    while None in (values := row(table, 1, random)):
        pass
    return values


@pytest.mark.slow
def test_a_deleted_member_keeps_its_facts_with_soft_deletes(lab: Lab) -> None:
    people, orders = (
        lab.feed(name, task={"name": f"{lab.schema}_{name}"}) for name in ("people", "orders")
    )
    document: dict[str, Any] = {
        "apiVersion": "polynya/v1",
        "kind": "data_mart",
        "name": f"{lab.schema}_mart",
        "from": [people.task.name, orders.task.name],
        "relationships": [{"from": "orders", "to": "people", "on": {"person": "id"}}],
        "dimensions": [
            {"name": "kept", "table": "people", "keys": ["id"], "columns": ["city"],
             "delete_mode": "soft"},
            {"name": "gone", "table": "people", "keys": ["id"], "columns": ["city"]},
        ],
        "facts": [
            {"name": "sold", "table": "orders", "keys": ["id"], "dimensions": ["kept", "gone"]},
        ],
    }  # fmt: skip
    sources = {feed.task.name: feed.task for feed in (people, orders)}
    mart = as_mart(DataMart.model_validate(document), sources, DatasetSettings())
    assert isinstance(mart, DerivedTask)

    def cities() -> list[Any]:
        context = lab.context("never")
        for failure in run_once(
            context, units(context, [mart, *sources.values()])
        ).failures.values():
            raise failure
        schema = mart.schema_
        return lab.rows(
            f"SELECT k.city AS kept, g.city AS gone FROM {schema}.sold s "
            f"JOIN {schema}.kept k ON k.kept_key = s.kept_key "
            f"JOIN {schema}.gone g ON g.gone_key = s.gone_key"
        )

    people.land(put(1, 1, city="Ulm"), put(2, 2, city="Bonn"))
    orders.land(put(7, 1, person=1))
    assert cities() == [("Ulm", "Ulm")]

    people.land(drop(1, 3))
    assert cities() == [("Ulm", None)]
