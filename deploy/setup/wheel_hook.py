"""Puts what `make compile` has built into the wheel, when RFHBRIDGE_COMPILED=1 asks for it (a build hook of hatchling).

The wheel holds all sources, too. pip puts the build into the environment, where `gateway/compiled.py` looks for it.
The wheel's tags say that it fits this interpreter on this kind of machine.
"""

import os
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledModules(BuildHookInterface[Any]):
    """Hatchling finds this class by its base."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the build. Ends the making of the wheel where there is none."""
        sys.path.insert(0, self.root)
        from gateway import compiled

        if version == "editable" or os.environ.get(compiled.VARIABLE) != "1":
            return
        build = compiled.build()
        if not build.is_dir():
            sys.exit(f"{compiled.VARIABLE}=1, and there is no build of these sources: make compile")
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["shared_data"][str(build)] = f"{compiled.builds().name}/{build.name}"
