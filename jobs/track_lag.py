"""The streaming job for spark-submit: arguments, configuration, run.

README.md has the command. Of laggard only the zip of --py-files is needed, here and on the
executors.
"""

import sys

from laggard.__main__ import main

if __name__ == "__main__":
    main(["run", *sys.argv[1:]])
