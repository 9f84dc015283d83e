"""``python -m neardup``."""

from __future__ import annotations

import sys

from neardup.cli.main import main

sys.exit(main())
