"""A server on this machine that stands in for AWS."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.request import Request, urlopen

import boto3
import pytest
from botocore.loaders import JSONFileLoader

from polynya.testing.fake_imds import FakeImds, fake_imds

REGION = "eu-central-1"

#: Each session of the SDK reads the models of its services anew, some MB for each client. Those of
#: a process of tests share what was read once, as the clients of one session do.
_LOADED: dict[str, Any] = {}


def _load_once(loader: JSONFileLoader, path: str, load: Any = JSONFileLoader.load_file) -> Any:
    if path not in _LOADED:
        _LOADED[path] = load(loader, path)
    return _LOADED[path]


JSONFileLoader.load_file = _load_once


@contextmanager
def aws_server(*buckets: str) -> Iterator[str]:
    """The address of a moto server with these buckets; credentials for it in the environment."""
    from moto.server import ThreadedMotoServer
    from werkzeug.serving import BaseWSGIServer

    # Seconds until it sees that it is to end: half of one by default, at the end of each module.
    BaseWSGIServer.serve_forever.__defaults__ = (0.02,)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        patch.setenv("AWS_CONFIG_FILE", "/nowhere")
        patch.delenv("AWS_PROFILE", raising=False)
        server.start()
        try:
            host, port = server.get_host_and_port()
            endpoint = f"http://{host}:{port}"
            for bucket in buckets:
                place = {"LocationConstraint": REGION}
                client("s3", endpoint).create_bucket(Bucket=bucket, CreateBucketConfiguration=place)
            try:
                yield endpoint
            finally:
                # What servers of one process hold is common to them.
                urlopen(Request(f"{endpoint}/moto-api/reset", method="POST")).close()
        finally:
            server.stop()


@contextmanager
def machine_with_role() -> Iterator[FakeImds]:
    """The metadata service of this machine, which has a role and no other credentials."""
    with pytest.MonkeyPatch.context() as patch, fake_imds() as service:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
            patch.delenv(name, raising=False)
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
        patch.setenv("AWS_METADATA_SERVICE_TIMEOUT", "1")
        patch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", service.address)
        service.has_role()
        yield service


@contextmanager
def glue_that_checks_versions() -> Iterator[None]:
    """Let the server refuse an update of a table that names a version which is not the table's.

    On it rests that two owners of a table cannot both commit, and moto leaves it out (AWS Glue Web
    API Reference, `UpdateTable`: `VersionId`, ConcurrentModificationException).
    """
    from moto.core.exceptions import JsonRESTError
    from moto.core.responses import EmptyResult
    from moto.glue.responses import GlueResponse

    one_update = threading.Lock()

    def update_table(self: Any) -> Any:
        asked = self.parameters
        with one_update:
            name = asked["TableInput"]["Name"]
            table = self.glue_backend.get_table(asked["DatabaseName"], name)
            based_on, current = asked.get("VersionId"), table.as_dict()["VersionId"]
            if based_on is not None and based_on != current:
                message = f"version {based_on} of {name} is not the current one, {current}"
                raise JsonRESTError("ConcurrentModificationException", message)
            table.update(asked["TableInput"])
        return EmptyResult()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GlueResponse, "update_table", update_table)
        yield


@contextmanager
def aws_clients() -> Iterator[Callable[[str], Any]]:
    """A server without buckets, as a maker of clients for its services."""
    with aws_server() as endpoint:
        yield lambda service: client(service, endpoint)


def client(service: str, endpoint: str) -> Any:
    """A client of the server for tests to set up and to look."""
    return boto3.client(service, endpoint_url=endpoint, region_name=REGION)


@contextmanager
def s3_whose_conditions_hold() -> Iterator[None]:
    """Let the server check a condition and write in one step; moto has no lock in between.

    On it rests that two nodes cannot both own a unit.
    """
    from moto.s3.responses import S3Response

    plain, alone = S3Response.put_object, threading.Lock()

    def put_object(self: Any) -> Any:
        with alone:
            return plain(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(S3Response, "put_object", put_object)
        yield
