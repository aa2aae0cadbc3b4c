"""`python -m calc` is the command `calc`."""

import sys

from calc.cli import main

sys.exit(main())
