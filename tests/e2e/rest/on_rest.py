"""What only a catalog behind REST can show; `test_lake_on_rest.py` runs it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from polynya.lake.spark.catalog import python_catalog, secret_properties, spark_properties
from polynya.model.errors import PolynyaError
from polynya.model.loader import load_project
from tests.lab.lab import Lab, put
from tests.rest_catalogs import Answer, Exchange, Fault, Forward, Proxy, is_commit, said, standing


@pytest.fixture
def way() -> Iterator[Proxy]:
    """What stands between the session and its catalog; faults end with the test."""
    (found,) = standing
    before = found.fault
    yield found
    found.fault = before


def once(answer: Answer, *, reached: bool) -> Fault:
    """The first commit gets this answer, after it `reached` the server or without that."""
    met: list[Exchange] = []

    def fault(exchange: Exchange, forward: Forward) -> Answer:
        if not is_commit(exchange) or met:
            return forward(exchange)
        met.append(exchange)
        if reached:
            assert forward(exchange).status == 200
        return answer

    return fault


def test_java_and_pyiceberg_log_in_and_see_the_same(lab: Lab, way: Proxy) -> None:
    users = lab.feed()
    users.copy(put(1, 1, name="Ann"))
    target = load_project(lab.project).target

    (named,) = python_catalog(target).list_tables(f"{lab.schema}_internal")

    assert python_catalog(target).load_table(named).scan().to_arrow().num_rows > 0
    assert users.current("id", "name") == [(1, "Ann")]
    assert "a-secret-of-tests" not in str(spark_properties(target))
    assert "a-secret-of-tests" in str(secret_properties(target))
    logins = {one.headers.get("Authorization") for one in way.seen if "/namespaces" in one.path}
    assert logins == {"Bearer client-credentials-token:sub=me"}


@pytest.mark.parametrize("status", [500, 502, 503, 504])
@pytest.mark.parametrize("reached", [True, False])
def test_a_commit_without_an_answer_is_settled_by_reading(
    lab: Lab, way: Proxy, status: int, *, reached: bool
) -> None:
    users = lab.feed()
    users.copy(put(1, 1, name="Ann"))
    way.fault = once(said(status), reached=reached)

    try:
        users.copy(put(2, 2, name="Ben"))
    except PolynyaError as error:
        # The step is reported as failed or unknown; the next one reads what there is.
        assert error.code.startswith("POLYNYA-LAKE-")
    users.copy(put(3, 3, name="Cid"))

    assert users.current("id", "name") == [(1, "Ann"), (2, "Ben"), (3, "Cid")]
    assert users.changes("id") == [(1,), (2,), (3,)]


def test_garbage_for_an_answer_is_settled_by_reading(lab: Lab, way: Proxy) -> None:
    users = lab.feed()
    users.copy(put(1, 1, name="Ann"))
    way.fault = once(Answer(200, b"<html>"), reached=True)

    try:
        users.copy(put(2, 2, name="Ben"))
    except PolynyaError as error:
        assert error.code.startswith("POLYNYA-LAKE-")
    users.copy(put(3, 3, name="Cid"))

    assert users.changes("id") == [(1,), (2,), (3,)]
