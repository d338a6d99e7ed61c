"""Servers that are slow, busy, broken or hostile: what lands, what is told, what stays secret."""

from __future__ import annotations

import gzip
import time
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from polynya.formats.landed import SCHEMAS, StreamFooter
from polynya.model.config.stream_content import JSON_CONTENT
from polynya.model.errors import PolynyaError
from polynya.store.http_client import HttpClient, why_local
from polynya.streams.landing import StreamLander
from polynya.streams.rest.api import retry_after
from polynya.streams.rest.pages import next_link
from polynya.streams.rest.position import ApiPosition
from tests.streams.rest.landing import NOW, ApiZone
from tests.streams.rest.server import Asked, Reply, local_api
from tests.streams.rest.test_reading import CURSOR, ROWS, by_cursor, paged

SECRET = "s3cr3t/+value"
ORDERS = {"orders": {"path": "/orders"}}


def failure_of(zone: ApiZone) -> PolynyaError:
    """Why a run failed; nothing that it wrote or told has the secret."""
    [failure] = zone.run().failures.values()
    assert SECRET not in zone.text() + str(failure)
    return failure


@pytest.mark.parametrize(
    "trouble",
    [
        Reply({}, status=429, headers={"Retry-After": "7"}),
        Reply({}, status=429, headers={"Retry-After": format_datetime(NOW + timedelta(minutes=2))}),
        Reply({}, status=429),
        Reply({}, status=500),
        Reply({}, status=503, headers={"Retry-After": "soon"}),
        Reply(write=lambda handler: handler.connection.close()),
        Reply(raw=b'{"items": [', length=500),
    ],
    ids=["seconds", "date", "429", "500", "bad header", "closed", "cut off"],
)
def test_a_request_that_failed_is_sent_again(trouble: Reply) -> None:
    def answering(asked: Asked) -> Any:
        return trouble if len(api.asked) == 2 else by_cursor(asked, ROWS)

    with local_api(answering) as api:
        zone = ApiZone(api.url, {"orders": CURSOR})

        assert zone.run().failures == {}

        assert zone.values("orders") == ROWS
        waited = (zone.clock.now() - NOW).total_seconds()
        wanted = {"7": 7.0}.get(str(trouble.headers.get("Retry-After")), 0.0)
        assert waited >= wanted


def test_the_time_to_come_back_is_read_as_seconds_or_as_a_date() -> None:
    assert retry_after("120", NOW) == 120.0
    assert retry_after(format_datetime(NOW + timedelta(seconds=90)), NOW) == 90.0
    assert retry_after(format_datetime(NOW - timedelta(seconds=90)), NOW) == 0.0
    assert retry_after("9" * 400, NOW) == 86_400.0
    assert [retry_after(text, NOW) for text in (None, "soon", "-5", "Mon, 99 Foo")] == [None] * 4


def test_an_agent_does_not_wait_long_and_asks_no_sooner_than_it_was_told() -> None:
    def answering(asked: Asked) -> Any:
        if len(api.asked) == 2:
            return Reply({}, status=429, headers={"Retry-After": "3600"})
        return by_cursor(asked, ROWS)

    with local_api(answering) as api:
        zone = ApiZone(api.url, {"orders": CURSOR})
        lander = StreamLander(zone.landing_task(), zone.source(zone.landing), zone.log("orders"))
        lander.land(lander.decide(("orders",), once=False), NOW)
        assert zone.values("orders") == ROWS[:3], "what was read before has landed"
        for _ in range(3):
            with pytest.raises(PolynyaError) as busy:
                lander.decide(("orders",), once=False)
            assert busy.value.code == "POLYNYA-STR-101"
        assert (len(api.asked), zone.clock.now()) == (2, NOW)

        zone.clock.advance(timedelta(hours=1))
        lander.land(lander.decide(("orders",), once=False), NOW)

        assert zone.values("orders") == ROWS


