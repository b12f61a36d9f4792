"""The command behind ``script/server``."""

import sys

from backend.embedded.launcher import main

sys.exit(main())
