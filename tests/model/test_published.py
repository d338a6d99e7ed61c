"""What is published from the models: JSON Schemas and error pages."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import jsonschema
import pytest
from ruamel.yaml import YAML

from polynya.cli.init import project_files
from polynya.model.config.target import Project
from polynya.model.config.task import StorageTask
from polynya.model.error_catalogue.codes import ALL, ERROR_PAGES
from polynya.model.json_schema import PUBLISHED, SCHEMA_FILES, outdated_schemas, schema_of
from tests.projects import BANK, CLICKS, PROJECT, USERS

RUNTIME = PUBLISHED.parent


def test_the_published_schemas_are_those_of_the_models():
    """On failure: python -m polynya.model.json_schema."""
    assert outdated_schemas(PUBLISHED) == []


def test_an_edited_schema_is_noticed(tmp_path):
    for file in SCHEMA_FILES:
        (tmp_path / file).write_text((PUBLISHED / file).read_text().replace("keys", "kees"))

    assert [path.name for path in outdated_schemas(tmp_path)] == [
        "project.v1.json",
        "task.v1.json",
        "tests.v1.json",
    ]


@pytest.mark.parametrize("file", SCHEMA_FILES)
def test_schemas_keep_to_draft_07_and_describe_every_key(file):
    schema = json.loads((PUBLISHED / file).read_text())

    jsonschema.Draft7Validator.check_schema(schema)
    assert "prefixItems" not in json.dumps(schema)
    for definition in (schema, *schema.get("$defs", {}).values()):
        for key, field in definition.get("properties", {}).items():
            assert field.get("description"), key


@pytest.mark.parametrize(
    ("text", "model"), [(PROJECT, Project), (USERS, StorageTask), (BANK, StorageTask)]
)
def test_schema_and_models_accept_the_same_files(text, model):
    document = YAML(typ="safe", pure=True).load(text)
    validator = jsonschema.Draft7Validator(schema_of(model, "x.json"))

    assert list(validator.iter_errors(document)) == []
    assert list(validator.iter_errors({**document, "nonsense": 1}))
    model.model_validate(document)


def test_a_task_file_fits_the_schema_of_its_kind():
    validator = jsonschema.Draft7Validator(json.loads((PUBLISHED / "task.v1.json").read_text()))

    for text in (USERS, BANK, CLICKS):
        document = YAML(typ="safe", pure=True).load(text)
        assert list(validator.iter_errors(document)) == []
        assert list(validator.iter_errors({**document, "kind": "nonsense"}))
        assert list(validator.iter_errors({**document, "nonsense": 1}))


def test_the_files_of_a_new_project_fit_their_schemas():
    files = project_files("shop")
    for name, schema in (("polynya.yml", "project.v1.json"), ("tasks/users.yml", "task.v1.json")):
        document = YAML(typ="safe", pure=True).load(files[name])
        jsonschema.Draft7Validator(json.loads(files[f".polynya/schema/{schema}"])).validate(
            document
        )


def test_every_error_code_in_the_code_has_a_page():
    sources = (path.read_text() for path in Path(RUNTIME).rglob("*.py"))
    used = {code for text in sources for code in re.findall(r"POLYNYA-[A-Z]+-[0-9]{3}", text)}

    assert used - set(ERROR_PAGES) == set()
    assert all(page.title and page.page for page in ERROR_PAGES.values())


def test_no_error_code_has_two_pages():
    codes = Counter(entry.code for entry in ALL)

    assert [code for code, pages in codes.items() if pages > 1] == []
