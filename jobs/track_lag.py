"""The streaming job for spark-submit: arguments, configuration, run.

spark-submit --py-files laggard.zip --jars <the jars of conf/ivy.xml> jobs/track_lag.py --config laggard.toml
"""

import sys

from laggard.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["run", *sys.argv[1:]]))
