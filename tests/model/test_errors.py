"""How errors read, and that their class decides exit code and retry."""

from __future__ import annotations

import pickle

from polynya.model import errors


def test_an_error_reads_as_four_lines():
    error = errors.ConfigError(
        "POLYNYA-CFG-007",
        "unknown key `topik`",
        where="tasks/clicks.yml:5:3",
        why="only known settings are allowed",
        state="nothing was written",
        fix="did you mean `topic`?",
    )

    assert error.render().splitlines() == [
        "error[POLYNYA-CFG-007]: unknown key `topik`",
        "  --> tasks/clicks.yml:5:3",
        "  why: only known settings are allowed; state of the data: nothing was written",
        "  fix: did you mean `topic`?; more: polynya explain POLYNYA-CFG-007",
    ]
    assert str(error) == "tasks/clicks.yml:5:3: unknown key `topik`; did you mean `topic`?"


def test_lines_with_nothing_to_say_are_left_out():
    error = errors.OperationError("POLYNYA-RUN-003", "it failed")

    assert error.render().splitlines() == [
        "error[POLYNYA-RUN-003]: it failed",
        "  more: polynya explain POLYNYA-RUN-003",
    ]
    assert error.as_dict() == {
        "code": "POLYNYA-RUN-003",
        "message": "it failed",
        "retryable": False,
    }


def test_the_class_decides_exit_code_and_retry():
    expected = {
        errors.ConfigError: (2, False),
        errors.OperationError: (1, False),
        errors.DataError: (1, False),
        errors.DependencyError: (4, True),
        errors.ConflictError: (5, True),
        errors.InternalError: (70, False),
    }

    found = {kind: (kind("X", "x").exit_code, kind("X", "x").retryable) for kind in expected}

    assert found == expected


def test_errors_survive_pickling_between_processes():
    one = errors.ConflictError("POLYNYA-LAKE-003", "moved", where="t", state="s", fix="f")
    many = errors.ConfigErrors([errors.ConfigError("A", "a"), errors.ConfigError("B", "b")])

    assert pickle.loads(pickle.dumps(one)).render() == one.render()
    assert pickle.loads(pickle.dumps(many)).render() == many.render()


def test_several_errors_read_as_a_list_with_their_count():
    many = errors.ConfigErrors([errors.ConfigError("A", "a"), errors.ConfigError("B", "b")])

    assert many.exit_code == 2
    assert many.render().splitlines()[-1] == "2 errors in the configuration"
    assert str(many) == "a\nb"
