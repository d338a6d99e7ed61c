"""What errors of Kafka mean, and that they repeat no secret."""

from __future__ import annotations

import pytest

from polynya.streams.kafka.errors import explained
from tests.streams.kafka.fake import kafka_source

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


@pytest.mark.parametrize(
    ("kind", "said", "code"),
    [
        (
            "sun.security.provider.certpath.SunCertPathBuilderException",
            "unable to find valid certification path to requested target",
            "POLYNYA-STR-080",
        ),
        (
            "java.security.cert.CertificateExpiredException",
            "NotAfter: Thu Jan 01 00:00:00 UTC 2026",
            "POLYNYA-STR-080",
        ),
        (
            "java.security.cert.CertificateException",
            "No subject alternative DNS name matching broker found.",
            "POLYNYA-STR-081",
        ),
        ("javax.net.ssl.SSLHandshakeException", "Received fatal alert: bad_certificate",
         "POLYNYA-STR-008"),
    ],
)  # fmt: skip
def test_a_handshake_that_fails_says_whose_certificate_is_wrong(kind, said, code):
    chain = [(f"{KAFKA}SslAuthenticationException", "SSL handshake failed"), (kind, said)]

    error = explained(chain, "task in, b:9092")

    assert error.code == code
    assert said in error.why


def test_a_client_that_cannot_be_made_has_wrong_settings_or_files():
    begin = ("org.apache.kafka.common.KafkaException", "Failed to create new KafkaAdminClient")
    file = (f"{KAFKA}InvalidConfigurationException", "Failed to load PEM SSL keystore /no/ca.pem")
    jaas = ("java.lang.IllegalArgumentException", "JAAS config entry not terminated by semi-colon")

    unreadable = explained([begin, file, ("java.io.IOException", "Unable to read it")], "x")
    misspelt = explained([begin, jaas], "x")

    assert (unreadable.code, misspelt.code) == ("POLYNYA-STR-082", "POLYNYA-STR-009")
    assert "/no/ca.pem; IOException: Unable to read it" in unreadable.why


def test_records_that_went_before_they_were_read_have_a_name():
    chain = [("org.apache.kafka.clients.consumer.OffsetOutOfRangeException", "Fetch position 3")]

    assert explained(chain, "x").code == "POLYNYA-STR-011"


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
