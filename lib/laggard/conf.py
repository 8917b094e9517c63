"""Location of the shipped configuration files: conf/ of a checkout, or the installed package."""

from pathlib import Path

from laggard.errors import CONFIGURATION, LaggardError

PACKAGE = Path(__file__).resolve().parent


def checkout_root() -> Path | None:
    """Return the folder of the checkout this code runs from; None when the package is installed."""
    root = PACKAGE.parent.parent
    is_checkout = PACKAGE.parent.name == "lib" and (root / "conf" / "ivy.xml").is_file()
    if not is_checkout:
        return None
    return root


def conf_file(name: str) -> Path:
    """Return the path of the shipped file `name`, for example "ivy.xml" or "rules/lag.yaml"."""
    root = checkout_root()
    path = (root / "conf" if root else PACKAGE / "conf_files") / name
    if path.exists():
        return path
    raise LaggardError(
        f"the shipped file {name} is missing",
        cause=f"{path} does not exist",
        fix="git checkout -- conf" if root else "pip install --force-reinstall laggard",
        exit_code=CONFIGURATION,
    )
