"""A JVM with Kafka's clients and nothing else, for who has no Spark session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from examples.servers.kafka import jars
from polynya.lake.spark import jars as ivy
from polynya.lake.spark.java import find_java

_SMALL: Final = ["-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]


@contextmanager
def kafka_clients() -> Iterator[Any]:
    """Its gateway. The JVM ends with the block, and with this process however that ends.

    Ctrl-C does not reach it, so that what closes at the end of the block still works.
    Raises UnavailableError where the jars cannot be had.
    """
    py4j = next(ivy.spark_jars_directory().glob("py4j-*.jar"))
    port, token, process = launch_gateway(
        jarpath=str(py4j), classpath=f"{jars()}/*", javaopts=_SMALL, die_on_exit=True,
        java_path=str(find_java().executable), create_new_process_group=True, enable_auth=True,
        return_proc=True,
    )  # fmt: skip
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    try:
        yield gateway
    finally:
        with suppress(Exception):
            gateway.close()
        process.kill()
        process.wait()
