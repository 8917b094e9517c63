"""The configuration: available keys (sections), origin of values (sources), result (load)."""

from laggard.config.load import load_config
from laggard.config.sections import Config, require_brokers

__all__ = ["Config", "load_config", "require_brokers"]
