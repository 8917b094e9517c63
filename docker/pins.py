"""Write docker/requirements-*.txt: every package of the images with version and file hashes."""

from __future__ import annotations

import configparser
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = "3.11"  # of the base image
NOT_IN_THE_EXPORTER = ("pyspark", "delta-spark", "kafka-python", "pandas", "obstore")
BUILD = ("setuptools>=68,<81", "wheel")


def wanted() -> dict[str, list[str]]:
    """Return the direct requirements of each image, from setup.cfg."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    base = lines(setup["options"]["install_requires"])
    web = lines(setup["options.extras_require"]["web"])
    exporter = [line for line in base if not line.startswith(NOT_IN_THE_EXPORTER)]
    # tzdata: time zones of planned maintenance, where no system has them; pandas brings it to the
    # job
    return {"build": list(BUILD), "job": base, "exporter": [*exporter, *web, "tzdata"]}


def lines(text: str) -> list[str]:
    """Return the entries of a list in setup.cfg."""
    return [line for line in map(str.strip, text.splitlines()) if line and not line.startswith("#")]


def main() -> None:
    """Resolve each image's requirements."""
    for name, requirements in wanted().items():
        target = ROOT / "docker" / f"requirements-{name}.txt"
        command = [
            *(
                sys.executable,
                "-m",
                "uv",
                "pip",
                "compile",
                "-",
                "--quiet",
                "--generate-hashes",
                "--no-header",
            ),
            *(
                "--no-annotate",
                "--python-version",
                PYTHON,
                "--output-file",
                str(target),
                *sys.argv[1:],
            ),
        ]
        subprocess.run(command, input="\n".join(requirements), text=True, check=True)
        print(f"laggard: {target.relative_to(ROOT)}", file=sys.stderr)


if __name__ == "__main__":
    main()
