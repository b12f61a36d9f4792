"""The command behind ``script/server``."""

import sys

from backend.operations.launcher.start import main

sys.exit(main())
