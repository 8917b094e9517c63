"""The exporter as a job: arguments, configuration, serve."""

import sys

from laggard.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["export", *sys.argv[1:]]))
