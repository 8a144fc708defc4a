"""The settings of the gateway: one TOML file to frozen values, checked before anything starts.

A name is loaded when it is first used. So the exporter and the channel processes know ConfigurationError, but never
load the code that reads and checks settings.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from gateway.config.error import ConfigurationError
    from gateway.config.example import example_toml
    from gateway.config.settings import Settings, known_keys
    from gateway.config.tables import ConversionSettings
    from gateway.config.targets import RouteSettings, TargetSettings
    from gateway.config.values import Address

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
_MODULE_OF: Final = {
    "Address": "values",
    "ConfigurationError": "error",
    "ConversionSettings": "tables",
    "RouteSettings": "targets",
    "Settings": "settings",
    "TargetSettings": "targets",
    "example_toml": "example",
    "known_keys": "settings",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
