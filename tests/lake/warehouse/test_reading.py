"""How long a project's tables keep what a query reads."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from polynya.lake.warehouse.readers import shortest_expiry
from polynya.model.loader import load_project
from tests.projects import write_project

TASK = """apiVersion: polynya/v1
kind: storage
name: shop
landing: {{path: shop, format: json}}
schema: shop
defaults: {{keys: [id], sequence_by: [n]{defaults}}}
datasets: [{{name: users{dataset}}}]
"""


def shortest(folder: Path, defaults: str = "", dataset: str = "") -> timedelta:
    write_project(folder)
    task = folder / "tasks" / "shop.yml"
    task.parent.mkdir(exist_ok=True)
    task.write_text(TASK.format(defaults=defaults, dataset=dataset))
    return shortest_expiry(load_project(folder))


def test_the_shortest_expiry_of_a_project_is_that_of_any_dataset(tmp_path: Path) -> None:
    short = ", maintenance: {{snapshot_expiry: {{age: {}}}}}"

    assert shortest(tmp_path) == timedelta(hours=2)
    assert shortest(tmp_path, short.format("30m")) == timedelta(minutes=30)
    assert shortest(tmp_path, short.format("1d"), short.format("10m")) == timedelta(minutes=10)
