"""Longer tries of the security suite: hostile parts in random places, whole runs."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from polynya.cli.options import GlobalOptions
from polynya.cli.output import JsonOutput, TextOutput
from polynya.formats.landed import batch_name
from polynya.lake.read.query import run_query
from polynya.lake.spark.api import SparkSession
from polynya.model.errors import ConfigError, OperationError
from polynya.transform.source_conditions import checked_condition
from tests.formats.stream.streams import landed
from tests.projects import write_project
from tests.security.test_landed_secrets import with_footer
from tests.security.test_terminal import OBEYED, OURS, Screen

SEED = int(os.environ.get("POLYNYA_TEST_SEED", "1"))

CALLS = (
    "reflect('java.lang.System', 'getProperty', 'user.home')",
    "java_method('java.lang.System', 'getProperty', 'user.home')",
    "`try_reflect`('java.lang.System', 'getProperty', 'user.home')",
    "IDENTIFIER('reflect')('java.lang.System', 'gc')",
    "from_xml('<a/>', 'a INT', map('rowValidationXSDPath', '/etc/hostname'))",
)
RELATIONS = (
    "(SELECT TRANSFORM(a) USING 'touch PLACE/out' AS (a) FROM VALUES ('1') AS v(a))",
    "(FROM VALUES ('1') AS v(a) MAP a USING 'touch PLACE/out' AS a)",
    "text.`/etc/hostname`",
    "IDENTIFIER('text.`/etc/hostname`')",
    "python_worker_logs()",
    "nobodys_function(1)",
)
#: Where a call may stand, and where a relation may.
OF_CALLS = (
    "upper({})", "CASE WHEN true THEN {} END", "transform(array(1), x -> {})[0]",
    "(SELECT max({}) FROM VALUES (1) AS w(z))", "coalesce(NULL, {})", "named_struct('q', {}).q",
    "CAST({} AS STRING)", "max({}) OVER (PARTITION BY {})", "concat('x', /* y */ {})",
    "IF(EXISTS (SELECT {}), 'a', 'b')", "'a' || {}", "{} COLLATE UTF8_LCASE",
)  # fmt: skip
STATEMENTS = (
    "SELECT {call} AS c FROM {relation} AS r",
    "WITH q AS (SELECT {call} AS c FROM {relation} AS r) SELECT * FROM q",
    "SELECT 1 FROM {relation} AS r WHERE {call} = 'x'",
    "SELECT 1 FROM {relation} AS r ORDER BY {call}",
    "SELECT count(*) FROM {relation} AS r GROUP BY {call}",
    "SELECT count(*) FROM {relation} AS r HAVING max({call}) = 'x'",
    "SELECT 1 FROM {relation} AS r JOIN VALUES ('x') AS o(y) ON o.y = {call}",
    "SELECT 1 FROM {relation} AS r LATERAL VIEW explode(array({call})) e AS y",
    "SELECT 1 FROM {relation} AS r UNION ALL SELECT length({call})",
    "FROM {relation} AS r |> EXTEND {call} AS c |> LIMIT 1",
    "EXPLAIN SELECT {call} FROM {relation} AS r",
    "DESCRIBE QUERY SELECT {call} AS c FROM {relation} AS r",
    "SELECT * FROM (SELECT {call} AS c FROM {relation} AS r) PIVOT (count(1) FOR c IN ('x'))",
)


@pytest.mark.slow
def test_hostile_parts_are_refused_wherever_they_stand(spark: SparkSession, tmp_path: Path) -> None:
    draw = random.Random(SEED)
    for number in range(400):
        call, relation = "'fine'", "VALUES ('1')"
        if number % 2:
            call = draw.choice(CALLS)
            for _ in range(draw.randrange(4)):
                call = draw.choice(OF_CALLS).replace("{}", call)
        else:
            relation = draw.choice(RELATIONS).replace("PLACE", str(tmp_path))
            for _ in range(draw.randrange(3)):
                relation = f"(SELECT * FROM {relation} AS i{draw.randrange(9)})"
        text = draw.choice(STATEMENTS).replace("{call}", call).replace("{relation}", relation)
        if draw.random() < 0.3:
            text = f"/* SELECT */ {text}"

        with pytest.raises(OperationError):
            run_query(spark, text)

    assert list(tmp_path.iterdir()) == []


WORDS = (
    "a", "1", "'x'", "''", "'", '"', "`", "\\", "\\'", "(", ")", "[", "]", ";", "--", "/*", "*/",
    "/*!", "#", "$$", "$x$", "E'", "U&'", "\n", " ", "=", "AND", "OR", "NOT", "IN", "SELECT",
    "UNION", "DROP TABLE x", "INTO OUTFILE 'x'", "FOR UPDATE", ",", "::text", "@", ":=", "%",
    "LIKE", "IS NULL", "lower(", "pg_sleep(1)", "SLEEP(1)", "true", "{", "}", "\t", "_utf8'",
)  # fmt: skip


def left_open(text: str, *, mysql: bool) -> bool:
    """Whether a text closes a parenthesis that it has not opened, by the plainest reading."""
    depth, quote, at = 0, "", 0
    while at < len(text):
        letter = text[at]
        if quote:
            if mysql and letter == "\\" and quote != "`":
                at += 1
            elif letter == quote:
                quote = ""
        elif letter in ("'\"`" if mysql else "'\""):
            quote = letter
        elif letter in "()":
            depth += 1 if letter == "(" else -1
            if depth < 0:
                return True
        elif letter == ";":
            return True
        at += 1
    return bool(quote) or depth != 0


@pytest.mark.slow
def test_no_accepted_condition_leaves_its_parentheses() -> None:
    draw, accepted = random.Random(SEED), 0
    for _ in range(60_000):
        text = draw.choice(("", " ")).join(draw.choices(WORDS, k=draw.randrange(1, 8)))
        for database in ("postgresql", "mariadb"):
            try:
                checked_condition(text, database)
            except ConfigError:
                continue
            accepted += 1
            assert not left_open(text, mysql=database == "mariadb"), text
    assert accepted > 100


def test_no_character_is_sent_that_a_terminal_obeys() -> None:
    every = "".join(
        chr(code)
        for code in range(0x110000)
        if unicodedata.category(chr(code)) in {"Cc", "Cs", "Zl", "Zp"}
        or unicodedata.bidirectional(chr(code)) in {
            "LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"
        }
    )  # fmt: skip
    screens = [Screen() for _ in range(4)]
    for start in range(0, len(every), 500):
        part = every[start : start + 500].replace("\n", "").replace("\t", "")
        TextOutput(GlobalOptions(), *screens[:2]).result("x", {}, part)
        JsonOutput(GlobalOptions(json=True), *screens[2:]).row({"x": part})

    found = OURS.sub("", "".join(one.getvalue() for one in screens))
    assert OBEYED.search(found) is None


class _Listener:
    """A server that an attacker would run: what it was asked, and by whom."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(f"{self.path} {self.headers.get('Authorization')}")
                self.send_response(404)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=[0.02], daemon=True).start()


