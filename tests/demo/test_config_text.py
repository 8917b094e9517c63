"""The configuration of the demo is one that laggard accepts."""

from pathlib import Path

import pytest

from laggard.config import load_config
from laggard.demo.config_text import config_text
from laggard.demo.scenarios import DRILLS, EVERYDAY, Scenario


@pytest.mark.parametrize("scenario", [EVERYDAY, *DRILLS.values()], ids=["", *DRILLS])
def test_the_configuration_of_the_demo_is_valid(tmp_path: Path, scenario: Scenario) -> None:
    folder = tmp_path / 'a "quoted" folder, é'
    folder.mkdir()
    file = folder / "laggard.toml"
    file.write_text(config_text(folder, "127.0.0.1:9092", scenario), encoding="utf-8")
    config = load_config(str(file), [], {})
    assert (config.job.tables, config.cluster.bootstrap_servers) == (
        str(folder / "tables"),
        ("127.0.0.1:9092",),
    )
