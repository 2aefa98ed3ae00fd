"""`python -m edgeinfinite.cli`."""

import sys

from edgeinfinite.cli.main import main

sys.exit(main())
