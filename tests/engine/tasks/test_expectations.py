"""The expectations of a derived table are judged before a step is committed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from polynya.engine.commands.replay import replay
from polynya.engine.inventory import ProjectTable
from polynya.engine.tasks.expectations import ResultJudge
from polynya.lake.read.verify import verify
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.state import ExpectationFailures
from polynya.model.config.expectations import ResultExpectation
from polynya.model.errors import PolynyaError
from polynya.model.types import parse_type
from polynya.observe.engine import ExpectationFailed, RowsDerived
from tests.engine.tasks.derived_tables import Derived
from tests.lab.lab import Lab, drop, put

PEOPLE = "SELECT id, name, city FROM users"


def refused(derived: Derived) -> PolynyaError:
    """The error of a step that commits nothing."""
    before = held(derived)
    with pytest.raises(PolynyaError) as error:
        derived.follow()
    assert held(derived) == before
    return error.value


def held(derived: Derived) -> tuple[object, ...]:
    """The files of Current, and what the last step was derived from."""
    state = DatasetTable.existing(derived.lab.spark, derived.dataset).state.copy
    return derived.stored("current", "_file", "_pos"), state.derivation, state.reloads


def failures(derived: Derived) -> dict[str, ExpectationFailures]:
    """What the state of the table has of its expectations."""
    return DatasetTable.existing(derived.lab.spark, derived.dataset).state.copy.failures


@pytest.mark.slow
def test_a_result_that_fails_leaves_the_last_good_one(lab: Lab) -> None:
    users, cities = lab.feed("users"), lab.feed("cities", task={"name": f"{lab.schema}_cities"})
    users.copy(put(1, 1, name="ann", city="Ulm"), put(2, 2, name="bob", city="Bonn"))
    cities.copy(put(1, 1, city="Ulm"), put(2, 2, city="Bonn"))
    expect = [
        {"not_null": ["name"]},
        {"unique": ["name"]},
        {"accepted_values": {"column": "city", "values": ["Ulm", "Bonn", "Rom"]}},
        {"range": {"column": "id", "min": 1, "max": 9}},
        {"condition": "length(name) = 3"},
        {"relationship": {"columns": ["city"], "to": "cities"}},
        {"row_count": {"min": 2, "max": 3}},
    ]
    people = Derived(lab, [users, cities], PEOPLE, expect=expect, incremental="full")
    people.follow()
    assert people.current("id", "name") == [(1, "ann"), (2, "bob")]

    users.copy(put(3, 3, name="bob", city="Rom"), put(10, 4, city="Oslo"))
    error = refused(people)

    assert error.code == "POLYNYA-TRF-080"
    assert error.message == (
        "not_null(name) fails: 1 of 4 rows, such as id = `10`; "
        "unique(name) fails: 1 of 4 rows repeat the values of another, such as name = `bob`; "
        "accepted_values(city) fails: 1 of 4 rows, such as id = `10`; "
        "range(id) fails: 1 of 4 rows, such as id = `10`; "
        "condition(length(name) = 3) fails: 1 of 4 rows, such as id = `10`; "
        "relationship(city) fails: 2 of 4 rows, such as id = `3`; `10`; "
        "row_count fails: 4 rows, and at least 2 and at most 3 are expected"
    )
    assert people.current("id", "name") == [(1, "ann"), (2, "bob")]

    users.copy(put(3, 5, name="cem", city="Rom"), drop(10, 6))
    assert "relationship(city) fails: 1 of 3 rows" in refused(people).message
    # A table that only a relationship names causes a step.
    cities.copy(put(3, 3, city="Rom"))
    people.follow()
    assert people.current("id", "name") == [(1, "ann"), (2, "bob"), (3, "cem")]

    cities.copy(drop(1, 4))
    assert refused(people).message == "relationship(city) fails: 1 of 3 rows, such as id = `1`"


@pytest.mark.slow
def test_a_warning_is_an_event_and_counts_the_steps_that_fail(lab: Lab) -> None:
    users = lab.feed("users")
    users.copy(put(1, 1, name="ann"), put(2, 2))
    warns = {"not_null": ["name"], "on_failure": "warn"}
    people = Derived(
        lab, [users], "SELECT id, name FROM users", expect=[warns], incremental="strict"
    )

    people.follow()
    users.copy(put(3, 3))
    people.follow()
    users.copy(put(2, 4, name="bob"), put(3, 5, name="cem"))
    people.follow()

    assert people.current("id", "name") == [(1, "ann"), (2, "bob"), (3, "cem")]
    said = [(e.expectation, e.reason) for e in lab.events if isinstance(e, ExpectationFailed)]
    assert said == [
        ("not_null(name)", "1 of 2 rows, such as id = `2`"),
        ("not_null(name)", "1 of 1 rows, such as id = `3`"),
    ]
    at = lab.clock.now().isoformat()
    assert failures(people) == {
        "not_null(name)": ExpectationFailures(2, "1 of 1 rows, such as id = `3`", at)
    }

    people.settings["expect"] = []
    people.follow()
    assert failures(people) == {}


@pytest.mark.slow
def test_a_step_over_affected_rows_judges_the_table_with_them(lab: Lab) -> None:
    users, cities = lab.feed("users"), lab.feed("cities", task={"name": f"{lab.schema}_cities"})
    users.copy(put(1, 1, name="ann", city="Ulm"), put(2, 2, name="bob", city="Bonn"))
    cities.copy(put(1, 1, city="Ulm"), put(2, 2, city="Bonn"))
    expect = [
        {"unique": ["name"]},
        {"relationship": {"columns": ["city"], "to": "cities"}},
        {"row_count": {"max": 3}},
    ]
    people = Derived(lab, [users, cities], PEOPLE, expect=expect, incremental="strict")
    people.follow()

    users.copy(put(3, 3, name="ann", city="Ulm"))
    assert refused(people).message == (
        "unique(name) fails: 1 of 3 rows repeat the values of another, such as name = `ann`"
    )
    users.copy(put(3, 4, name="cem", city="Ulm"))
    people.follow()
    assert [e.how for e in lab.events if isinstance(e, RowsDerived)][-1] == "1 of id, in memory"

    # No row of the query can change.
    cities.copy(drop(2, 3))
    assert refused(people).message == "relationship(city) fails: 1 of 3 rows, such as id = `2`"
    cities.copy(put(2, 4, city="Bonn"))
    people.follow()
    assert people.current("id", "name") == [(1, "ann"), (2, "bob"), (3, "cem")]


def test_an_expectation_that_is_new_is_judged_though_no_input_changed(lab: Lab) -> None:
    users = lab.feed("users")
    users.copy(put(1, 1, name="ann"))
    people = Derived(lab, [users], "SELECT id, name FROM users")
    people.follow()

    people.settings["expect"] = [{"accepted_values": {"column": "name", "values": ["bob"]}}]
    assert "1 of 1 rows" in refused(people).message
    people.settings["expect"] = [{"accepted_values": {"column": "name", "values": ["ann"]}}]
    people.follow()
    assert people.steps() == 2

    people.settings["expect"] = [{"not_null": ["nme"]}]
    error = refused(people)
    assert (error.code, "did you mean `name`?" in str(error)) == ("POLYNYA-TRF-081", True)
    people.settings["expect"] = [{"unique": ["id"]}, {"condition": "length(name, id) = 3"}]
    assert "`condition(length(name, id) = 3)` cannot be judged" in refused(people).message


def test_rows_that_a_step_has_not_computed_are_judged_only_as_a_whole(lab: Lab) -> None:
    people = Derived(lab, [lab.feed("users")], "SELECT id, name FROM users")
    query = people.task.queries[people.name].model_copy(
        update={
            "expect": tuple(
                ResultExpectation.model_validate({"on_failure": "warn", **one})
                for one in ({"not_null": ["name"]}, {"unique": ["name"]}, {"row_count": {"max": 2}})
            )
        }
    )
    columns = {"id": parse_type("bigint"), "name": parse_type("string")}
    whole = lab.spark.sql("SELECT * FROM VALUES (1L, 'a'), (2L, NULL), (3L, 'a') AS t(id, name)")
    judge = ResultJudge(lab.spark, people.dataset, query, {}, datetime.now(UTC), str)

    verdicts = judge.judge(whole.where("id = 3"), lambda: whole, columns)

    assert verdicts == {
        "not_null(name)": None,
        "unique(name)": "1 of 3 rows repeat the values of another, such as name = `a`",
        "row_count": "3 rows, and at most 2 are expected",
    }


@pytest.mark.slow
def test_freshness_is_that_of_the_newest_value_when_a_step_begins(lab: Lab) -> None:
    now = lab.clock.now()
    users = lab.feed("users", columns={"seen": "timestamp"})
    users.copy(put(1, 1, seen=(now - timedelta(hours=3)).isoformat()))
    fresh = {"freshness": {"column": "seen", "within": "2h"}}
    people = Derived(lab, [users], "SELECT id, seen FROM users", expect=[fresh])
    with pytest.raises(PolynyaError) as error:
        people.follow()
    assert "which is more than 2h ago" in error.value.message

    users.copy(put(2, 2, seen=(now - timedelta(hours=1)).isoformat()))
    people.follow()
    assert people.current("id") == [(1,), (2,)]


#: Query, keys, and the condition of a row that fails, with the expectations that say so.
ASIDE = {
    "groups": (
        "SELECT city AS id, count(*) AS n, max(name) AS name FROM {s}.users GROUP BY city",
        "n > 2 OR id IS NULL",
        [{"range": {"column": "n", "max": 2}}, {"not_null": ["id"]}],
    ),
    "rows": (
        "SELECT id, name, city FROM {s}.users",
        "NOT coalesce(name <> city, false) OR city = 'Rom'",
        [
            {"condition": "name <> city"},
            {"accepted_values": {"column": "city", "values": ["Ulm", "Bonn"]}},
        ],
    ),
}


@pytest.mark.slow
def test_rows_that_fail_stand_in_quarantine_as_long_as_they_fail(lab: Lab) -> None:
    users, random = lab.feed("users"), Random(1)
    users.copy(put(1, 1, name="ann", city="Ulm"), put(2, 2, name="bob", city="Bonn"))
    derived = {
        name: Derived(
            lab,
            [users],
            sql.format(s=lab.schema),
            incremental="strict",
            expect=[{**one, "on_failure": "quarantine"} for one in expect],
        )
        for name, (sql, _, expect) in ASIDE.items()
    }
    entries = set()
    for number in range(10):
        for name, one in derived.items():
            one.follow()
            sql, fails, _ = ASIDE[name]
            query = f"FROM ({sql.format(s=lab.schema)}) WHERE"
            assert one.current("*") == lab.rows(f"SELECT * {query} NOT ({fails})"), (name, number)
            assert aside(one) == lab.rows(f"SELECT to_json(struct(*)) {query} {fails}"), name
            assert verify(one.table()).findings == [], (name, number)
            entries.add(len(aside(one)))
        records = [
            put(
                random.randrange(1, 7),
                10 * (number + 1) + at,
                name=random.choice(("ann", "Ulm", None)),
                city=random.choice(("Ulm", "Bonn", "Rom", None)),
            )
            for at in range(2)
        ]
        users.copy(*records, drop(random.randrange(1, 7), 10 * (number + 1) + 5))
    assert entries > {0, 1, 2}
    steps = [event for event in lab.events if isinstance(event, RowsDerived)]
    assert sum(" of " in step.how for step in steps) == len(steps) - 2


@pytest.mark.slow
def test_a_row_without_a_cause_to_fail_leaves_the_quarantine_with_its_expectation(lab: Lab) -> None:
    users = lab.feed("users")
    users.copy(put(1, 1, name="ann"), put(2, 2), put(3, 3))
    expect = {"not_null": ["name"], "name": "a name", "on_failure": "quarantine"}
    people = Derived(lab, [users], "SELECT id, name FROM users", expect=[expect])
    people.follow()

    assert people.rejected() == [("its query", -2, "a name"), ("its query", -2, "a name")]
    assert last_derived(lab).text().endswith("1 insert, 2 quarantined (it has no rows yet)")
    assert failures(people)["a name"].says == "2 of 3 rows, such as id = `2`; `3`"
    with pytest.raises(PolynyaError, match="none of them is read again"):
        replay(lab.context(), ProjectTable(people.task, people.dataset, None), None)

    # What else is expected is expected of the rows that the table shows.
    people.settings["expect"] = [expect, {"row_count": {"max": 1}}]
    people.follow()
    assert people.current("*") == [(1, "ann")]

    people.settings["expect"] = []
    people.follow()
    assert people.current("id") == [(1,), (2,), (3,)]
    assert people.rejected() == []


def aside(derived: Derived) -> list[tuple[str]]:
    """The quarantined rows of a derived table, as JSON."""
    return derived.stored("quarantine", "CAST(hdr__quarantine.raw AS STRING)")


def last_derived(lab: Lab) -> RowsDerived:
    """What the last step told."""
    return [event for event in lab.events if isinstance(event, RowsDerived)][-1]
