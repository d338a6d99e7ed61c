"""Landing from a real broker of Kafka, and tables out of it.

A process has one Spark session, so that another pytest runs `real_broker.py`,
`secured_broker.py`, `real_registry.py`, `real_direct.py`, `real_losses.py` and `real_proposals.py`
on one that has the jars for Kafka.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.oracle.packs.driver import ROOT, environment

TESTS = "tests/streams/kafka/real_broker.py"
SECURED = "tests/streams/kafka/secured_broker.py"
REGISTERED = "tests/streams/kafka/real_registry.py"
TABLES = "tests/streams/kafka/real_direct.py"
LOSSES = "tests/streams/kafka/real_losses.py"
PROPOSALS = "tests/streams/kafka/real_proposals.py"


def _passes(which: str, *tests: str) -> None:
    line = [sys.executable, "-m", "pytest", "-q", "-m", which, "-p", "no:cacheprovider", *tests]

    done = subprocess.run(
        line,
        cwd=ROOT,
        env={**environment(), "POLYNYA_TEST_KAFKA": "1"},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout[-6000:]


@pytest.mark.slow
@pytest.mark.spark
def test_topics_of_a_real_broker_land_exactly_once_and_schemas_of_a_real_registry_evolve() -> None:
    _passes("not slow", TESTS, REGISTERED)


@pytest.mark.spark
@pytest.mark.slow
def test_a_real_broker_that_fails_loses_and_doubles_nothing() -> None:
    _passes("slow", TESTS)


@pytest.mark.spark
@pytest.mark.slow
def test_listeners_with_tls_and_logins_are_read_or_refused_by_name() -> None:
    _passes("slow", SECURED)


@pytest.mark.spark
@pytest.mark.slow
def test_messages_with_schemas_in_a_real_registry_are_read_and_wait_for_it() -> None:
    _passes("slow", REGISTERED)


@pytest.mark.spark
@pytest.mark.slow
def test_tables_out_of_a_real_broker_are_those_of_files() -> None:
    _passes("slow", TABLES)


@pytest.mark.spark
@pytest.mark.slow
def test_what_a_real_broker_deletes_or_loses_is_told_and_a_look_at_it_writes_nothing() -> None:
    _passes("slow", LOSSES)


@pytest.mark.spark
@pytest.mark.slow
def test_proposals_from_topics_of_a_real_broker_and_registry_keep_their_word() -> None:
    _passes("slow", PROPOSALS)
