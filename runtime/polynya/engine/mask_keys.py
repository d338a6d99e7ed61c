"""The keys of hashes that rules name, read where they are used and kept nowhere."""

from __future__ import annotations

import os

from polynya.model.config.masks import FromEnvironment, SecretSetting
from polynya.model.error_catalogue.configuration import MASK_KEY_MISSING
from polynya.store.vault import vault


def mask_key(setting: SecretSetting) -> bytes:
    """The key of a hash.

    Raises:
        OperationError: POLYNYA-CFG-080, the variable is not set, or the key is empty: a hash
            without a key hides nothing.
        DependencyError: a file or Secrets Manager does not give it.
    """
    if isinstance(setting, FromEnvironment):
        text, source = os.environ.get(setting.env, ""), f"environment variable `{setting.env}`"
    else:
        text, source = vault().open(setting.get_secret_value()).text, "reference of its key"
    if not text:
        raise MASK_KEY_MISSING(source=source)
    return text.encode()
