"""What a sender may need."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stacks.constructs.grants import Grant


@dataclass(frozen=True)
class Needs:
    """Grants, environment, and the folder in templates/ that goes into the bundle ("" is none)."""

    grants: Sequence[Grant] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    templates: str = ""
