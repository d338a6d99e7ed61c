"""An entry of the error catalogue makes its error from templates and values."""

from __future__ import annotations

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import FencedError, OperationError, TaskStoppedError

_ENTRY = ErrorEntry(
    OperationError,
    "POLYNYA-XYZ-001",
    title="the broker does not answer",
    message="the broker {broker} does not answer",
    state="nothing of {topic} was landed",
    fix="start {broker}",
    page="The page.",
)


def test_an_entry_puts_the_values_of_a_call_into_its_texts():
    error = _ENTRY(where="task clicks", why="refused", broker="b1", topic="{orders}")

    assert type(error) is OperationError
    assert error.as_dict() == {
        "code": "POLYNYA-XYZ-001",
        "message": "the broker b1 does not answer",
        "where": "task clicks",
        "why": "refused",
        "state": "nothing of {orders} was landed",
        "fix": "start b1",
        "retryable": False,
    }


def test_texts_of_the_call_replace_those_of_the_entry_and_are_no_templates():
    error = _ENTRY("{broken}", state="{nothing}", fix="{wait}")

    assert (error.message, error.state, error.fix) == ("{broken}", "{nothing}", "{wait}")


def test_an_entry_without_a_message_has_its_title():
    error = ErrorEntry(OperationError, "POLYNYA-XYZ-002", title="it failed", page="The page.")()

    assert (error.message, error.state, error.fix) == ("it failed", None, None)


def test_an_entry_raises_another_class_where_callers_tell_cases_apart():
    error = _ENTRY.raising(TaskStoppedError)(broker="b1", topic="orders")

    assert type(error) is TaskStoppedError
    assert (error.code, error.fix) == (_ENTRY.code, "start b1")


def test_a_fenced_error_carries_the_newer_owner():
    entry = ErrorEntry(FencedError, "POLYNYA-XYZ-003", title="taken", page="The page.")

    error = entry(where="t").by(epoch=5, owner="n2")

    assert (error.epoch, error.owner, error.where) == (5, "n2", "t")


def test_a_value_that_a_call_forgot_does_not_hide_the_error():
    error = _ENTRY(where="task clicks")

    assert error.message == "the broker BROKER does not answer"


def test_the_parts_of_an_entry_name_their_values_and_keep_other_braces():
    entry = ErrorEntry(
        OperationError,
        "POLYNYA-XYZ-004",
        title="too many",
        message="{count:,} are too many",
        fix="write `{{each: topic}}`",
        page="The page.",
    )

    assert entry.parts() == {
        "message": "COUNT are too many",
        "state": None,
        "fix": "write `{each: topic}`",
    }
