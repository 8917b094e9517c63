"""The exporter as a job: arguments, configuration, serve."""

import sys

from laggard.__main__ import main

if __name__ == "__main__":
    main(["export", *sys.argv[1:]])
