"""python -m laggard."""

import sys

from laggard.cli.main import main

sys.exit(main())
