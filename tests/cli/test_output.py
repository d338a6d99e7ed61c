"""Where results, notes and errors go, and how values look in JSON."""

from __future__ import annotations

import io
import json
import threading
import time
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from polynya.cli.format import to_json
from polynya.cli.options import GlobalOptions
from polynya.cli.output import JsonOutput, TextOutput
from polynya.model.errors import ConfigError, ConfigErrors

PLUS_TWO = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (datetime(2026, 1, 1, 12, tzinfo=UTC), "2026-01-01T12:00:00Z"),
        (datetime(2026, 1, 1, 12, 0, 0, 5, tzinfo=PLUS_TWO), "2026-01-01T10:00:00.000005Z"),
        (datetime(2026, 1, 1, 12), "2026-01-01T12:00:00"),
        (date(2026, 1, 1), "2026-01-01"),
        (Decimal("1.50"), "1.50"),
        (Decimal("1E+3"), "1000"),
        (b"\x00\xff", "00ff"),
        (bytearray(b"\x01"), "01"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (1.5, 1.5),
        (True, True),
        (2**70, 2**70),
        (None, None),
        ({"a": [Decimal("1"), {1: b"\x01"}]}, {"a": ["1", {"1": "01"}]}),
        ("ñ😀\n", "ñ😀\n"),
    ],
)
def test_values_become_json_without_loss(value, expected):
    text = to_json(value)

    assert json.loads(text) == expected
    assert text.isascii()
    assert "\n" not in text


def both(kind, **options):
    out, err = io.StringIO(), io.StringIO()
    return kind(GlobalOptions(no_color=True, **options), out, err), out, err


def lines(stream):
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_json_results_are_lines_with_a_type_after_the_version():
    output, out, err = both(JsonOutput, json=True)

    output.result("check", {"name": "java"}, "for people")
    output.note("for people")

    first, second = lines(out)
    assert (first["type"], first["format_version"]) == ("version", "1.0")
    assert second == {"type": "check", "name": "java"}
    assert err.getvalue() == "for people\n"


def test_rows_own_standard_output():
    output, out, err = both(JsonOutput, json=True)

    output.row({"id": 1})
    output.error(ConfigError("POLYNYA-X-001", "late"))

    assert out.getvalue() == '{"id":1}\n'
    assert lines(err) == [
        {"type": "error", "code": "POLYNYA-X-001", "message": "late", "retryable": False}
    ]


def test_several_errors_are_several_lines():
    output, out, _ = both(JsonOutput, json=True)

    output.error(ConfigErrors([ConfigError("A", "a"), ConfigError("B", "b")]))

    assert [line.get("code") for line in lines(out)] == [None, "A", "B"]


def test_text_keeps_results_and_words_for_people_apart():
    output, out, err = both(TextOutput)

    output.result("check", {}, "all is well [not markup] :smile:")
    output.note("a note")
    output.warning("a warning")
    output.error(ConfigError("A", "a"))

    assert out.getvalue() == "all is well [not markup] :smile:\n"
    assert err.getvalue().splitlines() == [
        "a note",
        "warning: a warning",
        "error[A]: a",
        "  more: polynya explain A",
    ]


def test_quiet_silences_notes_only():
    output, _, err = both(TextOutput, quiet=True)

    output.note("a note")
    output.detail("a detail")
    output.warning("a warning")

    assert err.getvalue() == "warning: a warning\n"


def test_long_lines_are_not_wrapped():
    output, out, _ = both(TextOutput)

    output.result("x", {}, "x" * 500)

    assert out.getvalue() == "x" * 500 + "\n"


class Slow(io.StringIO):
    """A stream that lets other threads go on before it writes."""

    def write(self, text):
        time.sleep(0.001)
        return super().write(text)


def test_the_lines_of_an_error_stay_together_when_several_threads_fail():
    err = Slow()
    output = TextOutput(GlobalOptions(no_color=True), io.StringIO(), err)
    errors = [ConfigError(letter, letter * 3, fix="none", state="as it was") for letter in "ABCD"]
    together = threading.Barrier(len(errors))

    def fail(error):
        together.wait()
        for _ in range(3):
            output.error(error)

    threads = [threading.Thread(target=fail, args=(error,)) for error in errors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    lines_of_one = len(errors[0].render().splitlines())
    said = err.getvalue().splitlines()
    parts = [said[n : n + lines_of_one] for n in range(0, len(said), lines_of_one)]
    assert len(parts) == 3 * len(errors)
    assert all(part in [error.render().splitlines() for error in errors] for part in parts)
