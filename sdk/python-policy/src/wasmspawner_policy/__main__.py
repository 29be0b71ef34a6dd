"""Runs the command of this package."""

import sys

from .command import main

sys.exit(main())
