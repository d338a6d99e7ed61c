"""What PyIceberg's client of a REST catalog does, in the hands of a hostile or broken server."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from polynya.lake.warehouse import probe, rest_catalog
from polynya.model.config.aws import AwsAccess
from polynya.model.config.catalog import RestAccess, SigV4
from polynya.model.config.target import ResolvedTarget
from polynya.model.errors import DependencyError, OperationError
from polynya.model.names import S3Location
from tests.aws import aws_server
from tests.rest_catalogs import (
    Answer,
    Exchange,
    Forward,
    Proxy,
    proxy,
    reference_server,
    said,
    vending,
)

_SECRET = "hush-hush-4711"


@pytest.fixture
def server() -> Iterator[Proxy]:
    with proxy() as made:
        yield made


def config(**more: Any) -> Answer:
    return Answer(200, json.dumps({"defaults": {}, "overrides": {}, **more}).encode())


def opened(server: Proxy, **settings: Any) -> rest_catalog.RestCatalogClient:
    return rest_catalog.rest_client(RestAccess(uri=server.uri, **settings), "polynya", {})


def slow(*_: object) -> Answer:
    time.sleep(2)
    return config()


#: What the server does, and the code of the error that tells it.
BROKEN: dict[str, tuple[Callable[[Exchange, Forward], Answer], str]] = {
    "garbage": (lambda *_: Answer(200, b"<html>hello</html>"), "POLYNYA-LAKE-064"),
    "a list": (lambda *_: Answer(200, b"[1]"), "POLYNYA-LAKE-064"),
    "not found": (lambda *_: said(404), "POLYNYA-LAKE-064"),
    "unknown warehouse": (lambda *_: said(400), "POLYNYA-LAKE-064"),
    "no login": (lambda *_: said(401), "POLYNYA-LAKE-063"),
    "forbidden": (lambda *_: said(403), "POLYNYA-LAKE-063"),
    "busy": (lambda *_: said(503), "POLYNYA-LAKE-062"),
    "bad gateway without a body": (lambda *_: Answer(502, b""), "POLYNYA-LAKE-062"),
    "slow": (slow, "POLYNYA-LAKE-062"),
    "a redirect": (
        lambda *_: Answer(302, b"", {"Location": "http://127.0.0.1:1/v1/config"}),
        "POLYNYA-LAKE-064",
    ),
    "a class to load": (
        lambda *_: config(overrides={"py-io-impl": "os.system"}),
        "POLYNYA-LAKE-064",
    ),
    "a class of Java": (lambda *_: config(defaults={"io-impl": "evil.Io"}), "POLYNYA-LAKE-064"),
    "another login": (lambda *_: config(overrides={"token": "x"}), "POLYNYA-LAKE-064"),
    "another server": (
        lambda *_: config(overrides={"uri": "http://127.0.0.2:1/"}),
        "POLYNYA-LAKE-064",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_server_that_is_broken_or_hostile_is_told_as_such(
    server: Proxy, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(rest_catalog, "_TIMEOUTS", (0.3, 0.3))
    server.fault, code = BROKEN[name]

    with pytest.raises(DependencyError) as caught:
        opened(server, token=SecretStr(_SECRET))

    assert caught.value.code == code
    assert _SECRET not in caught.value.render()


def test_an_expired_token_is_asked_for_again(server: Proxy) -> None:
    given = iter(["first", "second", "third"])

    def answer(exchange: Exchange, _: Forward) -> Answer:
        if exchange.path.endswith("/tokens"):
            assert b"client_secret=hush-hush-4711" in exchange.body
            token = {"access_token": next(given), "token_type": "Bearer"}
            return Answer(200, json.dumps(token).encode())
        if exchange.path.startswith("/v1/config"):
            return config()
        if exchange.headers["Authorization"] == "Bearer third":
            return Answer(200, b'{"namespaces": [["shop"]]}')
        return said(401)

    server.fault = answer
    client = opened(
        server,
        credential=SecretStr(f"me:{_SECRET}"),
        oauth2_server_uri=f"{server.uri}/tokens",
        scope="lake",
    )

    assert client.list_namespaces() == [("shop",)]
    tokens = [one for one in server.seen if one.path.endswith("/tokens")]
    assert all(b"scope=lake" in one.body for one in tokens)


def test_a_refused_credential_is_told_without_it(server: Proxy) -> None:
    told = {"error": "invalid_client", "error_description": f"unknown secret {_SECRET}"}
    server.fault = lambda *_: Answer(401, json.dumps(told).encode())

    with pytest.raises(DependencyError) as caught:
        opened(
            server,
            credential=SecretStr(f"me:{_SECRET}"),
            oauth2_server_uri=f"{server.uri}/tokens",
        )

    assert caught.value.code == "POLYNYA-LAKE-063"
    assert _SECRET not in caught.value.render()


@pytest.mark.parametrize("vended", [True, False])
def test_credentials_of_files_are_asked_for_where_the_settings_say_so(
    server: Proxy, *, vended: bool
) -> None:
    server.fault = lambda *_: config()

    client = opened(server, vended_credentials=vended, warehouse="lake", prefix="p")

    assert server.seen[0].path == "/v1/config?warehouse=lake"
    header = {name.lower(): value for name, value in server.seen[0].headers.items()}
    assert header.get("x-iceberg-access-delegation") == ("vended-credentials" if vended else None)
    assert "authorization" not in header
    assert client.url("namespaces") == f"{server.uri}/v1/p/namespaces"


def test_requests_to_aws_are_signed(server: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", _SECRET)
    server.fault = lambda *_: config()

    opened(server, sigv4=SigV4(name="s3tables", region="eu-central-1"))

    signed = server.seen[0].headers["Authorization"]
    assert signed.startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert "/eu-central-1/s3tables/aws4_request" in signed


@pytest.mark.parametrize("endpoints", [[], ["GET /v1/{prefix}/namespaces/{namespace}/tables"]])
def test_a_catalog_without_views_is_known_by_its_endpoints(
    server: Proxy, endpoints: list[str]
) -> None:
    server.fault = lambda *_: config(endpoints=endpoints)

    assert not opened(server).holds_views


def without_conditions(exchange: Exchange, forward: Forward) -> Answer:
    """The planted fault: a catalog that takes every commit."""
    if exchange.method == "POST" and b'"requirements"' in exchange.body:
        document = json.loads(exchange.body)
        document["requirements"] = []
        exchange.body = json.dumps(document).encode()
    return forward(exchange)


@pytest.mark.slow
def test_a_catalog_that_takes_every_commit_is_found(tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse"

    def probed(uri: str) -> probe.Probed:
        target = ResolvedTarget(
            "t", tmp_path / "landing", warehouse, "rest", uri, rest=RestAccess(uri=uri)
        )
        return probe.probe_commits(target, "polynya", "shop_internal")

    with reference_server(tmp_path / "server", str(warehouse)) as server, proxy(server.uri) as way:
        found = probed(server.uri)
        way.fault = without_conditions
        with pytest.raises(OperationError) as caught:
            probed(way.uri)
        left = opened(way).list_tables("shop_internal")

    assert caught.value.code == "POLYNYA-LAKE-065"
    assert found.location.startswith(str(warehouse / "shop_internal"))
    assert left == []
    assert [path for path in warehouse.rglob("*") if path.is_file()] == []


@pytest.mark.slow
def test_files_are_reached_with_the_credentials_that_the_catalog_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that takes only those of the catalog; the process has others."""
    place = S3Location("acme-lake", "tables")

    def guarded(exchange: Exchange, forward: Forward) -> Answer:
        sent = {name.lower(): value for name, value in exchange.headers.items()}
        if "Credential=VENDED/" not in sent.get("authorization", ""):
            return Answer(403, b"<Error><Code>AccessDenied</Code></Error>")
        return forward(exchange)

    with aws_server("acme-lake") as endpoint, proxy(endpoint) as store:
        store.fault = guarded
        properties = {
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "s3.endpoint": endpoint, "s3.path-style-access": "true",
            "client.region": "eu-central-1", "http-client.type": "urlconnection",
        }  # fmt: skip
        with (
            reference_server(tmp_path / "server", str(place), properties) as server,
            proxy(server.uri) as way,
        ):
            way.fault = vending
            access = RestAccess(uri=way.uri, vended_credentials=True)
            aws = AwsAccess(region="eu-central-1", endpoint=store.uri)
            target = ResolvedTarget(
                "t", tmp_path / "in", place, "rest", way.uri, rest=access, aws=aws
            )
            found = probe.probe_commits(target, "polynya", "shop_internal")

    assert found.has_vended
    assert any(one.method == "PUT" for one in store.seen)
