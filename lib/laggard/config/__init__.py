"""The configuration: what can be set (sections), where values come from (sources), what is in force (load)."""

from laggard.config.load import load_config
from laggard.config.sections import Config, require_brokers

__all__ = ["Config", "load_config", "require_brokers"]
