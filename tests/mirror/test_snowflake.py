"""A mirror through Snowflake's real connector, against the stand-in, from records to rows."""

from __future__ import annotations

import pytest

from examples.servers.door import door
from examples.servers.mariadb import UnavailableError
from examples.servers.snowflake import snowflake_server
from polynya.engine.tasks.mirror import MirrorWork
from polynya.engine.unit import TimeSlice
from polynya.lake.warehouse.catalogs import catalog_file
from polynya.mirror.snowflake import SnowflakeSession
from polynya.mirror.targets import session_of
from polynya.model.config.mirror import MirrorTask, mirror_of
from polynya.model.config.server_connection import SnowflakeConnection
from polynya.model.errors import DependencyError
from polynya.model.loader import load_project
from tests.absent import absent
from tests.lab.lab import Lab, drop, put
from tests.mirror.faked import SNOWFLAKE

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def server(lab: Lab, tmp_path):
    """The stand-in, which finds the tables of the lab in their catalog."""
    catalog = catalog_file(load_project(lab.project).target)
    try:
        with snowflake_server(tmp_path / "snowflake", catalog) as running:
            yield running
    except UnavailableError as error:
        absent(str(error))


def mirror_work(lab: Lab, source, port: int, **more) -> MirrorWork:
    """A mirror of a task of the lab."""
    said = {
        "apiVersion": "polynya/v1", "kind": "mirror", "name": "sales_snowflake",
        "from": source.name, "target": {"snowflake": SNOWFLAKE},
        "refresh": {"after": "commit", "at_most_every": "1s"}, **more,
    }  # fmt: skip
    account = SnowflakeConnection.model_validate(
        {
            "type": "snowflake", "account": "acme", "user": "polynya", "password": "x",
            "url": f"http://127.0.0.1:{port}",
        }
    )  # fmt: skip
    task = mirror_of(MirrorTask.model_validate(said), account, source, "shop")
    return MirrorWork(task, load_project(lab.project).target, clock=lab.clock, sink=lambda _: None)


def rows(session: SnowflakeSession, sql: str) -> list[tuple]:
    return sorted(tuple(row.values()) for row in session._rows(sql))


def test_the_mirror_shows_what_the_views_show_through_change_failure_and_drop(lab, server):
    users = lab.feed()
    users.apply(put(1, 1, name="Ada"), put(2, 2, name="Bob"))
    users.copy(drop(2, 3), put(3, 4, name="Cy"))
    with door(server.port) as way:
        work = mirror_work(lab, users.task, way.port)
        session = session_of(work.task, lambda text: text, region=None, clock=lab.clock)
        for sql in (
            'CREATE SCHEMA IF NOT EXISTS "LAKE"."SHOP"',
            'CREATE EXTERNAL VOLUME IF NOT EXISTS "LAKE_VOL" ALLOW_WRITES = FALSE',
            'CREATE CATALOG INTEGRATION IF NOT EXISTS "GLUE_INT" CATALOG_SOURCE = GLUE',
            'CREATE TABLE "LAKE"."SHOP"."BUDGET" (id INT)',
        ):
            session.execute(sql)
        everything = TimeSlice(at_once=True)

        # Made: with a deleted record and a new one that are copied and not applied.
        assert work.step(everything).error is None
        current = "SELECT id, name FROM lake.shop.users"
        assert rows(session, current) == [(1, "Ada"), (3, "Cy")]
        assert rows(session, "SELECT count(*) FROM lake.shop.users__changes") == [(2,)]

        # A new column: refreshed, then the views are replaced.
        users.apply(put(1, 5, name="Ada", age=36))
        lab.clock.sleep(5)
        assert work.step(everything).error is None
        assert rows(session, "SELECT id, age FROM lake.shop.users") == [(1, 36), (3, None)]

        # The connection fails in between: told, and repaired by a later round.
        users.apply(put(4, 6, name="Di", age=1))
        way.shut()
        lab.clock.sleep(5)
        with pytest.raises(DependencyError, match="cannot be reached"):
            work.step(everything)
        way.is_shut = False
        lab.clock.sleep(3600)
        assert work.step(everything).error is None
        assert rows(session, "SELECT count(*) FROM lake.shop.users") == [(3,)]

        # Nothing is mirrored any more: only what the mirror made goes.
        none = mirror_work(lab, users.task, way.port, exclude=["*"])
        assert none.step(everything).error is None
        left = [name for name, _, _ in session.objects()]
        assert left == ["BUDGET"]
        session.close()
