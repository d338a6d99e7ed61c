"""Resources of an API land page by page, whatever the server does meanwhile and what is killed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from polynya.formats.landed import Counts
from polynya.model.errors import OperationError
from polynya.streams.landed_status import stream_statuses
from polynya.streams.landing import StreamLander
from tests.streams.rest.landing import NOW, ApiZone
from tests.streams.rest.server import Asked, Reply, local_api

ROWS = [{"id": number} for number in range(7)]


def paged(asked: Asked, rows: list[Any], size: int = 3) -> list[Any]:
    begin = (int(asked.query.get("page", 1)) - 1) * size
    return rows[begin : begin + size]


def by_cursor(asked: Asked, rows: list[Any], size: int = 3) -> dict[str, Any]:
    begin = int(asked.query.get("cursor", 0))
    more = begin + size < len(rows)
    return {"items": rows[begin : begin + size], "next": str(begin + size) if more else None}


CURSOR = {
    "path": "/orders",
    "record_path": "$.items",
    "pagination": {"type": "cursor", "path": "$.next"},
}


@pytest.mark.parametrize(
    ("pagination", "requests"),
    [
        ({"type": "page"}, 4),
        ({"type": "page", "total_pages": "$.pages"}, 3),
        ({"type": "offset", "total": "$.total"}, 3),
        ({"type": "offset"}, 4),
        ({"type": "cursor", "path": "$.next"}, 3),
        ({"type": "cursor", "header": "X-Next"}, 3),
        ({"type": "link"}, 3),
        ({"type": "next_url", "path": "$.url"}, 3),
    ],
    ids=lambda value: str(value.get("type")) if isinstance(value, dict) else str(value),
)
def test_each_kind_of_page_lands_every_record_once(
    pagination: dict[str, Any], requests: int
) -> None:
    def answering(asked: Asked) -> Any:
        begin = int(
            asked.query.get("offset")
            or asked.query.get("cursor")
            or (int(asked.query.get("page", 1)) - 1) * 3
        )
        more = begin + 3 < len(ROWS)
        following = f"/v1/orders?cursor={begin + 3}"
        value = {
            "items": ROWS[begin : begin + 3],
            "pages": 3,
            "total": 7,
            "next": begin + 3 if more else None,
            "url": following if more else "",
        }
        headers = {"X-Next": str(begin + 3), "Link": f'<{following}>; rel="next", </>; rel=first'}
        return Reply(value, headers=headers if more else {"Link": '</>; rel="first"'})

    with local_api(answering) as api:
        resource = {"path": "/orders", "record_path": "$.items", "pagination": pagination}
        zone = ApiZone(f"{api.url}/v1", {"orders": resource})

        outcome = zone.run()

        assert outcome.failures == {}
        assert zone.values("orders") == ROWS
        assert len(api.asked) == requests
        assert api.paths == ["/v1/orders"] * requests


def test_records_keep_their_bytes_and_say_where_they_were() -> None:
    raw = b'{"data":{"rows":[{"n":1.10,"big":12345678901234567890.5},{"n":2}]}}'
    with local_api(lambda _: Reply(raw=raw)) as api:
        zone = ApiZone(api.url, {"orders": {"path": "/orders", "record_path": "$.data.rows"}})

        zone.run()

        rows = zone.rows("orders")
        assert [row["value"] for row in rows] == [
            b'{"n":1.10,"big":12345678901234567890.5}',
            b'{"n":2}',
        ]
        assert [
            (row["hdr__http_read"], row["hdr__http_page"], row["hdr__http_record"]) for row in rows
        ] == [(1, 0, 0), (1, 0, 1)]
        assert rows[0]["hdr__http_timestamp"] == NOW


@pytest.mark.parametrize("after", [False, True])
def test_a_kill_at_any_request_or_put_loses_and_doubles_no_page(after: bool) -> None:
    at, killed = 0, True
    while killed:
        at += 1
        with local_api(lambda asked: by_cursor(asked, ROWS)) as api:
            zone = ApiZone(api.url, {"orders": CURSOR})
            limits = {"batch": {"max_records": 3}}
            killed = zone.run_killed(at, after=after, **limits)
            landed = len(zone.rows("orders"))

            # An agent goes on with the read that was interrupted.
            source = zone.source(zone.landing, **limits)
            log = zone.log("orders")
            lander = StreamLander(zone.landing_task(**limits), source, log)
            while not (wanted := lander.decide(("orders",), once=False)).is_nothing:
                assert lander.land(wanted, NOW) is not None

        assert zone.values("orders") == ROWS, (at, landed)
    assert at > 5, "many steps were killed"


def test_a_run_after_a_kill_has_what_the_server_has_by_then() -> None:
    rows = list(ROWS)
    with local_api(lambda asked: by_cursor(asked, rows)) as api:
        zone = ApiZone(api.url, {"orders": CURSOR})
        zone.run_killed(4, after=True, batch={"max_records": 3})
        assert 0 < len(zone.rows("orders")) < len(ROWS)
        rows.append({"id": 99})
        rows[0] = {"id": 0, "changed": True}

        outcome = zone.run()

        assert outcome.failures == {}
        newest = {value["id"]: value for value in zone.values("orders")}
        assert list(newest.values()) == [*rows[:7], {"id": 99}]


def test_of_two_processes_that_land_one_resource_each_page_comes_once() -> None:
    with local_api(lambda asked: by_cursor(asked, ROWS)) as api:
        zone = ApiZone(api.url, {"orders": CURSOR})

        class Rival:
            def __init__(self) -> None:
                self.left = 1

            def __getattr__(self, name: str) -> Any:
                return getattr(zone.landing, name)

            def put_if_absent(self, path: str, data: bytes) -> bool:
                if self.left:
                    self.left = 0
                    zone.run(batch={"max_records": 3})
                return zone.landing.put_if_absent(path, data)

        rival = Rival()
        zone.run(lambda one: rival if one is zone.landing else one, batch={"max_records": 3})

        reads = {row["hdr__http_read"] for row in zone.rows("orders")}
        for read in reads:
            of_read = [r["value"] for r in zone.rows("orders") if r["hdr__http_read"] == read]
            assert len(of_read) == len(set(of_read)) == len(ROWS)


def test_rows_that_move_between_pages_come_again_with_the_next_read() -> None:
    rows = list(ROWS)

    def answering(asked: Asked) -> Any:
        if asked.query.get("page") == "2" and len(api.asked) == 2:
            del rows[0]
        return paged(asked, rows)

    with local_api(answering) as api:
        zone = ApiZone(api.url, {"orders": {"path": "/orders", "pagination": {"type": "page"}}})
        zone.run()
        assert {"id": 3} not in zone.values("orders"), "it moved to the page before"

        zone.run()

        assert {"id": 3} in zone.values("orders")
        assert {value["id"] for value in zone.values("orders")} == set(range(7))


def test_a_resource_is_read_when_it_is_due_and_an_idle_read_writes_nothing() -> None:
    rows: list[Any] = []
    with local_api(lambda asked: rows) as api:
        zone = ApiZone(api.url, {"orders": {"path": "/orders", "every": "10m"}})
        source = zone.source(zone.landing)
        lander = StreamLander(zone.landing_task(), source, zone.log("orders"))

        def look() -> None:
            wanted = lander.decide(("orders",), once=False)
            if not wanted.is_nothing:
                lander.land(wanted, zone.clock.now())

        look()
        assert zone.footer("orders").counts == Counts()
        for _ in range(3):
            look()
        assert len(api.asked) == 1
        zone.clock.advance(timedelta(minutes=10))
        look()
        assert (len(api.asked), zone.footer("orders").number) == (2, 1)
        rows.append({"id": 1})
        zone.clock.advance(timedelta(minutes=9))
        look()
        assert len(api.asked) == 2
        zone.clock.advance(timedelta(minutes=1))
        look()
        assert zone.values("orders") == [{"id": 1}]


def test_status_says_which_read_goes_on() -> None:
    with local_api(lambda asked: by_cursor(asked, ROWS)) as api:
        zone = ApiZone(api.url, {"orders": CURSOR})
        zone.run_killed(4, after=True, batch={"max_records": 3})

        [status] = stream_statuses(zone.landing, zone.landing_task(), NOW)

        assert status.positions == {"orders": "read 1, page 2"}
        assert status.behind_pages == 1
        zone.run()
        [status] = stream_statuses(zone.landing, zone.landing_task(), NOW)
        assert (status.behind_pages, status.behind_seconds) == (0, 0.0)


def incremental(rows: list[dict[str, Any]]) -> Any:
    def answering(asked: Asked) -> Any:
        since = asked.query.get("since", "")
        found = [row for row in rows if str(row["at"]) >= since]
        return sorted(found, key=lambda row: str(row["at"]))

    return answering


def test_an_incremental_resource_asks_from_the_highest_value_on() -> None:
    rows = [{"id": 1, "at": "2026-11-20T10:00:00Z"}, {"id": 2, "at": "2026-11-21T10:00:00.5Z"}]
    settings = {
        "field": "$.at",
        "parameter": "since",
        "start": "2026-01-01T00:00:00Z",
        "overlap": "1h",
        "full_every": "7d",
    }
    with local_api(incremental(rows)) as api:
        zone = ApiZone(api.url, {"orders": {"path": "/orders", "incremental": settings}})
        zone.run()
        rows.append({"id": 3, "at": "2999-01-01T00:00:00Z"})
        zone.run()
        zone.run()
        zone.clock.advance(timedelta(days=8))
        zone.run()

        assert [one.query["since"] for one in api.asked] == [
            "2026-01-01T00:00:00Z",
            "2026-11-21T09:00:00Z",
            "2026-11-23T14:30:00Z",  # a time in the future hides nothing
            "2026-01-01T00:00:00Z",
        ]


def test_numbers_and_dates_are_sent_as_the_start_is_written() -> None:
    with local_api(lambda _: [{"n": "17", "day": "2026-03-04T23:59:59+02:00"}]) as api:
        numbers = {"field": "$.n", "parameter": "after", "start": 0, "overlap": 2}
        days = {"field": "$.day", "parameter": "day", "start": "2026-01-01", "overlap": "1d"}
        zone = ApiZone(
            api.url,
            {
                "a": {"path": "/a", "incremental": numbers},
                "b": {"path": "/b", "incremental": days},
            },
        )
        zone.run()
        zone.run()

        asked = sorted((one.path, *one.query.values()) for one in api.asked)
        assert asked == [("/a", "0"), ("/a", "15"), ("/b", "2026-01-01"), ("/b", "2026-03-03")]


def test_a_field_that_no_record_has_is_an_error_and_not_an_endless_reload() -> None:
    with local_api(lambda _: [{"id": 1, "updated": "x"}]) as api:
        settings = {"field": "$.at", "parameter": "since", "start": 0}
        zone = ApiZone(api.url, {"orders": {"path": "/orders", "incremental": settings}})

        outcome = zone.run()

        [failure] = outcome.failures.values()
        assert failure.code == "POLYNYA-STR-107"
        assert zone.values("orders") == []


def test_the_lines_of_each_order_are_read_when_the_order_lands() -> None:
    orders = [{"id": 1}, {"id": "a/b"}, {"id": 1}, {"id": None}, {"id": 9}]

    def answering(asked: Asked) -> Any:
        if asked.path == "/orders":
            return orders
        if asked.path == "/orders/9/lines":
            return Reply({"error": "gone"}, status=404)
        return paged(asked, [{"of": asked.path, "n": n} for n in range(2)], size=1)

    with local_api(answering) as api:
        zone = ApiZone(
            api.url,
            {
                "lines": {
                    "path": "/orders/{id}/lines",
                    "parent": "orders",
                    "pagination": {"type": "page"},
                },
                "orders": {"path": "/orders"},
            },
        )

        outcome = zone.run()

        assert outcome.failures == {}
        assert [(row["of"], row["n"]) for row in zone.values("lines")] == [
            ("/orders/1/lines", 0),
            ("/orders/1/lines", 1),
            ("/orders/a%2Fb/lines", 0),
            ("/orders/a%2Fb/lines", 1),
        ]
        assert zone.rows("lines")[2]["hdr__http_parent"] == '{"id":"a/b"}'
        assert zone.footer("lines").totals.lost == 2, "one has no id, one is gone"
        before = len(api.asked)
        orders[:] = [{"id": 5}]
        zone.run()
        assert [path for path in api.paths[before:] if "lines" in path] == ["/orders/5/lines"] * 3


@pytest.mark.parametrize("after", [False, True])
def test_a_kill_between_lines_loses_and_doubles_none(after: bool) -> None:
    at, killed = 0, True
    while killed:
        at += 1

        def answering(asked: Asked) -> Any:
            if asked.path == "/orders":
                return [{"id": 1}, {"id": 2}]
            return by_cursor(asked, [{"of": asked.path, "n": n} for n in range(2)], size=1)

        with local_api(answering) as api:
            lines = {**CURSOR, "path": "/orders/{id}/lines", "parent": "orders"}
            resources = {"orders": {"path": "/orders"}, "lines": lines}
            zone = ApiZone(api.url, resources, task={"batch": {"max_records": 1}})
            killed = zone.run_killed(at, after=after)
            zone.run()

        by_read: dict[int, list[Any]] = {}
        for row in zone.rows("lines"):
            by_read.setdefault(row["hdr__http_read"], []).append(row["value"])
        reads = len(zone.log("orders").numbers())
        assert by_read, at
        assert all(len(values) == len(set(values)) == 4 for values in by_read.values()), at
        assert len(by_read) <= reads
    assert at > 8, "many steps were killed"


def test_a_cursor_that_a_server_forgot_begins_the_read_again() -> None:
    forgotten = [False]

    def answering(asked: Asked) -> Any:
        if forgotten[0] and "cursor" in asked.query and len(api.asked) == before + 1:
            return Reply({"error": "unknown cursor"}, status=410)
        return by_cursor(asked, ROWS)

    with local_api(answering) as api:
        zone = ApiZone(api.url, {"orders": CURSOR})
        zone.run_killed(4, after=True, batch={"max_records": 3})
        forgotten[0], before = True, len(api.asked)

        outcome = zone.run()

        assert outcome.failures == {}
        assert {value["id"] for value in zone.values("orders")} == set(range(7))


def test_a_parent_whose_lines_cannot_be_read_stops_no_other() -> None:
    answers: dict[str, Any] = {
        "/orders": [{"id": number} for number in range(1, 6)],
        "/orders/1/lines": Reply(raw=b"<html>", headers={"Content-Type": "text/html"}),
        "/orders/2/lines": {"items": [{"n": 2}], "next": "again"},
        "/orders/3/lines": Reply({}, status=410),
        "/orders/4/lines": {"items": [{"n": "x" * 5000}]},
        "/orders/5/lines": {"items": [{"n": 5}], "next": None},
    }
    with local_api(lambda asked: answers[asked.path]) as api:
        lines = {**CURSOR, "path": "/orders/{id}/lines", "parent": "orders"}
        resources = {"orders": {"path": "/orders"}, "lines": lines}
        zone = ApiZone(api.url, resources, {"max_response": "4KiB"})

        outcome = zone.run()

        assert outcome.failures == {}
        assert [value["n"] for value in zone.values("lines")][-1] == 5
        lost = {one.at: one.why for one in zone.footer("lines").lost}
        assert list(lost) == [f'lines of {{"id":{number}}}' for number in range(1, 5)]
        assert "text/html" in lost['lines of {"id":1}']
        assert "was read before" in lost['lines of {"id":2}']
        assert api.paths.count("/orders/1/lines") == 5, "an unreadable answer is asked for again"


def test_an_answer_that_is_cut_off_once_is_asked_for_again() -> None:
    def answering(asked: Asked) -> Any:
        return Reply(raw=b'{"items": [{"id"') if len(api.asked) == 2 else by_cursor(asked, ROWS)

    with local_api(answering) as api:
        zone = ApiZone(api.url, {"orders": CURSOR})
        assert zone.run().failures == {}
        assert zone.values("orders") == ROWS


def test_a_parent_batch_that_was_removed_is_counted_and_the_next_is_read() -> None:
    orders = [{"id": 1}]

    def answering(asked: Asked) -> Any:
        if asked.path == "/orders":
            return orders
        return Reply({}, status=503) if down[0] else [asked.path]

    down = [True]
    with local_api(answering) as api:
        resources = {
            "orders": {"path": "/orders"},
            "lines": {"path": "/orders/{id}/lines", "parent": "orders"},
        }
        zone = ApiZone(api.url, resources)
        zone.run()
        orders[:] = [{"id": 2}]
        zone.run()
        zone.log("orders").delete(1)
        down[0] = False

        assert zone.run().failures == {}

        assert set(zone.values("lines")) == {"/orders/2/lines"}
        assert zone.footer("lines").totals.lost == 1


def test_an_api_is_not_read_again_for_a_reload() -> None:
    zone = ApiZone("http://127.0.0.1:1", {"orders": {"path": "/orders"}})
    with pytest.raises(OperationError) as refused:
        zone.source(zone.landing).again("orders", {}, {})
    assert refused.value.code == "POLYNYA-STR-071"
    assert "an API gives the records that it has now" in str(refused.value.why)
