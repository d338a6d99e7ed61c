"""Which topics are taken, what their landed tables are called, and what errors of Kafka mean."""

from __future__ import annotations

import pytest

from polynya.model.config.streaming.landing import Into
from polynya.streaming.kafka.errors import explained
from polynya.streaming.kafka.topics import by_table, landed_table, named, taken
from tests.streaming.kafka.fake import kafka_source

EACH = Into(each="topic")


@pytest.mark.parametrize(
    ("pattern", "takes"),
    [
        ("clicks", ["clicks"]),
        ("orders-%", ["orders-", "orders-eu", "orders-us.v1"]),
        ("%", ["clicks", "orders", "orders-", "orders-eu", "orders-us.v1"]),
        ("%.v1", ["orders-us.v1"]),
        ("o%s", ["orders"]),
        ("order.", []),
    ],
)
def test_a_wildcard_stands_for_any_text_and_nothing_else_is_special(pattern, takes):
    there = ["orders-eu", "clicks", "orders-us.v1", "orders", "orders-"]

    assert list(taken([pattern], there)) == takes


def test_topics_that_are_named_are_those_without_a_wildcard():
    assert named(["a", "b-%"]) == ("a",)


@pytest.mark.parametrize(
    ("topic", "table"), [("Clicks", "clicks"), ("a-b.c d", "a_b_cd"), ("2024_x", "2024_x")]
)
def test_a_landed_table_is_named_by_rule(topic, table):
    assert landed_table(topic) == table


def test_two_topics_that_want_one_table_are_told_and_the_first_keeps_it():
    tables, [error] = by_table(EACH, ["a.b", "a-b", "c"], "task in")

    assert tables == {"a_b": ("a-b",), "c": ("c",)}
    assert error.code == "POLYNYA-STR-012"
    assert "`a-b` and `a.b` both want" in error.message


def test_all_topics_land_in_one_table_if_it_is_named():
    assert by_table(Into(table="all"), ["b", "a"], "x") == ({"all": ("a", "b")}, [])
    assert by_table(Into(table="all"), [], "x") == ({}, [])


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
