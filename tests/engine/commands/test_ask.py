"""`polynya ask`: what a language model is sent, and what becomes of what it answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from polynya.cli.main import main
from polynya.derived.schema import DerivedInput
from polynya.engine.commands.ask import checked, known_tables
from polynya.engine.commands.lineage import project_graph
from polynya.model.errors import PolynyaError
from polynya.model.loader import load_project
from tests.projects import PROJECT, USERS, write_project

SHOP = USERS.replace("    keys", "    columns: {userId: int, city: string}\n    keys")
TABLES = {"shop.users": DerivedInput("shop.users", {"userId": "int", "city": "string"})}
KEY = "very-secret"
GOOD = "SELECT city, count(*) AS n FROM shop.users GROUP BY city"


class Model:
    """A server that answers as a language model's API does, one prepared answer after another."""

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.requests: list[tuple[str, str | None, dict[str, Any]]] = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                model.requests.append((self.path, self.headers["Authorization"], json.loads(body)))
                answer = model.answers.pop(0)
                status, document = answer if isinstance(answer, tuple) else (200, _said(answer))
                data = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/v1"


def _said(text: str) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", "content": text}}]}


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Model]:
    monkeypatch.setenv("POLYNYA_LOCAL_APIS", "127.0.0.1")
    monkeypatch.setenv("ASK_KEY", KEY)
    one = Model()
    yield one
    one.server.shutdown()
    one.server.server_close()


def project(folder: Path, model: Model) -> Path:
    made = write_project(folder, users=SHOP)
    (made / "polynya.yml").write_text(PROJECT + "ask: {connection: assistant, model: small}\n")
    (made / "connections").mkdir()
    (made / "connections/assistant.yml").write_text(
        f"kind: connection\ntype: http\nurl: {model.url}\n"
        'auth: {type: bearer, token: "${env:ASK_KEY}"}\nretries: {attempts: 1}\n'
    )
    return made


def test_names_and_types_are_sent_and_the_proposal_is_shown(
    tmp_path: Path, model: Model, capsys: pytest.CaptureFixture[str]
) -> None:
    model.answers = [f"Here it is:\n```sql\n{GOOD};\n```\n"]

    assert main(["ask", "How many users has each city?", "-p", str(project(tmp_path, model))]) == 0

    assert capsys.readouterr().out.strip() == GOOD
    ((path, login, sent),) = model.requests
    assert (path, login, sent["model"]) == ("/v1/chat/completions", f"Bearer {KEY}", "small")
    system, user = sent["messages"]
    assert system["content"].endswith("`shop`.`users` (`userId` int, `city` string)")
    assert user["content"] == "How many users has each city?"


def test_a_wrong_proposal_is_sent_back_once_and_never_called_right(
    tmp_path: Path, model: Model, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path, model)
    model.answers = ["```sql\nSELECT town FROM shop.users\n```", f"```sql\n{GOOD}\n```"]
    assert main(["ask", "cities?", "-p", str(folder)]) == 0
    assert "town" in model.requests[1][2]["messages"][-1]["content"]

    model.answers = ["DROP TABLE shop.users", "SELECT * FROM text.`/etc/passwd`"]
    assert main(["ask", "cities?", "-p", str(folder)]) == 1
    shown = capsys.readouterr()
    assert "the proposal is not valid" in shown.out + shown.err


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ((200, {"choices": []}), "POLYNYA-TRF-147"),
        ((200, _said("")), "POLYNYA-TRF-147"),
        ((401, {"error": f"no such key {KEY}"}), "POLYNYA-STR-102"),
    ],
)
def test_an_answer_that_is_none_is_an_error_without_the_key(
    tmp_path: Path, model: Model, capsys: pytest.CaptureFixture[str], answer: Any, code: str
) -> None:
    model.answers = [answer]

    assert main(["ask", "cities?", "-p", str(project(tmp_path, model))]) != 0

    shown = capsys.readouterr()
    assert code in shown.out + shown.err
    assert KEY not in shown.out + shown.err


def test_nothing_is_sent_without_the_setting(tmp_path: Path, model: Model) -> None:
    folder = write_project(tmp_path, users=SHOP)

    assert main(["ask", "cities?", "-p", str(folder)]) == 2
    assert model.requests == []


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM shop.users",
        "SELECT 1 AS a; SELECT 2 AS b",
        "SELECT reflect('java.lang.System', 'exit', 1) AS x FROM shop.users",
        "SELECT name FROM shop.users",
        "SELECT id AS x FROM shop.orders",
    ],
)
def test_what_a_query_may_not_be_a_proposal_is_not(sql: str) -> None:
    assert checked(sql, TABLES).problem is not None


def test_tables_are_chosen_by_name(tmp_path: Path) -> None:
    graph = project_graph(load_project(write_project(tmp_path, users=SHOP)), None)

    assert list(known_tables(graph, ())) == ["shop.users"]
    with pytest.raises(PolynyaError, match="no table with columns"):
        known_tables(graph, ("shop.user",))
