"""Write the pictures of the web page: a real exporter on simulated tables, in a real Chromium."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

if __name__ == "__main__":
    ROOT = Path(__file__).parents[2]
    sys.path[:0] = [str(ROOT / folder) for folder in ("lib", "tests", "tests/wire")]

from exporter.api_kit import serving_api
from exporter.browser import chromium, tab
from exporter.harness import Clock, Exporter
from exporter.simulated_tables import write_simulated

FOLDER = Path(__file__).parents[1] / "pictures"
WIDTH = 1200
PORT = 8917  # a picture shows it, and is to be the same each time
# name, address, what has to be there, height
PICTURES = (
    ("ui-fleet", "#/", "table.fleet .spark", 520),
    ("ui-group", "#/group/prod/checkout", ".strips", 980),
)


def main() -> None:
    """Write all of them."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        polled_at = write_simulated(Path(folder))
        exporter = Exporter(Path(folder), clock=Clock(polled_at.timestamp() + 10))
        exporter.refresh()
        with serving_api(exporter, ui=True, port=PORT) as asker, chromium() as browser:
            for name, address, there, height in PICTURES:
                with tab(browser, asker.port, width=WIDTH, height=height) as seen:
                    seen.open(address).locator(there).first.wait_for()
                    seen.page.screenshot(path=FOLDER / f"{name}.png")
                sys.stdout.write(f"laggard: {FOLDER / name}.png\n")


if __name__ == "__main__":
    main()
