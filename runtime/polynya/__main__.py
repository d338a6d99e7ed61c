"""`python -m polynya`."""

from __future__ import annotations

import sys

from polynya.cli.main import main

sys.exit(main())
