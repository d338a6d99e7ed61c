"""The page of the import has every setting and every type of task that the import knows."""

from __future__ import annotations

import os
from pathlib import Path

from polynya.qlik.importing import LOST_TASKS, TRANSLATIONS
from polynya.qlik.settings import REPLICATE_SETTINGS, SETTINGS, QlikSetting

PAGE = Path(__file__).parents[2] / "docs" / "import-qlik.md"
BEGIN, END = "<!-- settings: made by tests/qlik/test_page.py -->", "<!-- end of settings -->"
TITLES = {
    "project": "`qtcp_project.yaml`", "bindings": "`bindings.json`", "task": "`task.yaml`",
    "selection": "`sourceSelection.yaml`", "rules": "`transformationRules.yaml`",
    "dataset": "`datasets/*.yaml`", "schedule": "`schedule.yaml`", "model": "`model.yaml`",
    "flow": "`transformationDataFlows/*.yaml`", "replicate": "Replicate",
}  # fmt: skip


def row(setting: QlikSetting) -> str:
    becomes = setting.becomes.replace("|", "\\|")
    return f"| `{setting.path}` | {setting.verdict} | {becomes} | {setting.todo} |"


def table() -> str:
    texts = [BEGIN]
    for kind, title in TITLES.items():
        texts += ["", f"### {title}", "", "| setting | result | what becomes of it | by hand |"]
        texts += ["|---|---|---|---|"]
        texts += [row(one) for one in (*SETTINGS, *REPLICATE_SETTINGS) if one.kind == kind]
    return "\n".join([*texts, "", END])


def test_the_page_has_every_setting():
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    expected = before + table() + after
    if os.environ.get("POLYNYA_TEST_WRITE"):
        PAGE.write_text(expected, encoding="utf-8")
    assert page == expected or os.environ.get("POLYNYA_TEST_WRITE")


def test_the_page_has_every_type_of_task():
    page = PAGE.read_text(encoding="utf-8")
    rows = {line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| `")}
    named = {name for row in rows for name in row.replace("`", "").split(", ")}

    assert named >= {*TRANSLATIONS, *LOST_TASKS}
