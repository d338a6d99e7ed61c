"""Errors of templates (TRF-130 to -139): transforms and data marts with parameters."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import ConfigError

TEMPLATE_UNKNOWN: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-130",
    title="an instance uses a template that does not exist",
    message="no template is called {template}",
    page="`uses` of a task of kind `instance` names a task of kind `template` of the same project. "
    "Where the file of the template has an error of its own, this error goes with it.",
)
TEMPLATE_PARAMETER_UNKNOWN: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-131",
    title="a parameter that a template does not have",
    message="the template {template} has no parameter {parameter}",
    page="The names below `with` of an instance, `${name}` in the settings of a template, and "
    "`:name` in its SQL are names of parameters that the template declares below `parameters`.",
)
TEMPLATE_VALUE_WRONG: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-132",
    title="the value of a parameter is missing or has another type",
    message="{problem}",
    page="Each parameter needs a value of its type: below `with` of the instance, or as `default` "
    "in the template. A name has letters, digits and `_`, and no digit in front. A decimal that "
    "YAML would round stands in quotes; a date is written as `2026-12-31`.",
)
TEMPLATE_PARAMETER_MISPLACED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-133",
    title="a parameter stands where it cannot be filled in safely",
    message="{problem}",
    page="`${name}` inside of a text needs a parameter of type `name`. As the whole of a setting "
    "it may have any type except `text`. Values in SQL are written as `:name`, outside of quotes "
    "and comments. So the value of an instance cannot become SQL.",
)
TEMPLATE_TWICE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-134",
    title="two templates have one name",
    message="a template called {template} stands in {other}",
    fix="give one of them another name",
    page="The name of a template is unique in its project: `uses` has to say which one is meant.",
)
