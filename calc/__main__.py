"""`python -m calc` is the command `calc`."""

import sys

from calc.commands import main

sys.exit(main())
