"""The settings of the gateway: one TOML file to frozen values, checked before anything starts."""

from gateway.config.example import example_toml
from gateway.config.settings import Settings, known_keys
from gateway.config.tables import ConversionSettings
from gateway.config.targets import RouteSettings, TargetSettings
from gateway.config.values import Address, ConfigurationError

__all__ = [
    "Address",
    "ConfigurationError",
    "ConversionSettings",
    "RouteSettings",
    "Settings",
    "TargetSettings",
    "example_toml",
    "known_keys",
]
