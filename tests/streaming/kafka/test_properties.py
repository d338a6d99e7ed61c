"""Properties of a client of Kafka: secrets are read at each use, and no message shows them."""

from __future__ import annotations

from pathlib import Path

from polynya.model.config.streaming.kafka import KafkaSource
from polynya.store.vault import Vault
from polynya.streaming.kafka.errors import explained
from polynya.streaming.kafka.properties import client_properties


def source(properties: dict[str, str]) -> KafkaSource:
    return KafkaSource.model_validate(
        {"bootstrap_servers": "broker:9092", "topics": ["clicks"], "properties": properties}
    )


def test_a_secret_that_was_exchanged_is_taken_at_the_next_use(tmp_path: Path) -> None:
    file = tmp_path / "password"
    read = source({"sasl.jaas.config": f'Login required password="${{file:{file}}}";'})

    for password in ("first", "second"):
        file.write_text(password)
        found = client_properties(read).values
        assert found["sasl.jaas.config"] == f'Login required password="{password}";'
        assert found["bootstrap.servers"] == "broker:9092"
        assert found["isolation.level"] == "read_committed"


def test_no_message_shows_a_secret_that_was_read() -> None:
    read = source(
        {
            "sasl.jaas.config": 'Login required password="${secret:a}" token="plain";',
            "ssl.keystore.key": "${secret:b}",
        }
    )
    found = client_properties(read, Vault({"a": 'x"y', "b": "PRIVATE"}.__getitem__))
    said = 'bad login x"y x\\"y plain PRIVATE'
    chain = [("org.apache.kafka.common.errors.SaslAuthenticationException", said)]

    error = explained(chain, "task clicks", found.secrets)

    assert error is not None
    assert error.code == "POLYNYA-STR-008"
    for secret in ("x", "plain", "PRIVATE"):
        assert secret not in error.render().partition("bad login")[2].partition("\n")[0]
    assert "PRIVATE" not in f"{found} {read!r} {read.model_dump_json()}"
