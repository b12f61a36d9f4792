"""The command behind ``script/server``."""

import argparse
import sys

from backend.operations.launcher.start import main

parser = argparse.ArgumentParser(prog="script/server", allow_abbrev=False)
parser.add_argument("--restore", metavar="ARCHIVE")
parser.add_argument("--until", metavar="TIME")
parser.add_argument("--live", action="store_true")
options = parser.parse_args()
if options.until is not None and not options.restore:
    parser.error("--until needs --restore wal")
restored = [options.restore] if options.restore else []
restored += [f"--until={options.until}"] if options.until is not None else []
restored += ["--live"] if options.live and restored else []
sys.exit(main(restored))