def test_a_run_gives_up_after_its_attempts_and_the_next_one_goes_on() -> None:
    down = [True]

    def answering(asked: Asked) -> Any:
        is_down = down[0] and "cursor" in asked.query
        return Reply({"why": SECRET}, status=502) if is_down else by_cursor(asked, ROWS)

    with local_api(answering) as api:
        zone = ApiZone(api.url, {"orders": CURSOR}, {"retries": {"attempts": 3}})
        failure = failure_of(zone)
        assert failure.code == "POLYNYA-STR-100"
        assert "answers 502" in str(failure)
        assert len(api.asked) == 1 + 3
        down[0] = False

        zone.run()

        first = [row["value"] for row in zone.rows("orders") if row["hdr__http_read"] == 1]
        assert len(first) == len(set(first)) == 7


def test_a_limit_spreads_the_requests() -> None:
    with local_api(lambda asked: by_cursor(asked, ROWS)) as api:
        limit = {"rate_limit": {"requests": 6, "per": "1m"}}
        zone = ApiZone(api.url, {"orders": CURSOR}, limit)

        zone.run()

        assert zone.clock.now() - NOW == timedelta(seconds=20)


def test_a_token_that_expires_in_the_middle_is_replaced_once() -> None:
    tokens = ["t-one", "t-two", "t-three"]
    issued: list[str] = []

    def answering(asked: Asked) -> Any:
        if asked.path == "/token":
            issued.append(tokens[len(issued)])
            assert asked.headers["Authorization"] == "Basic Y2xpZW50OnMzY3IzdCUyRiUyQnZhbHVl"
            assert asked.body == "grant_type=client_credentials&scope=read"
            return {"access_token": issued[-1], "expires_in": 3600}
        if asked.query.get("cursor") == "3" and issued == ["t-one"]:
            return Reply({"error": "expired"}, status=401)
        assert asked.headers["Authorization"] == f"Bearer {issued[-1]}"
        return by_cursor(asked, ROWS)

    with local_api(answering) as api:
        auth = {
            "type": "oauth_client_credentials",
            "token_url": f"{api.url}/token",
            "client_id": "client",
            "client_secret": SECRET,
            "scope": "read",
        }
        zone = ApiZone(api.url, {"orders": CURSOR}, {"auth": auth})

        outcome = zone.run()

        assert outcome.failures == {}
        assert zone.values("orders") == ROWS
        assert issued == ["t-one", "t-two"]
        assert not any(text in zone.text() for text in (SECRET, *tokens))


def test_a_refused_token_is_asked_for_once_more_and_not_for_ever() -> None:
    def answering(asked: Asked) -> Any:
        if asked.path == "/token":
            return {"access_token": f"t-{len(api.asked)}"}
        return Reply({"token": asked.headers["Authorization"]}, status=401)

    with local_api(answering) as api:
        auth = {
            "type": "oauth_client_credentials",
            "token_url": f"{api.url}/token",
            "client_id": "client",
            "client_secret": SECRET,
        }
        zone = ApiZone(api.url, ORDERS, {"auth": auth})

        failure = failure_of(zone)

        assert failure.code == "POLYNYA-STR-102"
        assert "***" in str(failure.why), "the server repeats the token"
        assert api.paths == ["/token", "/orders"] * 2


