"""A fault of the embedded engine costs time and no answer, and is told without being asked for."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from polynya.engine import answers
from polynya.engine.answers import Answers, QueryEngine
from polynya.lake.read.query import Statement
from polynya.lake.spark.api import SparkSession
from polynya.model.errors import OperationError
from polynya.model.loader import load_project
from polynya.query.translate import NotEmbeddedError
from tests.projects import PROJECT, write_project


def _failing(error: Exception) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def _no_spark() -> SparkSession:
    raise AssertionError("Spark was asked for")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (TypeError("unexpected"), ["the embedded engine failed: TypeError: unexpected"]),
        (NotEmbeddedError("it is too large"), []),
    ],
)
def test_only_a_fault_is_told(
    error: Exception,
    told: list[str],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    project = load_project(write_project(tmp_path_factory.mktemp("project"), project=PROJECT))
    monkeypatch.setattr(answers, "answer_embedded", _failing(error))
    with caplog.at_level(logging.WARNING), pytest.raises(OperationError, match="Spark") as refused:
        Answers(project, _no_spark, engine=QueryEngine.EMBEDDED).answer(Statement("SELECT 1"))
    assert refused.value.code == "POLYNYA-QRY-002"
    assert [one.getMessage() for one in caplog.records] == told
