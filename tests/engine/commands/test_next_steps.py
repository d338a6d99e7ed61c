"""What a plan knows of the next step of a derived table, by snapshots of its inputs. No JVM."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table import Table

from polynya.engine.commands.next_steps import NextStep, NextSteps
from polynya.lake.table.state import CopyState, Derivation, SourceColumns
from polynya.model import headers as h
from polynya.model.config.derived import DerivedTask
from polynya.model.loader import load_project
from tests.lake.warehouse.tables import catalog_in
from tests.projects import USERS, write_project

SALES = """\
apiVersion: polynya/v1
kind: transform
name: sales
from: [users, others]
datasets:
  - {name: cities, keys: [city], sql: "SELECT DISTINCT city FROM users JOIN rates USING (city)"}
"""
OTHERS = """\
apiVersion: polynya/v1
kind: registered
name: others
schema: crm
tables:
  - {name: rates, iceberg: bank.rates, keys: [city]}
  - {name: codes, iceberg: bank.codes}
"""
INTERNAL = "shop_internal.users_internal"
READS = {"shop.users", "crm.rates", "crm.codes"}


class Lake:
    """A project with its tables, and the last step of a derived table over them."""

    def __init__(self, folder: Path) -> None:
        write_project(folder, users=USERS, others=OTHERS, sales=SALES)
        (folder / "warehouse").mkdir()
        self.folder = folder
        self.catalog = catalog_in(folder)
        self.users = self._users(CopyState(columns=self._columns()))
        self.rates, self.codes = self._of_others("rates"), self._of_others("codes")
        self.last = self.read()

    def read(self) -> Derivation:
        """A step over the newest snapshots."""
        rates, codes = self.rates.current_snapshot(), self.codes.current_snapshot()
        users = self.users.current_snapshot()
        assert users is not None
        inputs = {
            INTERNAL: users.snapshot_id,
            "registered:crm.rates": rates.snapshot_id if rates else 0,
            "registered:crm.codes": codes.snapshot_id if codes else 0,
        }
        return Derivation("digest", inputs)

    def next_step(self, last: Derivation | None, *, is_edited: bool = False) -> NextStep:
        project = load_project(self.folder)
        (task,) = (one for one in project.tasks if isinstance(one, DerivedTask))
        steps = NextSteps(project, self.catalog)
        return steps.of(task, last, READS, is_edited=is_edited)

    def write(self, rows: int, step: str) -> None:
        """Commit some rows to the table of users."""
        some = pa.table({"userId": range(rows), h.PARTITION: ["changes"] * rows})
        self.users.append(some, snapshot_properties={"polynya.step": step})

    def change_state(self, copy: CopyState) -> None:
        """Give the table of users another state."""
        self.catalog.drop_table(("shop_internal", "users_internal"))
        self.users = self._users(copy)

    @staticmethod
    def _columns() -> SourceColumns:
        return SourceColumns(schema={"userId": "bigint"}, keys=["userId"])

    def keyless(self) -> CopyState:
        return CopyState(columns=SourceColumns(schema={"userId": "bigint"}))

    def _users(self, copy: CopyState) -> Table:
        rows = pa.table(
            {
                "userId": pa.array([None], pa.int64()),
                h.PARTITION: [str(h.Partition.ASSET_STATE)],
                h.COPY_CHANGE_IDENTIFIER: ["1"],
                h.STATE: [copy.to_json()],
            }
        )
        self.catalog.create_namespace_if_not_exists("shop_internal")
        place = str(self.folder / "warehouse" / "shop_internal" / "users_internal")
        names = ("shop_internal", "users_internal")
        made = self.catalog.create_table(names, rows.schema, location=place)
        with made.update_spec() as spec:
            spec.add_identity(h.PARTITION)
        made.append(rows)
        return made

    def _of_others(self, name: str) -> Table:
        self.catalog.create_namespace_if_not_exists("bank")
        made = self.catalog.create_table(("bank", name), pa.schema([("city", pa.string())]))
        made.append(pa.table({"city": ["Oslo"]}))
        return made


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """See `Lake`."""
    return Lake(tmp_path)


def test_the_first_step_and_one_after_an_edit_compute_all(lake: Lake) -> None:
    first, edited = lake.next_step(None), lake.next_step(lake.last, is_edited=True)

    assert first.in_words() == "its first step computes the whole query"
    assert edited.in_words() == (
        "its next step computes the whole query: its query or a setting of an input changed"
    )


def test_changed_rows_of_each_input_are_bounded_by_its_snapshots(lake: Lake) -> None:
    same = lake.next_step(lake.last)
    lake.write(1200, "copy")
    lake.write(500, "apply")
    lake.rates.append(pa.table({"city": ["Rome"]}))
    step = lake.next_step(lake.last)

    assert set(same.changed.values()) == {0}
    assert same.in_words() == "no row of its inputs has changed since its last step"
    assert step == NextStep(None, {"shop.users": 1200, "crm.rates": 1, "crm.codes": 0})
    assert step.in_words() == (
        "since its last step, at most 1,200 rows of shop.users "
        "and at most 1 row of crm.rates changed"
    )


def test_all_is_computed_where_changed_rows_are_not_known(lake: Lake) -> None:
    lake.codes.append(pa.table({"city": ["Rome"]}))
    assert lake.next_step(lake.last).whole == "crm.codes: it is registered without keys"

    # Without keys no change is known, so that each step computes all.
    lake.change_state(lake.keyless())
    assert lake.next_step(lake.read()).whole == "shop.users: it has no keys"


def test_a_snapshot_that_is_gone_is_the_reason_for_all(lake: Lake) -> None:
    gone = Derivation("digest", {**lake.last.inputs, INTERNAL: 77})

    step = lake.next_step(gone)

    assert step.whole == "shop.users: the snapshot that it has read has expired"
    assert step.changed["shop.users"] is None


def test_a_table_that_only_expectations_read_lets_no_step_compute_all(lake: Lake) -> None:
    last = Derivation("digest", {**lake.last.inputs, INTERNAL: 77})
    project = load_project(lake.folder)
    (task,) = (one for one in project.tasks if isinstance(one, DerivedTask))

    step = NextSteps(project, lake.catalog).of(task, last, {"crm.rates"}, is_edited=False)

    assert step.in_words() == (
        "since its last step, an unknown number of rows of shop.users changed"
    )
