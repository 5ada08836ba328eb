"""`python -m transom` is the command line."""

from __future__ import annotations

import sys

from transom.cli.main import main

sys.exit(main())
