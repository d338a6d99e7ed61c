"""Errors of the console, the pages of the server (SRV-130 to 139)."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import ConfigError

TEXT_NOT_SHOWN: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-SRV-130",
    title="a text with characters that a page cannot show",
    message="line {line} holds {character}, which a page cannot show as it is",
    state="nothing was changed",
    fix="remove the character, or edit the file with an editor or `PUT /api/v1/documents/…`",
    page="Pages of the console write control characters, and characters that change the direction "
    "of text, as escapes, so that a person sees them. A text that holds one of them would change "
    "when the page sends it back. The console shows such a document and does not edit it.",
)
FLOW_NOT_EDITED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-SRV-131",
    title="a flow that the console does not edit as a form",
    message="the flow of {dataset} is not edited as a form: {reason}",
    state="nothing was changed",
    fix="edit the document as text",
    page="The form of a flow replaces the lines of `flow:` in the file of its task, and leaves all "
    "others as they are. That needs a YAML file of the task itself, not a template, in which "
    "`flow:` begins a line of its own.",
)
