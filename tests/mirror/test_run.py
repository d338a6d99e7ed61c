"""A run of a storage task and its mirror: the tables come first, and both outcomes count."""

from __future__ import annotations

import pytest

from polynya.engine.tasks.mirror import MirrorWork
from tests.lab.commands import InProcessDriver
from tests.mirror.faked import FakeTarget
from tests.mirror.test_settings import ACCOUNT, MIRROR
from tests.projects import USERS, write_project

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_a_run_makes_the_tables_and_then_mirrors_them(spark, tmp_path, monkeypatch):
    target, driver = FakeTarget(), InProcessDriver(spark)
    monkeypatch.setattr(MirrorWork, "_session", lambda _: target.connect())
    mirror = f"{MIRROR}refresh: {{at_most_every: 0s}}\n"
    write_project(tmp_path, users=USERS, sales=mirror)
    (tmp_path / "connections").mkdir()
    (tmp_path / "connections" / "sf.yml").write_text(ACCOUNT)
    landing = tmp_path / "landing" / "users"
    landing.mkdir(parents=True)
    run = ["run", "--once", "--apply", "always", "-p", str(tmp_path)]

    (landing / "1.json").write_text('{"userId":1,"name":"Ada","operation":"I","sequenceNum":1}\n')
    assert driver.call(*run).code == 0
    assert "USERS_INTERNAL" in target.objects

    target.down = True
    (landing / "2.json").write_text('{"userId":2,"name":"Bob","operation":"I","sequenceNum":2}\n')
    assert driver.call(*run).code != 0
    asked = driver.call(
        "query", "SELECT count(*) AS n FROM shop.users", "--json", "-p", str(tmp_path)
    )
    assert '"n":2' in asked.output, "the table is written all the same"
