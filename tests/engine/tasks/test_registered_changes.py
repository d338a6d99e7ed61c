"""Steps over tables of others follow what their owners did by keys, and show what is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from polynya.lake.read.parquet_folder import FolderChanges
from polynya.lake.spark.catalog import CATALOG
from polynya.model.errors import PolynyaError
from polynya.observe.engine import RowsDerived
from tests.engine.tasks.derived_tables import Derived
from tests.engine.tasks.test_registered import CONVERTED, Registered, last_step
from tests.lab.lab import Feed, Lab, put

COINS: Final = ("CHF", "USD", "EUR", "GBP", "JPY", "SEK")
SCHEMA: Final = pa.schema([("currency", pa.string()), ("rate", pa.int64()), ("at", pa.int64())])
PLAIN: Final = "SELECT currency AS id, rate FROM crm.rates"
#: One row for each currency: a group, and a currency without an order.
SPENT: Final = (
    "SELECT r.currency AS id, max(r.rate) AS rate, count(o.id) AS orders, sum(o.amount) AS amount "
    "FROM crm.rates r LEFT JOIN orders o ON o.currency = r.currency GROUP BY r.currency"
)


class Owner(Protocol):
    """Writes a table of rates as its owner does, and knows its rows."""

    settings: dict[str, Any]
    rates: dict[str, tuple[int, int]]
    #: What it can do, by a name for messages.
    deeds: dict[str, Callable[[Random], None]]


def table_of(rates: dict[str, tuple[int, int]]) -> pa.Table:
    """The rows of some rates."""
    rows = [{"currency": one, "rate": rate, "at": at} for one, (rate, at) in rates.items()]
    return pa.Table.from_pylist(rows, SCHEMA)


@dataclass
class Owned:
    """What all owners have."""

    rates: dict[str, tuple[int, int]] = field(default_factory=dict)
    clock: int = 0

    def some(self, random: Random) -> dict[str, tuple[int, int]]:
        """New values for some of the currencies that there are."""
        self.clock += 1
        known = sorted(self.rates)
        chosen = random.sample(known, min(len(known), random.randint(1, 2)))
        return {one: (random.randint(1, 99), self.clock) for one in chosen}

    def more(self, random: Random) -> dict[str, tuple[int, int]]:
        """Rates of currencies that are not there."""
        self.clock += 1
        missing = [one for one in COINS if one not in self.rates]
        chosen = random.sample(missing, min(len(missing), random.randint(1, 2)))
        return {one: (random.randint(1, 99), self.clock) for one in chosen}


def names(rates: dict[str, tuple[int, int]]) -> str:
    """Their currencies as a list in SQL."""
    return ", ".join(f"'{one}'" for one in rates) or "''"


class IcebergOwner(Owned):
    """An owner with Spark, whose deletes are files of their own."""

    def __init__(self, lab: Lab) -> None:
        super().__init__()
        self.lab = lab
        self.name = f"{lab.schema}_others.rates"
        self.settings = {"iceberg": self.name}
        self.table = f"{CATALOG}.{self.name}"
        lab.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.{lab.schema}_others")
        lab.spark.sql(
            f"CREATE TABLE {self.table} (currency STRING, rate BIGINT, at BIGINT) USING iceberg "
            "TBLPROPERTIES ('format-version' = '2', 'write.delete.mode' = 'merge-on-read', "
            "'write.update.mode' = 'merge-on-read')"
        )
        self.deeds = {
            "append": self.append,
            "update": self.update,
            "delete": self.delete,
            "overwrite": self.overwrite,
            "compact": self.compact,
        }

    def append(self, random: Random) -> None:
        """New rows in a file."""
        self._insert(self.more(random))

    def update(self, random: Random) -> None:
        """Rows get other values: a file of deletes and a new file."""
        for one, (rate, at) in self.some(random).items():
            self.lab.spark.sql(
                f"UPDATE {self.table} SET rate = {rate}, at = {at} WHERE currency = '{one}'"
            )
            self.rates[one] = (rate, at)

    def delete(self, random: Random) -> None:
        """Rows go."""
        gone = self.some(random)
        self.lab.spark.sql(f"DELETE FROM {self.table} WHERE currency IN ({names(gone)})")
        self.rates = {one: row for one, row in self.rates.items() if one not in gone}

    def overwrite(self, random: Random) -> None:
        """All files are replaced, with some other values in them."""
        self.rates |= self.some(random)
        rows = ", ".join(f"('{one}', {rate}L, {at}L)" for one, (rate, at) in self.rates.items())
        if rows:
            self.lab.spark.sql(f"INSERT OVERWRITE {self.table} VALUES {rows}")

    def compact(self, random: Random) -> None:
        """All files become one."""
        del random
        self.lab.spark.sql(
            f"CALL {CATALOG}.system.rewrite_data_files(table => '{self.name}', "
            "options => map('rewrite-all', 'true'))"
        )

    def _insert(self, rates: dict[str, tuple[int, int]]) -> None:
        self.rates |= rates
        rows = ", ".join(f"('{one}', {rate}L, {at}L)" for one, (rate, at) in rates.items())
        if rows:
            self.lab.spark.sql(f"INSERT INTO {self.table} VALUES {rows}")


class DeltaOwner(Owned):
    """An owner with deltalake, which rewrites each file of which a row changes."""

    def __init__(self, place: Path) -> None:
        super().__init__()
        self.place = str(place)
        self.settings = {"delta": self.place}
        write_deltalake(self.place, SCHEMA.empty_table())
        self.deeds = {
            "append": self.append,
            "update": self.update,
            "delete": self.delete,
            "optimize": self.optimize,
            "vacuum": self.vacuum,
        }

    def append(self, random: Random) -> None:
        """New rows in a file."""
        more = self.more(random)
        if more:
            write_deltalake(self.place, table_of(more), mode="append")
        self.rates |= more

    def update(self, random: Random) -> None:
        """Rows get other values."""
        for one, (rate, at) in self.some(random).items():
            updates = {"rate": str(rate), "at": str(at)}
            DeltaTable(self.place).update(predicate=f"currency = '{one}'", updates=updates)
            self.rates[one] = (rate, at)

    def delete(self, random: Random) -> None:
        """Rows go."""
        gone = self.some(random)
        DeltaTable(self.place).delete(f"currency IN ({names(gone)})")
        self.rates = {one: row for one, row in self.rates.items() if one not in gone}

    def optimize(self, random: Random) -> None:
        """Files become one, which says that no row changed."""
        del random
        DeltaTable(self.place).optimize.compact()

    def vacuum(self, random: Random) -> None:
        """Files of older versions go."""
        self.update(random)
        DeltaTable(self.place).vacuum(0, dry_run=False, enforce_retention_duration=False)


class FolderOwner(Owned):
    """An owner who writes files of Parquet."""

    def __init__(self, place: Path) -> None:
        super().__init__()
        self.place = place
        self.settings = {"parquet": str(place)}
        place.mkdir()
        self.files: dict[str, list[str]] = {}
        self.deeds = {"append": self.append, "replace": self.replace, "remove": self.remove}

    def append(self, random: Random) -> None:
        """A new file."""
        more = self.more(random)
        if more:
            self._write(f"{len(self.files)}-{self.clock}.parquet", more)

    def replace(self, random: Random) -> None:
        """A file with other values for its rows."""
        name = random.choice(sorted(self.files))
        self.clock += 1
        self._write(name, {one: (random.randint(1, 99), self.clock) for one in self.files[name]})

    def remove(self, random: Random) -> None:
        """A file goes, but for the last one."""
        if len(self.files) > 1:
            name = random.choice(sorted(self.files))
            (self.place / name).unlink()
            for one in self.files.pop(name):
                del self.rates[one]

    def _write(self, name: str, rates: dict[str, tuple[int, int]]) -> None:
        pq.write_table(table_of(rates), self.place / name)
        self.files[name] = list(rates)
        self.rates |= rates


@dataclass
class History:
    """A table of others, orders in its currencies, and two tables derived from both."""

    lab: Lab
    owner: Any
    random: Random
    orders: dict[int, tuple[str, int]] = field(default_factory=dict)
    sequence: int = 0
    log: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        table = {"name": "rates", "keys": ["currency"], **self.owner.settings}
        self.feed: Feed = self.lab.feed("orders")
        self.owner.append(self.random)
        self.order()
        inputs = [self.feed, Registered(self.lab, [table])]
        self.derived = [
            Derived(self.lab, inputs, CONVERTED, incremental="strict"),
            Derived(self.lab, inputs, SPENT, incremental="strict"),
        ]
        self.follow()

    def order(self) -> None:
        """New or changed orders."""
        self.sequence += 1
        changed = {
            self.random.randint(1, 6): (self.random.choice(COINS), self.random.randint(1, 9))
            for _ in range(2)
        }
        self.feed.copy(
            *(
                put(number, self.sequence, currency=currency, amount=amount)
                for number, (currency, amount) in changed.items()
            )
        )
        self.orders |= changed

    def step(self) -> None:
        """The owner does something or several things, with or without orders; then all follow."""
        for _ in range(self.random.randint(1, 2)):
            deed = self.random.choice(sorted(self.owner.deeds))
            self.log.append(deed)
            self.owner.deeds[deed](self.random)
        if self.random.random() < 0.5:
            self.log.append("order")
            self.order()
        self.follow()

    def follow(self) -> None:
        """Each derived table shows what its query returns over the rows that there are."""
        for one in self.derived:
            one.follow()
        rates = self.owner.rates
        converted = sorted(
            (number, amount * rates[currency][0])
            for number, (currency, amount) in self.orders.items()
            if currency in rates
        )
        spent = []
        for currency, (rate, _) in rates.items():
            amounts = [amount for other, amount in self.orders.values() if other == currency]
            spent.append((currency, rate, len(amounts), sum(amounts) if amounts else None))
        first, second = self.derived
        assert first.current("id", "cents") == sorted(converted, key=repr), self.log
        found = second.current("id", "rate", "orders", "amount")
        assert found == sorted(spent, key=repr), self.log

    def reasons(self) -> list[str]:
        """How the steps were computed."""
        return [event.how for event in self.lab.events if isinstance(event, RowsDerived)]


@pytest.fixture(params=["iceberg", "delta", "folder"])
def owner(request: pytest.FixtureRequest, lab: Lab, tmp_path: Path) -> Iterator[Any]:
    """An owner for each form of a table."""
    if request.param == "iceberg":
        yield IcebergOwner(lab)
    else:
        yield (DeltaOwner if request.param == "delta" else FolderOwner)(tmp_path / "rates")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_random_histories_of_owners_show_the_query(lab: Lab, owner: Any, seed: int) -> None:
    history = History(lab, owner, Random(seed))
    for _ in range(10):
        history.step()
    how = history.reasons()
    assert any(" of id" in one for one in how), how


def rates_of(lab: Lab, owner: Any, **settings: Any) -> Registered:
    """The table of an owner, as a task names it."""
    return Registered(lab, [{"name": "rates", "keys": ["currency"], **owner.settings, **settings}])


@pytest.mark.slow
def test_a_folder_with_new_files_is_followed_and_others_tell_why_not(
    lab: Lab, tmp_path: Path
) -> None:
    owner = FolderOwner(tmp_path / "rates")
    owner._write("1.parquet", {"CHF": (95, 1)})
    owner._write("2.parquet", {"USD": (110, 1)})
    rates = Derived(lab, [rates_of(lab, owner)], PLAIN, incremental="strict")
    rates.follow()
    owner._write("3.parquet", {"EUR": (100, 2)})
    rates.follow()
    assert rates.current("id", "rate") == [("CHF", 95), ("EUR", 100), ("USD", 110)]
    assert last_step(lab).how == "1 of id"

    owner._write("2.parquet", {"USD": (111, 3)})
    rates.follow()
    assert rates.current("id", "rate") == [("CHF", 95), ("EUR", 100), ("USD", 111)]
    assert last_step(lab).how.startswith("crm.rates: a file of it was replaced or removed")
    owner._write("4.parquet", {"USD": (112, 4)})
    with pytest.raises(PolynyaError, match="1 of 2 rows repeat") as repeated:
        rates.follow()
    assert repeated.value.code == "POLYNYA-TRF-123"


@pytest.mark.slow
def test_a_removed_file_that_is_missed_is_seen(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = DeltaOwner(tmp_path / "rates")
    owner.append(Random(1))
    history = History(lab, owner, Random(1))
    gone = sorted(owner.rates)[0]
    between = FolderChanges.between

    def without_removed(*versions: Any) -> FolderChanges:
        found = between(*versions)
        return replace(found, removed=replace(found.removed, files=()))

    def delete(name: str) -> None:
        DeltaTable(owner.place).delete(f"currency = '{name}'")
        del owner.rates[name]

    delete(gone)
    history.follow()
    assert last_step(lab).how.endswith("of id"), history.reasons()
    monkeypatch.setattr(FolderChanges, "between", staticmethod(without_removed))
    # The only row of the last file goes.
    write_deltalake(owner.place, table_of({"XXX": (1, 1)}), mode="append")
    owner.rates["XXX"] = (1, 1)
    history.follow()
    delete("XXX")
    with pytest.raises(AssertionError):
        history.follow()


@pytest.mark.slow
def test_a_column_that_changes_with_each_row_leaves_other_rows_of_new_files_out(
    lab: Lab, tmp_path: Path
) -> None:
    place = str(tmp_path / "rates")
    write_deltalake(place, table_of({"CHF": (95, 1), "USD": (110, 1), "EUR": (100, 1)}))
    owner = {"delta": place}
    every = Derived(lab, [rates_of(lab, SettingsOf(owner))], PLAIN, incremental="strict")
    some = Derived(
        lab,
        [rates_of(lab, SettingsOf(owner), changed_by="at")],
        PLAIN,
        incremental="strict",
    )

    def follow() -> list[str]:
        said = []
        for one in (every, some):
            one.follow()
            said.append(last_step(lab).how)
        return said

    follow()
    DeltaTable(place).update(predicate="currency = 'CHF'", updates={"rate": "96", "at": "2"})
    assert follow() == ["3 of id", "1 of id"]
    DeltaTable(place).update(predicate="currency = 'USD'", updates={"at": "NULL"})
    assert follow() == ["3 of id", "1 of id"]
    DeltaTable(place).delete("currency = 'EUR'")
    assert follow() == ["3 of id", "2 of id"]
    rows = [("CHF", 96), ("USD", 110)]
    assert every.current("id", "rate") == some.current("id", "rate") == rows

    # A broken promise: the row changes, and the column does not.
    DeltaTable(place).update(predicate="currency = 'CHF'", updates={"rate": "97"})
    follow()
    assert every.current("id", "rate") == [("CHF", 97), ("USD", 110)]
    assert some.current("id", "rate") == rows


@dataclass
class SettingsOf:
    """An owner whose table is written elsewhere."""

    settings: dict[str, Any]


def test_deletes_of_iceberg_by_values_are_followed_where_they_name_keys(lab: Lab) -> None:
    owner = IcebergOwner(lab)
    owner._insert({"CHF": (95, 1), "USD": (110, 1)})
    owner._insert({"EUR": (100, 1), "GBP": (120, 1)})
    rates = Derived(lab, [rates_of(lab, owner)], PLAIN, incremental="strict")
    rates.follow()

    delete_by_value(lab, owner, "currency", 1, pa.array(["CHF"]))
    rates.follow()
    assert rates.current("id", "rate") == [("EUR", 100), ("GBP", 120), ("USD", 110)]
    assert last_step(lab).how == "1 of id"
    delete_by_value(lab, owner, "rate", 2, pa.array([120]))
    rates.follow()
    assert rates.current("id", "rate") == [("EUR", 100), ("USD", 110)]
    assert last_step(lab).how == ("crm.rates: another engine deleted rows of it by their values")
    owner.update(Random(1))
    steps = rates.steps()
    owner.compact(Random(1))
    rates.follow()
    assert rates.steps() == steps + 1
    assert last_step(lab).how.endswith(" of id")


def delete_by_value(lab: Lab, owner: IcebergOwner, column: str, number: int, values: Any) -> None:
    """A commit of an equality delete, as streaming writers make it."""
    jvm: Any = lab.spark._jvm
    iceberg = jvm.org.apache.iceberg
    table = iceberg.spark.Spark3Util.loadIcebergTable(lab.spark._jsparkSession, owner.table)
    place = f"{table.location()}/data/{column}-{len(values)}-deletes.parquet"
    path = Path(place.removeprefix("file:"))
    stored = pa.field(column, values.type, metadata={"PARQUET:field_id": str(number)})
    pq.write_table(pa.table([values], pa.schema([stored])), path)
    gateway: Any = lab.spark.sparkContext._gateway
    fields = gateway.new_array(jvm.int, 1)
    fields[0] = number
    file = (
        iceberg.FileMetadata.deleteFileBuilder(table.spec())
        .ofEqualityDeletes(fields)
        .withPath(place)
        .withFormat(iceberg.FileFormat.PARQUET)
        .withFileSizeInBytes(path.stat().st_size)
        .withRecordCount(len(values))
        .build()
    )
    table.newRowDelta().addDeletes(file).commit()
    lab.spark.sql(f"REFRESH TABLE {owner.table}")
