"""The capture process, in which MariaDB has no code of its own: Debezium alone loads it."""

from __future__ import annotations

import os

from polynya.gateway import registry
from polynya.gateway.worker.__main__ import main

if __name__ == "__main__":
    registry._KINDS["mariadb"] = registry._KINDS["sqlserver"]
    os._exit(main())
