"""The demo's children get its own settings, not those of the user."""

from pathlib import Path

from laggard.demo.children import child_environment


def test_the_users_own_configuration_does_not_reach_the_demo() -> None:
    environ = {"LAGGARD_CONFIG": "x.toml", "LAGGARD_JOB__TABLES": "x", "LAGGARD_JARS": "jars", "PATH": "bin"}
    library = str(Path(__file__).parents[2] / "lib")
    assert child_environment(environ) == {"LAGGARD_JARS": "jars", "PATH": "bin", "PYTHONPATH": library}