@pytest.mark.parametrize(
    ("auth", "expected"),
    [
        ({"type": "bearer", "token": SECRET}, ("Authorization", f"Bearer {SECRET}")),
        (
            {"type": "basic", "user": "u", "password": SECRET},
            ("Authorization", "Basic dTpzM2NyM3QvK3ZhbHVl"),
        ),
        ({"type": "api_key", "value": SECRET}, ("X-Api-Key", SECRET)),
    ],
    ids=["bearer", "basic", "api key"],
)
def test_each_login_is_sent_and_never_shown(
    auth: dict[str, Any], expected: tuple[str, str]
) -> None:
    def answering(asked: Asked) -> Any:
        headers = {name.title(): value for name, value in asked.headers.items()}
        if headers.get(expected[0]) != expected[1]:
            return Reply({}, status=401)
        return Reply({"you sent": asked.headers}, status=403 if asked.path == "/closed" else 200)

    with local_api(answering) as api:
        zone = ApiZone(api.url, {"closed": {"path": "/closed"}}, {"auth": auth})

        failure = failure_of(zone)

        assert failure.code == "POLYNYA-STR-102"
        assert expected[1].removeprefix("Basic ") not in str(failure)


def test_a_key_in_the_address_is_removed_from_next_addresses_and_sent_again() -> None:
    def answering(asked: Asked) -> Any:
        assert asked.query["key"] == SECRET
        begin = int(asked.query.get("from", 0))
        following = f"{api.url}/orders?key={SECRET}&from={begin + 3}"
        return {"items": ROWS[begin : begin + 3], "next": following if begin < 6 else None}

    with local_api(answering) as api:
        resource = {
            "path": "/orders",
            "record_path": "$.items",
            "pagination": {"type": "next_url", "path": "$.next"},
        }
        auth = {"type": "api_key", "in": "query", "name": "key", "value": SECRET}
        zone = ApiZone(api.url, {"orders": resource}, {"auth": auth})

        assert zone.run(batch={"max_records": 1}).failures == {}

        assert zone.values("orders") == ROWS
        assert SECRET not in zone.text()


def test_a_cursor_with_a_secret_is_not_written_down() -> None:
    with local_api(lambda _: {"items": ROWS, "next": f"x-{SECRET}-y"}) as api:
        zone = ApiZone(api.url, {"orders": CURSOR}, {"auth": {"type": "bearer", "token": SECRET}})
        assert failure_of(zone).code == "POLYNYA-STR-110"


def test_a_redirect_to_another_host_is_refused_and_to_an_allowed_one_goes_without_login() -> None:
    seen: list[dict[str, str]] = []

    def other(asked: Asked) -> Any:
        seen.append(asked.headers)
        return ROWS

    with local_api(other) as there:
        target = there.url.replace("127.0.0.1", "localhost")
        with local_api(lambda _: Reply({}, 302, {"Location": f"{target}/x"})) as api:
            login = {
                "auth": {"type": "bearer", "token": SECRET},
                "headers": {"X-Session": SECRET},
            }
            zone = ApiZone(api.url, ORDERS, login)
            assert failure_of(zone).code == "POLYNYA-STR-105"
            assert seen == []

            allowed = ApiZone(api.url, ORDERS, {**login, "allowed_hosts": ["localhost"]})
            assert allowed.run().failures == {}

            assert allowed.values("orders") == ROWS
            assert SECRET not in str(seen)


@pytest.mark.parametrize(
    "address",
    [
        "http://localhost:1/x",
        "//localhost/x",
        "file:///etc/passwd",
        "ftp://127.0.0.1/x",
        "http://user:pass@127.0.0.1/x",
        "http://127.0.0.1.example.com/x",
        "http://[::1]/x",
        "http://127.0.0.1:1/x",
    ],
)
def test_a_next_address_leads_nowhere_else(address: str) -> None:
    with local_api(lambda _: {"items": [1], "next": address}) as api:
        resource = {
            "path": "/orders",
            "record_path": "$.items",
            "pagination": {"type": "next_url", "path": "$.next"},
        }
        zone = ApiZone(api.url, {"orders": resource})
        failure = failure_of(zone)
        assert failure.code == "POLYNYA-STR-105"
        assert zone.values("orders") == []


