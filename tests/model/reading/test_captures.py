"""Checks of captures that need no other file, and of their connection."""

from __future__ import annotations

from datetime import timedelta

import pytest

from polynya.model.checks.capture import capture_problems, connected_problems
from polynya.model.config.capture.connection import Connection
from polynya.model.config.capture.landing import CaptureLanding

SHOP = {
    "apiVersion": "polynya/v1",
    "kind": "landing",
    "name": "shop_db",
    "connection": "shop",
    "tables": {"include": ["public.*"], "exclude": ["public.tmp_%"]},
}
POSTGRESQL = Connection(type="postgresql", host="db", database="shop", user="reader")
MARIADB = Connection(type="mariadb", host="db", user="reader")


def capture(**settings):
    return CaptureLanding.model_validate({**SHOP, **settings})


def test_what_a_capture_does_by_default():
    task = capture()

    assert (task.place, task.update_method, task.load.parallel) == ("shop_db", "cdc", 5)
    assert (task.write.roll.size, task.write.roll.age) == (32 * 2**20, timedelta(seconds=5))
    assert (task.errors.environment.retry, task.errors.table.then) == ("forever", "suspend")
    assert not list(capture_problems(task))
    assert not list(connected_problems(task, {"shop": POSTGRESQL}))


@pytest.mark.parametrize(
    ("settings", "path", "code"),
    [
        ({"update_method": "reload"}, ("update_method",), "061"),
        ({"schedule": "@daily"}, ("schedule",), "061"),
        (
            {"update_method": "reload", "schedule": "@daily", "slot": "shop"},
            ("slot",),
            "061",
        ),
        ({"load": {"order": {"public.*": "high"}}}, ("load", "order", "public.*"), "062"),
        ({"load": {"filter": {"shop.a": "b > 1"}}}, ("load", "filter", "shop.a"), "062"),
        ({"mask": {"public.tmp_1": {"a": "drop"}}}, ("mask", "public.tmp_1"), "062"),
        ({"rows": {"Public.a": "b > 1"}}, ("rows", "Public.a"), "062"),
        ({"mask": {"public.a": {"b": {}}}}, ("mask", "public.a", "b"), "063"),
        (
            {"mask": {"public.a": {"b": {"truncate": 1, "replace": None}}}},
            ("mask", "public.a", "b"),
            "063",
        ),
        (
            {"errors": {"environment": {"from": "1h", "to": "1m"}}},
            ("errors", "environment", "from"),
            "061",
        ),
    ],
)
def test_settings_that_do_not_fit_say_where(settings, path, code):
    [problem] = capture_problems(capture(**settings))

    assert (problem.path, problem.code) == (path, f"POLYNYA-GTW-{code}")


def test_a_column_may_be_replaced_by_nothing():
    assert not list(capture_problems(capture(mask={"public.a": {"b": {"replace": None}}})))


def test_a_connection_that_is_not_there_is_named_with_those_that_are():
    [missing] = connected_problems(capture(), {"shopp": POSTGRESQL})
    [none] = connected_problems(capture(), {})

    assert missing.code == "POLYNYA-GTW-060"
    assert "did you mean `shopp`" in str(missing.fix)
    assert none.fix == "add `connections/shop.yml`"


def test_a_connection_with_errors_of_its_own_is_no_second_error():
    assert not list(connected_problems(capture(slot="a"), {"shop": None}))


def test_what_only_postgresql_has_is_refused_for_others():
    [problem] = connected_problems(capture(publication="shop"), {"shop": MARIADB})

    assert problem.path == ("publication",)
    assert "of type mariadb" in problem.message
