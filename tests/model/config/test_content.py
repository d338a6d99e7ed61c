"""What `content:` may say, and what is wrong with it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, SecretStr, ValidationError

from polynya.model.config.stream_content import (
    AvroContent,
    Content,
    ContentSetting,
    CsvContent,
    JsonContent,
    RegexContent,
    RegistryAvroContent,
    landed_content,
    written_content,
)
from polynya.model.documents.problems import shape_problems


class Landing(BaseModel):
    content: ContentSetting = JsonContent()


def content(written: Any) -> Content:
    return Landing.model_validate({"content": written}).content


def said(written: Any) -> str:
    value = {"content": written}
    with pytest.raises(ValidationError) as caught:
        Landing.model_validate(value)
    problems = shape_problems(caught.value, Landing, value)
    return "\n".join(
        f"{'.'.join(map(str, one.path))} {one.error.code} {one.error.message} {one.error.fix}"
        for one in problems
    )


def test_the_name_of_a_type_is_enough() -> None:
    assert content("json") == JsonContent()
    assert content("csv") == CsvContent(type="csv")


@pytest.mark.parametrize(
    ("written", "place", "message"),
    [
        ({"type": "jsn"}, "content.type", "did you mean `json`?"),
        ({"type": "json", "delimiter": ";"}, "content.delimiter", "unknown key `delimiter`"),
        ({"type": "avro_with_schema"}, "content", "missing key `schema_registry`"),
        ({"type": "csv", "header": ["a", "A"]}, "content", "a name twice"),
        ({"type": "csv", "delimiter": ";", "escape": ";"}, "content", "have to differ"),
        ({"type": "csv", "quote": "|", "delimiter": "|"}, "content", "have to differ"),
        ({"type": "regex", "pattern": "(.*)"}, "content.pattern", "no named group"),
        ({"type": "regex", "pattern": "(?<a>.)(.)"}, "content.pattern", "has no name"),
        ({"type": "regex", "pattern": "(?<a>.)(?=b)"}, "content.pattern", "look-around"),
        ({"type": "regex", "pattern": r"(?<a>.)\1"}, "content.pattern", "back reference"),
        ({"type": "regex", "pattern": "(?<a>"}, "content.pattern", "not a regular expression"),
        ({"type": "regex", "pattern": "(?<a>x{5000})"}, "content.pattern", "more than 1000"),
        ({"type": "split_lines", "pattern": ",*"}, "content.pattern", "where nothing is"),
        ({"type": "avro", "schema": "{"}, "content.schema", "not JSON"),
        (
            {"type": "avro_with_schema", "schema_registry": {"url": "registry:8081"}},
            "content.schema_registry.url",
            "is not an address",
        ),
        (
            {"type": "avro_with_schema", "schema_registry": {"url": "https://ann:pw@registry"}},
            "content.schema_registry.url",
            "holds no secrets",
        ),
    ],
)
def test_a_wrong_setting_is_named_with_its_place(written: Any, place: str, message: str) -> None:
    problems = said(written)

    assert problems.startswith(f"{place} ")
    assert message in problems


def test_a_pattern_takes_classes_and_escapes_that_only_look_foreign() -> None:
    pattern = r"^(?P<code>\\1[+]+?) (?<rest>[(?=]*)$"

    assert content({"type": "regex", "pattern": pattern}) == RegexContent(
        type="regex", pattern=pattern
    )


def test_an_avro_schema_may_be_written_as_yaml() -> None:
    found = content({"type": "avro", "schema": {"type": "record", "name": "r", "fields": []}})

    assert isinstance(found, AvroContent)
    assert found.schema_ == '{"type":"record","name":"r","fields":[]}'
    assert not found.may_be_compressed
    assert content("avro").may_be_compressed


def test_a_footer_has_every_setting_but_the_secrets() -> None:
    registry = {"url": "https://registry:8081/", "user": "ann", "password": "s3cr3t"}
    landed = content({"type": "avro_with_schema", "schema_registry": registry})

    written = written_content(landed)

    assert isinstance(landed, RegistryAvroContent)
    assert landed.schema_registry.password == SecretStr("s3cr3t")
    assert written == {
        "type": "avro_with_schema",
        "schema_registry": {"url": "https://registry:8081"},
    }
    assert "s3cr3t" not in repr(landed)


@pytest.mark.parametrize(
    "written",
    [
        {"type": "json", "compression": "none"},
        {"type": "csv", "header": ["a", "b"], "delimiter": ";", "quote": "", "escape": "\\"},
        {"type": "tsv", "null_value": "\\N", "infer_types": True, "duplicate_header": True},
        {"type": "avro", "schema": '{"type":"string"}'},
        {"type": "xml", "record": "order", "arrays": ["line"], "namespaces": "keep"},
        {"type": "regex", "pattern": "(?<a>.*)", "multi_line": True},
        {"type": "split_lines", "pattern": ";"},
        {"type": "auto"},
    ],
)
def test_a_content_comes_back_from_its_footer(written: dict[str, Any]) -> None:
    landed = content(written)

    assert landed_content(written_content(landed)) == landed


def test_a_footer_of_something_else_says_what_is_wrong() -> None:
    with pytest.raises(ValueError, match=r"content: json.colour: Extra inputs"):
        landed_content({"type": "json", "colour": "red"})