def test_a_landed_batch_does_not_choose_where_the_login_goes() -> None:
    stolen: list[dict[str, str]] = []

    def thief(asked: Asked) -> Any:
        stolen.append(asked.headers)
        return {"items": [], "next": None}

    with local_api(thief) as other, local_api(lambda _: {"items": [1]}) as api:
        zone = ApiZone(api.url, {"orders": CURSOR}, {"auth": {"type": "bearer", "token": SECRET}})
        log = zone.log("orders")
        position = ApiPosition("orders", read=1, began=NOW, place={"url": f"{other.url}/x"})
        footer = StreamFooter(
            "shop", "orders", "http", 1, JSON_CONTENT, {}, position.to_json(), NOW
        )
        log.put(footer, SCHEMAS["http"].empty_table())

        assert failure_of(zone).code == "POLYNYA-STR-105"

        assert stolen == []


def test_this_machine_is_not_asked_unless_its_owner_allows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with local_api(lambda _: ROWS) as api:
        monkeypatch.delenv("POLYNYA_LOCAL_APIS")
        zone = ApiZone(api.url, ORDERS)
        failure = failure_of(zone)
        assert failure.code == "POLYNYA-STR-105"
        assert api.asked == []


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "127.9.9.9", "::1", "169.254.169.254", "169.254.170.2", "fe80::1%eth0", "0.0.0.0",
     "::", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "fd00:ec2::254", "224.0.0.1",
     "2002:7f00:0001::"],
)  # fmt: skip
def test_local_addresses_are_known_however_they_are_written(address: str) -> None:
    assert why_local(address) is not None


@pytest.mark.parametrize("address", ["10.0.0.7", "192.168.1.1", "93.184.216.34", "2606:2800::1"])
def test_other_addresses_may_be_asked(address: str) -> None:
    assert why_local(address) is None


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply(raw=b'{"items": [{"id": 1}, {"i'), "cut off"),
        (Reply(raw=b"<html>Log in</html>", headers={"Content-Type": "text/html"}), "text/html"),
        (Reply({"results": []}), "no key `items`"),
        (Reply({"items": 7}), "a number"),
        (Reply(raw=b""), "cut off"),
        (Reply(raw=b'{"items": []} {"items": []}'), "more text"),
        (Reply(raw=b'{"x": ' + b"[" * 1000 + b"]" * 1000 + b"}"), "nested deeper"),
        (Reply({"items": [1], "next": {"a": 1}}), "not a short value"),
        (Reply({"items": [{"x": "y" * 9000}]}), "more than 4,096 bytes"),
        (
            Reply(raw=gzip.compress(b" " * 50_000_000), headers={"Content-Encoding": "gzip"}),
            "more than 4,096 bytes",
        ),
    ],
    ids=["cut", "html", "path", "kind", "empty", "two", "deep", "cursor", "large", "bomb"],
)
def test_an_answer_that_cannot_be_read_lands_nothing(reply: Reply, words: str) -> None:
    with local_api(lambda _: reply) as api:
        zone = ApiZone(api.url, {"orders": CURSOR}, {"max_response": "4KiB"})
        failure = failure_of(zone)
        assert failure.code == "POLYNYA-STR-104"
        assert words in str(failure)
        assert zone.values("orders") == []


def test_a_compressed_answer_and_an_empty_list_are_read() -> None:
    body = gzip.compress(b'{"items": [{"id": 1}], "next": null}')
    with local_api(lambda _: Reply(raw=body, headers={"Content-Encoding": "gzip"})) as api:
        zone = ApiZone(api.url, {"orders": CURSOR})
        assert zone.run().failures == {}
        assert zone.values("orders") == [{"id": 1}]
    with local_api(lambda _: Reply(raw=b"", status=204)) as api:
        zone = ApiZone(api.url, {"orders": CURSOR})
        assert zone.run().failures == {}


