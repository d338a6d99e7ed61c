"""What errors of Kafka mean, and that they repeat no secret."""

from __future__ import annotations

import pytest

from polynya.streaming.kafka.errors import explained
from tests.streaming.kafka.fake import kafka_source

KAFKA = "org.apache.kafka.common.errors."


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("TimeoutException", "POLYNYA-STR-005"),
        ("TopicAuthorizationException", "POLYNYA-STR-007"),
        ("SaslAuthenticationException", "POLYNYA-STR-008"),
        ("SslAuthenticationException", "POLYNYA-STR-008"),
        ("UnknownServerException", "POLYNYA-STR-010"),
    ],
)
def test_what_kafka_refuses_has_a_name(kind, code):
    chain = [("java.util.concurrent.ExecutionException", "x"), (f"{KAFKA}{kind}", "said why")]

    error = explained(chain, "task in, b:9092")

    assert (error.code, error.retryable) == (code, True)
    assert error.why == f"{kind}: said why"


def test_what_a_task_of_spark_met_is_found_in_its_message():
    said = f"Job aborted: Lost task: {KAFKA}SaslAuthenticationException: no\n\tat x"

    assert explained([("org.apache.spark.SparkException", said)], "x").code == "POLYNYA-STR-008"


def test_what_is_not_of_kafka_is_left_as_it_is():
    assert explained([("java.lang.NullPointerException", "x")], "x") is None


def test_an_error_repeats_no_secret():
    login = 'x.LoginModule required username="lake" password="hunter2" clientSecret=hunter3;'
    source = kafka_source(
        properties={"ssl.key.password": "hunter4", "sasl.jaas.config": login, "client.id": "lake"}
    )
    said = f"{login} and hunter4"

    error = explained([(f"{KAFKA}UnknownServerException", said)], "x", source.secrets())

    assert source.secrets() == ("hunter4", "hunter2", "hunter3")
    assert "hunter" not in error.render()
    assert "lake" in error.render()
