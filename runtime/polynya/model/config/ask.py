"""Where `polynya ask` sends questions, as written in the project file."""

from __future__ import annotations

from pydantic import Field

from polynya.model.config.fields import Frozen, Name


class AskSettings(Frozen):
    """A language model that proposes SQL. It gets names and types of columns, and no row."""

    connection: Name = Field(
        description="Connection of type `http` to an API that answers `chat/completions` as "
        "OpenAI's does: its base address, such as `https://api.example.com/v1`, and its login."
    )
    model: str = Field(min_length=1, max_length=200, description="The model, as the API calls it.")
