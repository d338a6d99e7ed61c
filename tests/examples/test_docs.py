"""The pages name every rule by which a record is quarantined."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "runtime" / "polynya"
RULE = re.compile(
    r'RecordError\(\s*"(\w+)"|WHOLE_FILE, "(\w+)"|Refusal\(info, "(\w+)"'
    r'|[=(]\s*\("([a-z]+_[a-z]+)", |THEN \'(\w+)\''
)


def rules() -> set[str]:
    """Names of quarantine rules, as the code spells them."""
    files = [*(PACKAGE / "formats").rglob("*.py"), PACKAGE / "lake" / "copy" / "rows.py"]
    found = RULE.findall("\n".join(path.read_text() for path in files))
    return {name for groups in found for name in groups if "_" in name} - {"ts_us"}


def test_every_quarantine_rule_is_documented() -> None:
    pages = [ROOT / "docs" / name for name in ("landing-formats.md", "streams.md")]
    page = "\n".join(one.read_text() for one in pages)

    assert {"null_key", "older_than_horizon", "bad_json", "null_sequence"} <= rules()
    assert {rule for rule in rules() if f"`{rule}`" not in page} == set()
