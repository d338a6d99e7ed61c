"""What passes between a task and its capture process survives the way."""

from __future__ import annotations

import json

import pytest

from polynya.capture.source import Access
from polynya.capture.wire import CaptureRequest, WorkerSettings, error_fields, error_of, event_line
from polynya.model.config.aws import AwsAccess
from polynya.model.errors import ConflictError, DependencyError, OperationError

ACCESS = Access("postgresql", "db", 5432, "shop", "reader", "hunter2", rows={"public.a": "b > 1"})


def settings():
    return WorkerSettings(
        task="shop_db",
        mode="follow",
        access=ACCESS,
        landing="/landing",
        folder="shop_db",
        include=("public.*",),
        lob_bytes=4096,
        lob_then="null",
        masks={"public.a": {"c": {"hash": {"key": "pepper"}}, "d": "drop"}},
        aws=AwsAccess(region="eu-central-1"),
    )


def test_settings_come_as_they_were_sent():
    assert WorkerSettings.of_line(settings().line()) == settings()


def test_secrets_are_in_no_text_of_the_settings():
    assert "hunter2" not in repr(settings())
    assert "pepper" not in repr(settings())


@pytest.mark.parametrize("line", [b"", b"[]", b"{}", b'{"version": 2}', b'{"version": 1}'])
def test_what_is_no_settings_says_so_and_shows_nothing(line):
    with pytest.raises(ValueError, match="settings"):
        WorkerSettings.of_line(line)


@pytest.mark.parametrize("kind", [OperationError, DependencyError, ConflictError])
def test_an_error_stays_of_its_kind(kind):
    error = kind("POLYNYA-GTW-001", "it failed", where="shop_db", fix="try again")

    again = error_of(json.loads(json.dumps(error_fields(error))))

    assert type(again) is kind
    assert again.as_dict() == error.as_dict()


def test_events_and_requests_are_lines():
    event, request = (
        event_line("loaded", table="public.a", rows=3),
        CaptureRequest(reload=True).line(),
    )

    assert json.loads(event) == {"type": "loaded", "table": "public.a", "rows": 3}
    assert json.loads(request) == {"type": "reload", "tables": []}
    assert event.count(b"\n") == request.count(b"\n") == 1
