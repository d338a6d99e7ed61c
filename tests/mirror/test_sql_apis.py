"""Sessions with Redshift and Databricks: the real clients against their APIs at loopback."""

from __future__ import annotations

import base64
from contextlib import contextmanager

import pytest

from polynya.mirror.statements import ANSWER_SECONDS
from polynya.mirror.targets import session_of
from polynya.model.config.server_connection import DatabricksConnection, RedshiftConnection
from polynya.model.errors import DependencyError, OperationError
from polynya.testing.fakes import FakeClock
from tests.mirror.faked import Rounds, commit
from tests.mirror.test_warehouses import ORDERS, USERS, WIDER, task_in
from tests.mirror.warehouses import WarehouseSchema, warehouse_api

pytestmark = pytest.mark.usefixtures("translated_once")

SECRET = "dapi-0123456789"
BOTH = pytest.mark.parametrize("family", ["redshift", "databricks"])


class HastyClock(FakeClock):
    """A clock on which each pause takes a minute."""

    def sleep(self, seconds):
        super().sleep(60)


@pytest.fixture(autouse=True)
def _identity(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cr3t")
    monkeypatch.setenv("POLYNYA_LOCAL_APIS", "127.0.0.1")


@contextmanager
def reached(family, clock=None, **account):
    """The API of a warehouse, and what opens a session with it."""
    schema = WarehouseSchema(family)
    with warehouse_api(schema) as api:
        if family == "redshift":
            said = {"type": family, "workgroup": "lake", "endpoint": api.url, **account}
            known = RedshiftConnection.model_validate(said)
        else:
            login = account or {"token": "${env:T}"}
            known = DatabricksConnection.model_validate({"type": family, "url": api.url, **login})
        task = task_in(family).model_copy(update={"account": known})

        def connect():
            return session_of(
                task, lambda _: SECRET, region="eu-central-1", clock=clock or FakeClock()
            )

        yield api, connect


@BOTH
def test_a_mirror_is_made_changed_and_emptied_through_the_api(tmp_path, family):
    with reached(family) as (api, connect):
        api.schema.views["budget"] = ["SELECT 1", "of finance"]
        rounds = Rounds(tmp_path, task_in(family), connect)
        assert rounds.step((USERS, commit(1)), (ORDERS, commit(1))).error is None
        assert set(api.schema.views) == {"budget", "orders", "users"}
        rounds.later(minutes=5)
        assert rounds.step((WIDER, commit(2))).error is None
        assert set(api.schema.views) == {"budget", "users"}
        assert "age" in api.schema.views["users"][0]
        rounds.step()
        assert set(api.schema.views) == {"budget"}


@pytest.mark.parametrize(
    ("account", "says"),
    [
        ({}, {"WorkgroupName": "lake"}),
        ({"workgroup": None, "cluster": "c1", "user": "loader"},
         {"ClusterIdentifier": "c1", "DbUser": "loader"}),
        ({"secret_arn": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:rs-AbCdEf"},
         {"SecretArn": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:rs-AbCdEf"}),
    ],
)  # fmt: skip
def test_redshift_is_asked_as_the_connection_says_by_four_operations(account, says):
    with reached("redshift", **account) as (api, connect):
        api.schema.views = {f"v{number}": ["SELECT 1", "x"] for number in range(3)}
        assert len(connect().objects()) == 3
        _, headers, asked = api.requests[0]
        assert asked.items() >= {"Database": "dev", **says}.items()
        assert "/eu-central-1/redshift-data/" in headers["Authorization"]
        assert {name for name, _, _ in api.requests} == {
            "ExecuteStatement", "DescribeStatement", "GetStatementResult",
        }  # fmt: skip


def test_a_service_principal_logs_in_by_oauth():
    login = {"client_id": "app", "client_secret": "${env:S}"}
    with reached("databricks", **login) as (api, connect):
        assert connect().objects() == []
        (path, headers, form), (_, asked_with, asked), *_ = api.requests
        assert path == "/oidc/v1/token"
        assert "grant_type=client_credentials" in form
        basic = base64.b64decode(headers["Authorization"].removeprefix("Basic ")).decode()
        assert basic == f"{SECRET}:{SECRET}"
        assert asked_with["Authorization"] == "Bearer short-lived"
        assert (asked["warehouse_id"], asked["on_wait_timeout"]) == ("1a2b", "CONTINUE")


@BOTH
def test_a_refused_statement_is_told_with_its_reason(family):
    with reached(family) as (_, connect):
        comment = {"redshift": 'COMMENT ON VIEW "shop"."x" IS \'y\'',
                   "databricks": "COMMENT ON TABLE `shop`.`x` IS 'y'"}  # fmt: skip
        with pytest.raises(OperationError) as caught:
            connect().execute(comment[family])
        assert caught.value.code == "POLYNYA-MIR-003"
        assert "does not exist" in caught.value.why


@BOTH
def test_a_statement_without_an_end_is_cancelled(family):
    with reached(family, clock=HastyClock()) as (api, connect):
        api.never_ends = True
        with pytest.raises(DependencyError, match="cannot be reached") as caught:
            connect().objects()
        assert f"{ANSWER_SECONDS} s" in caught.value.why
        assert "ancel" in api.requests[-1][0]


@pytest.mark.parametrize(
    ("family", "status", "body"),
    [
        ("redshift", 400, {"__type": "AccessDeniedException", "message": "not allowed"}),
        ("redshift", 400, {"__type": "ActiveStatementsExceededException", "message": "too many"}),
        ("redshift", 500, b"<html>"),
        ("redshift", 200, {}),
        ("databricks", 401, {"error_code": "UNAUTHENTICATED", "message": f"bad {SECRET}"}),
        ("databricks", 403, {"message": f"token {SECRET}"}),
        ("databricks", 503, b"<html>"),
        ("databricks", 302, b""),
        ("databricks", 200, {"status": {"state": "RUNNING"}, "statement_id": "../../x"}),
        ("databricks", 200, {"status": {"state": "SUCCEEDED"}, "result": {"data_array": [1]}}),
    ],
)
def test_an_answer_that_is_none_is_tried_later_and_shows_no_secret(family, status, body):
    with reached(family) as (api, connect):
        api.answers = [(status, body)]
        with pytest.raises(DependencyError) as caught:
            connect().objects()
        assert caught.value.code == "POLYNYA-MIR-002"
        assert SECRET not in f"{caught.value!r} {caught.value.why}"


def test_rows_that_were_not_asked_for_are_no_objects():
    with reached("redshift") as (api, connect):
        api.answers = [
            (200, {"Id": "7"}),
            (200, {"Id": "7", "Status": "FINISHED"}),
            (200, {"Records": [[{"stringValue": "users"}]]}),
        ]
        with pytest.raises(DependencyError) as caught:
            connect().objects()
        assert "other columns" in caught.value.why


@pytest.mark.parametrize("body", [[], 3, {"status": []}, {"status": {"state": "WHAT"}}])
def test_an_unknown_state_is_refused(body):
    with reached("databricks") as (api, connect):
        api.answers = [(200, body)]
        with pytest.raises(OperationError) as caught:
            connect().objects()
        assert caught.value.code == "POLYNYA-MIR-003"


def test_a_statement_that_the_data_api_does_not_take_is_not_sent():
    with reached("redshift") as (api, connect):
        with pytest.raises(OperationError, match="refused"):
            connect().execute("SELECT '" + "x" * 100_000 + "'")
        assert api.requests == []


@BOTH
def test_a_warehouse_that_is_away_is_told(family):
    with reached(family) as (_, connect):
        session = connect()
    with pytest.raises(DependencyError) as caught:
        session.objects()
    assert caught.value.code == "POLYNYA-MIR-002"