def test_a_record_that_is_nested_too_deeply_lands_for_the_quarantine() -> None:
    deep = b"[" * 20_000 + b"]" * 20_000
    with local_api(lambda _: Reply(raw=b'{"items": [1, ' + deep + b"]}")) as api:
        zone = ApiZone(api.url, {"orders": {"path": "/orders", "record_path": "$.items"}})
        assert zone.run().failures == {}
        assert [row["value"] for row in zone.rows("orders")] == [b"1", deep]


def test_an_empty_page_with_a_cursor_is_not_the_last_one() -> None:
    pages = {"": ([1], "a"), "a": ([], "b"), "b": ([2], None)}

    def answering(asked: Asked) -> Any:
        items, following = pages[asked.query.get("cursor", "")]
        return {"items": items, "next": following}

    with local_api(answering) as api:
        zone = ApiZone(api.url, {"orders": CURSOR})
        zone.run()
        assert zone.values("orders") == [1, 2]


@pytest.mark.parametrize(
    ("resource", "words"),
    [
        (CURSOR, "was read before"),
        ({"path": "/orders", "pagination": {"type": "page"}, "record_path": "$.items"}, "the one"),
        ({**CURSOR, "max_pages": 3}, "more than 3 pages"),
    ],
    ids=["cursor", "ignored parameter", "limit"],
)
def test_pages_that_do_not_end_are_ended_and_told(resource: dict[str, Any], words: str) -> None:
    loop = {"": "a", "a": "b", "b": "c", "c": "d", "d": "b"}

    def answering(asked: Asked) -> Any:
        cursor = asked.query.get("cursor", "")
        return {"items": [{"id": cursor}], "next": loop[cursor]}

    with local_api(answering) as api:
        zone = ApiZone(api.url, {"orders": resource})
        failure = failure_of(zone)
        assert failure.code == "POLYNYA-STR-106"
        assert words in str(failure)
        assert 0 < len(zone.values("orders")) < 30
        # The next run tries again, and ends as well.
        assert failure_of(zone).code == "POLYNYA-STR-106"


def test_a_404_behind_the_last_numbered_page_ends_the_read() -> None:
    def answering(asked: Asked) -> Any:
        rows = paged(asked, ROWS)
        return rows or Reply({"detail": "Invalid page."}, status=404)

    with local_api(answering) as api:
        zone = ApiZone(api.url, {"orders": {"path": "/orders", "pagination": {"type": "page"}}})
        assert zone.run().failures == {}
        assert zone.values("orders") == ROWS


@pytest.mark.parametrize("where", ["headers", "body"])
def test_an_answer_that_drips_is_given_up(where: str) -> None:
    def drip(handler: Any) -> None:
        head = b"HTTP/1.1 200 OK\r\n"
        if where == "body":
            head += b"Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n["
        handler.wfile.write(head)
        try:
            for _ in range(100):
                handler.wfile.write(b"X-A: b\r\n" if where == "headers" else b" ")
                handler.wfile.flush()
                time.sleep(0.05)
        except OSError:
            pass

    with local_api(lambda _: Reply(write=drip)) as api:
        settings = {"timeout": "300ms", "retries": {"attempts": 1}}
        zone = ApiZone(api.url, ORDERS, settings)
        begun = time.monotonic()
        failure = failure_of(zone)
        assert failure.code == "POLYNYA-STR-100"
        assert time.monotonic() - begun < 3


def test_the_next_link_is_found_among_others() -> None:
    assert next_link(
        '<https://a/?p=1>; rel="first", <https://a/?p=3,4>; title="a;b"; rel=next'
    ) == ("https://a/?p=3,4")
    assert next_link('<x>; rel="prev NEXT"') == "x"
    assert next_link("<x>; rel=nextish, nonsense") is None
    assert next_link("<" * 100_000) is None


def test_an_answer_is_read_no_further_than_its_limit() -> None:
    with local_api(lambda _: Reply(raw=b"x" * 100_000, status=500)) as api:
        client = HttpClient(timeout=5, max_bytes=10)
        assert len(client.get(api.url, {}).body) == 16 * 1024
