"""Servers on this machine that stand in for AWS: S3 whose conditions hold, and Kinesis."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import boto3
from werkzeug.serving import make_server

from tests.kinesis import PROGRAM, kinesis_server

REGION = "eu-central-1"
BUCKET = "polynya-demo"
STREAM = "polynya-demo"


def credentials(endpoint: str) -> dict[str, str]:
    """Environment variables by which a process reaches the servers."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_CONFIG_FILE": "/nowhere",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


@contextmanager
def s3_server() -> Iterator[str]:
    """The address of a moto server with the bucket of the demo.

    One request at a time: moto checks a condition and writes without a lock in between.
    """
    from moto.server import DomainDispatcherApplication, create_backend_app

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    inner, alone = DomainDispatcherApplication(create_backend_app), threading.Lock()

    def app(environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        with alone:
            return list(inner(environ, start))

    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, name="moto", daemon=True)
    thread.start()
    try:
        endpoint = f"http://127.0.0.1:{server.server_port}"
        # What servers of one process hold is common to them.
        urlopen(Request(f"{endpoint}/moto-api/reset", method="POST")).close()
        place = {"LocationConstraint": REGION}
        s3_client(endpoint).create_bucket(Bucket=BUCKET, CreateBucketConfiguration=place)
        yield endpoint
    finally:
        server.shutdown()
        thread.join()


def s3_client(endpoint: str) -> Any:
    """A client of the server."""
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
    )


@dataclass(frozen=True, slots=True)
class Stream:
    """The workload stream: for `--stream`, the environment by which it is reached, in words."""

    name: str
    variables: dict[str, str]
    text: str


@contextmanager
def stream(folder: Path) -> Iterator[Stream]:
    """The workload stream: a Kinesis server, or where that is not installed a folder.

    Its text says which of the two.
    """
    if not PROGRAM.is_file():
        text = (
            "NO KINESIS: its stand-in is not installed (`make cluster-demo` does it, or `npm ci`); "
            "nodes tell each other through files in a folder"
        )
        yield Stream(str(folder / "stream"), {}, text)
        return
    with kinesis_server() as endpoint:
        kinesis = boto3.client(
            "kinesis",
            endpoint_url=endpoint,
            region_name=REGION,
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
        )
        kinesis.create_stream(StreamName=STREAM, ShardCount=1)
        text = f"a Kinesis server at {endpoint} has the stream {STREAM}"
        yield Stream(STREAM, {"AWS_ENDPOINT_URL_KINESIS": endpoint}, text)
