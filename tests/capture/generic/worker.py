"""The capture process, in which MariaDB has no code of its own: Debezium alone loads it."""

from __future__ import annotations

import os

from polynya.capture import source
from polynya.capture.worker.__main__ import main

if __name__ == "__main__":
    source._IMPLEMENTATIONS["mariadb"] = source._IMPLEMENTATIONS["sqlserver"]
    os._exit(main())
