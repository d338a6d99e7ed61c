"""What values and names of files hold never reaches a terminal as a command (S10)."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from polynya.cli.format import as_table, write_csv
from polynya.cli.logs import logging_as
from polynya.cli.main import main
from polynya.cli.options import GlobalOptions
from polynya.cli.output import JsonOutput, Output, TextOutput
from polynya.cli.query import Words
from polynya.cli.visible import visible
from polynya.lake.read.values import Answer
from polynya.model.errors import OperationError

#: A title, a clipboard, a cursor, C1 forms of the same, backspaces, texts that run backwards,
#: invisible marks, half of a surrogate pair.
HOSTILE = (
    "a\x1b]0;title\x07b",
    "a\x1b]52;c;cm0gLXJm\x1b\\b",
    "a\x1b[2J\x1b[1;1Hb",
    "a\x9b2Jb",
    "a\x9d0;title\x9cb",
    "a\x90q\x9cb",
    "safe\x08\x08\x08\x08evil",
    "line\rover",
    "a\x00b\x7fc\x0eb",
    "a\u202egpj.exe",
    "a\u2066b\u2069\u200f\u061c",
    "a\ufeff\u2028\u2029b",
    "a\U000e0041\ufff9b",
    "name\udcff\ud800",
)
#: All that a terminal obeys. Rich writes colours and moves the cursor while something is under way.
OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
OURS = re.compile(r"\x1b\[[0-9;]*[mKA]|\x1b\[\?25[lh]|\r")


class Screen(io.StringIO):
    """A terminal that remembers what it was sent."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def sent(*screens: Screen) -> str:
    return OURS.sub("", "".join(one.getvalue() for one in screens))


@pytest.fixture
def screens() -> tuple[Screen, Screen]:
    return Screen(), Screen()


@pytest.fixture
def output(screens: tuple[Screen, Screen]) -> Output:
    return TextOutput(GlobalOptions(verbose=True), *screens)


def failure(text: str) -> OperationError:
    return OperationError(
        "POLYNYA-QRY-001", text, where=f"file {text}", why=text, state=text, fix=text
    )


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_text_of_every_kind_shows_what_a_terminal_would_obey(
    output: Output, screens: tuple[Screen, Screen], text: str
) -> None:
    table = Table("name", text, title=text, caption=text)
    table.add_row(text, Text(text))
    table.add_row(Panel(text), Panel(Text(text, style="red")))

    output.result("x", {}, text)
    output.result("x", {}, table)
    output.result("x", {}, Text(text, style="bold"))
    output.note(text)
    output.detail(text)
    output.warning(text)
    output.attention(text, "red")
    output.error(failure(text))

    assert OBEYED.search(sent(*screens)) is None


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_rows_of_a_query_show_what_a_terminal_would_obey(
    output: Output, screens: tuple[Screen, Screen], text: str
) -> None:
    text = text.encode("utf-8", "replace").decode()
    rows = pa.table({"a": [text], text: [[{"x": text}]]})

    output.result("rows", {}, as_table(Answer(rows.schema, iter(rows.to_batches())), None)[0])
    write_csv(Answer(rows.schema, iter(rows.to_batches())), screens[0])

    assert OBEYED.search(sent(*screens)) is None


def test_a_program_gets_the_values_of_csv_as_they_are() -> None:
    rows, file = pa.table({"a": ["x\x1by\u202e"]}), io.StringIO()

    write_csv(Answer(rows.schema, iter(rows.to_batches())), file)

    assert file.getvalue() == '"a"\n"x\x1by\u202e"\n'


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_json_escapes_what_a_terminal_would_obey(text: str) -> None:
    screens = Screen(), Screen()
    output = JsonOutput(GlobalOptions(json=True), *screens)

    output.result("x", {"value": text, text: 1})
    output.error(failure(text))
    output.row({"value": text})

    found = sent(*screens)
    assert OBEYED.search(found) is None
    assert found.isascii()
    assert json.loads(found.splitlines()[-1])["value"] == text


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_the_log_shows_what_a_terminal_would_obey(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str
) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)

    with logging_as(GlobalOptions(log_file=tmp_path / "log")):
        logging.getLogger("polynya.x").warning("file %s", text)

    assert OBEYED.search(sent(screen)) is None
    assert OBEYED.search((tmp_path / "log").read_text(encoding="utf-8")) is None


@pytest.mark.parametrize("flags", [[], ["--debug"], ["--json"]])
def test_a_name_on_the_command_line_is_shown(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, flags: list[str]
) -> None:
    for name in HOSTILE[:-1]:
        if "\x00" not in name:
            main(["validate", "--project", str(tmp_path / name), *flags])
            main([name, *flags])

    out, err = capsys.readouterr()
    assert OBEYED.search(OURS.sub("", out + err)) is None


def test_tab_completes_no_word_that_a_terminal_obeys() -> None:
    class Answers:
        def views(self) -> list[str]:
            return ["shop.users", "shop.\x1b]0;x\x07", "shop.\u202eusers"]

        def columns(self, _: str) -> list[str]:
            return []

    assert Words(Answers()).starting("shop", "SELECT") == ["shop.users"]  # type: ignore[arg-type]


def test_letters_of_the_world_and_line_ends_stay_as_they_are() -> None:
    text = "Zoë\tשלם\nמרחבא 👩\u200d💻 ｶﾅ é"

    assert visible(text) == text
    assert visible("a\x1bb\x85") == "a␛b\ufffd"
    assert visible("a\x1bb\x85", "ascii") == "a?b?"
