"""`ref`: the pretrained encoder as it is, which every other ablation is compared with."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from trainables.ablations.base import AblationReport
from trainables.ablations.layers import AblationError
from trainables.registry import ABLATIONS
from trainables.spec import TrialSpec

if TYPE_CHECKING:
    import trainables.encoders.base


@dataclass(frozen=True, slots=True)
class Reference:
    """Touches nothing; stands alone."""

    excludes: ClassVar[frozenset[str]] = frozenset(ABLATIONS) - {"ref"}

    @classmethod
    def parse(cls, argument: str | None, n_layers: int, text: str) -> "Reference":  # noqa: ARG003 - one signature for all
        """Takes no argument.

        Raises:
            AblationError: it is given one.
        """
        if argument is not None:
            raise AblationError(text, "'ref' takes nothing after it. Write `ref`.")
        return cls()

    def __str__(self) -> str:
        return "ref"

    def touch(self, encoder: "trainables.encoders.base.Encoder", spec: TrialSpec) -> AblationReport:  # noqa: ARG002 - one signature for all
        """Leave the encoder as it was loaded."""
        return AblationReport()
