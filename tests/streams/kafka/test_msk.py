"""Brokers of Amazon MSK that ask IAM: how far a login goes without one of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from polynya.lake.spark.jars import AWS, KAFKA, MSK, jar_paths
from polynya.model.config.stream_landing import KafkaSource
from polynya.streams.kafka.reading import client_properties

BROKER = "b-1.web.abcdef.c2.kafka.eu-central-1.amazonaws.com"


def source(**properties: str) -> KafkaSource:
    return KafkaSource.model_validate(
        {"bootstrap_servers": "127.0.0.1:9098", "topics": ["clicks"], "properties": properties}
    )


def test_the_mechanism_alone_says_all_that_a_client_needs() -> None:
    found = client_properties(source(**{"sasl.mechanism": "AWS_MSK_IAM"})).values

    assert found["security.protocol"] == "SASL_SSL"
    assert found["sasl.jaas.config"].startswith("software.amazon.msk.auth.iam.IAMLoginModule ")
    assert found["sasl.client.callback.handler.class"].endswith(".IAMClientCallbackHandler")
    plain = client_properties(source(**{"sasl.mechanism": "PLAIN"})).values
    assert "sasl.jaas.config" not in plain


def test_what_the_task_says_of_it_wins() -> None:
    jaas = 'software.amazon.msk.auth.iam.IAMLoginModule required awsProfileName="lake";'
    written = source(**{"sasl.mechanism": "AWS_MSK_IAM", "sasl.jaas.config": jaas})

    assert client_properties(written).values["sasl.jaas.config"] == jaas


@pytest.fixture
def jvm(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A JVM with Kafka's client, the login module and Iceberg's AWS bundle, without Spark."""
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
    from pyspark.find_spark_home import _find_spark_home

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    own = jar_paths(groups=(AWS, KAFKA, MSK))
    jars = sorted(str(path) for path in (Path(_find_spark_home()) / "jars").glob("*.jar"))
    (py4j,) = [path for path in jars if "py4j" in path]
    port, process = launch_gateway(
        classpath=":".join([*own, *jars]), jarpath=py4j, return_proc=True, die_on_exit=True
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    yield gateway
    gateway.close()
    process.kill()


@pytest.mark.spark
@pytest.mark.slow
def test_a_login_is_signed_with_the_sdk_of_iceberg(jvm: Any) -> None:
    java = jvm.jvm
    properties = java.java.util.Properties()
    for name, value in client_properties(
        source(**{"sasl.mechanism": "AWS_MSK_IAM"})
    ).values.items():
        properties.put(name, value)

    # It loads the login module, and gives up only at a broker.
    client = java.org.apache.kafka.clients.admin.AdminClient.create(properties)
    client.close(java.java.time.Duration.ofSeconds(0))
    said = json.loads(bytes(first_message(jvm)).decode())

    assert said["action"] == "kafka-cluster:Connect"
    assert said["host"] == BROKER
    assert said["x-amz-credential"].endswith("/eu-central-1/kafka-cluster/aws4_request")
    assert len(said["x-amz-signature"]) == 64


def first_message(jvm: Any) -> Any:
    """What the client of a broker of MSK says first."""
    java = jvm.jvm
    entry = java.javax.security.auth.login.AppConfigurationEntry
    flags = java.java.lang.Class.forName(FLAG).getField("REQUIRED").get(None)
    entries = java.java.util.ArrayList()
    entries.add(
        entry("software.amazon.msk.auth.iam.IAMLoginModule", flags, java.java.util.HashMap())
    )
    handler = java.software.amazon.msk.auth.iam.IAMClientCallbackHandler()
    settings = java.java.util.HashMap()
    handler.configure(settings, "AWS_MSK_IAM", entries)
    names = jvm.new_array(java.java.lang.String, 1)
    names[0] = "AWS_MSK_IAM"
    sasl = java.javax.security.sasl.Sasl
    return sasl.createSaslClient(names, None, "kafka", BROKER, settings, handler).evaluateChallenge(
        b""
    )


FLAG = "javax.security.auth.login.AppConfigurationEntry$LoginModuleControlFlag"
