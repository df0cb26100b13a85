"""`gold-pos`: the parser is told the gold part of speech of every word (PROTOCOLS 1.6).

The encoder is left as it is; what comes beside its states is `heads.gold_tags`.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from trainables.ablations.base import AblationReport
from trainables.ablations.layers import AblationError
from trainables.spec import TrialSpec

if TYPE_CHECKING:
    import trainables.encoders.base

TASK = "parsing"
"""The one task that may be told; others predict tags, or read no words."""


@dataclass(frozen=True, slots=True)
class GoldPos:
    """Touches no weight of the encoder; goes together with every other part."""

    excludes: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def parse(cls, argument: str | None, n_layers: int, text: str) -> "GoldPos":  # noqa: ARG003 - one signature for all
        """Takes no argument.

        Raises:
            AblationError: it is given one.
        """
        if argument is not None:
            raise AblationError(text, "'gold-pos' takes nothing after it. Write `gold-pos`.")
        return cls()

    def __str__(self) -> str:
        return "gold-pos"

    def touch(self, encoder: "trainables.encoders.base.Encoder", spec: TrialSpec) -> AblationReport:  # noqa: ARG002 - one signature for all
        """Leave the encoder as it is.

        Raises:
            AblationError: the task is not parsing.
        """
        if spec.task != TASK:
            raise AblationError(
                spec.ablation,
                f"'gold-pos' is for parsing, and this is '{spec.task}'. Give it a study of its own "
                f'with grid.task = "{TASK}".',
            )
        return AblationReport()


def is_told(text: str) -> bool:
    """Whether an ablation tells the parser gold tags."""
    return "gold-pos" in (part.strip() for part in text.split("+"))
