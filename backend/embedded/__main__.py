"""The command behind ``script/server``."""

import argparse
import sys

from backend.operations.launcher.start import main

parser = argparse.ArgumentParser(prog="script/server", allow_abbrev=False)
parser.add_argument("--restore", metavar="ARCHIVE")
parser.add_argument("--live", action="store_true")
options = parser.parse_args()
restored = [options.restore, *(["--live"] if options.live else [])] if options.restore else []
sys.exit(main(restored))
