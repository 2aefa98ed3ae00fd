"""`python -m edgeinfinite`."""

import sys

from edgeinfinite.cli.main import main

sys.exit(main())