@pytest.fixture
def listener() -> Iterator[_Listener]:
    found = _Listener()
    yield found
    found.server.shutdown()
    found.server.server_close()


CLICKS = """\
apiVersion: polynya/v1
kind: storage
name: clicks
schema: web
landing: {path: clicks, format: stream}
datasets: [{name: clicks, keys: [id]}]
"""


@pytest.mark.slow
def test_a_run_sends_nothing_to_the_registry_of_a_footer(
    tmp_path: Path, listener: _Listener
) -> None:
    project = write_project(tmp_path, clicks=CLICKS)
    secret = tmp_path / "secret"
    secret.write_text("s3cr3t")
    registry = {"url": listener.url}
    folder = project / "landing/clicks/clicks"
    folder.mkdir(parents=True)
    avro = landed([b"\0\0\0\0\1\2"], type="avro_with_schema", schema_registry=registry)
    footer = json.loads(_footer_of(avro))
    footer["content"]["schema_registry"] |= {"user": f"${{file:{secret}}}", "password": "x"}
    (folder / batch_name(1)).write_bytes(landed([b'{"id":1}']))
    (folder / batch_name(2)).write_bytes(with_footer(avro, {**footer, "number": 2}))

    first = _run(project)
    (folder / batch_name(3)).write_bytes(
        landed([b"\0\0\0\0\1\2"], number=3, type="avro_with_schema", schema_registry=registry)
    )
    second = _run(project)

    assert listener.asked == []
    assert first.returncode == 0, first.stdout
    assert "unreadable" in first.stdout or "quarantine" in first.stdout
    assert second.returncode != 0
    assert "POLYNYA-STR-091" in second.stdout
    assert "s3cr3t" not in first.stdout + first.stderr + second.stdout + second.stderr


def _footer_of(batch: bytes) -> str:
    import io

    from polynya.formats.landed import read_footer

    return read_footer(io.BytesIO(batch)).to_json()


def _run(project: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "polynya", "run", "--once", "--json"]
    return subprocess.run(
        [*command, "--project", str(project)], capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
