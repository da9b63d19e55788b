"""A campaign's own Python file, loaded once a process: `recipients(page)`, `compose(recipients)`, or both."""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from mailroom.campaigns.audience import Found, Page, Recipients
from mailroom.campaigns.definition import Definition
from mailroom.errors import Invalid

Composed = Mapping[str, Mapping[str, Any]]
"""Further attributes of each one's message, by the recipient's key; whose key is missing gets none."""


class Modules:
    """The modules of a bundle's campaigns. What one of them raises is raised on."""

    def __init__(self, root: Path = Path()) -> None:
        self._root = root
        self._loaded: dict[str, ModuleType] = {}

    def recipients(self, definition: Definition, page: Page) -> Found:
        """A page of the campaign's own audience. Raises Invalid where the module has no such function, or
        where it hands out something else."""
        module = self._module(definition)
        function = getattr(module, "recipients", None)
        if function is None:
            raise Invalid("audience.kind", f"is module, and {definition.module} has no recipients(page)")
        found = function(page)
        if not isinstance(found, Found):
            raise Invalid(f"{definition.module}: recipients", f"returned {type(found).__name__}; use Found")
        return found

    def compose(self, definition: Definition, recipients: Recipients) -> Composed | None:
        """What the campaign's module says of these people; None: it says nothing. Raises Invalid."""
        function = getattr(self._module(definition), "compose", None) if definition.module else None
        if function is None:
            return None
        composed = function(recipients)
        where = f"{definition.module}: compose"
        if not isinstance(composed, Mapping):
            raise Invalid(where, f"returned {type(composed).__name__}; use a mapping by key")
        # Whoever confuses 7 with "7" would leave out everybody, and nobody would know.
        unknown = composed.keys() - set(recipients.keys)
        if unknown:
            raise Invalid(where, f"returned {len(unknown)} keys that nobody has; keys are texts")
        return composed

    def _module(self, definition: Definition) -> ModuleType:
        path = definition.module
        if path is None:
            raise Invalid("audience.kind", "is module, and the campaign's folder has no campaign.py")
        if path not in self._loaded:
            name = "campaign_" + definition.name.replace("-", "_")
            spec = importlib.util.spec_from_file_location(name, self._root / path)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            self._loaded[path] = module
        return self._loaded[path]
