"""`freeze:n`: embeddings and blocks 1..n get no gradient; `freeze:0` freezes embeddings only.

As in the freezing experiment of Wu & Dredze (2019, Figure 1). `n` is one number, not a set of
layers: `freeze:1-3` would leave it open whether the embeddings below are meant, and is refused.
"""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from trainables.ablations.base import AblationReport
from trainables.ablations.layers import AblationError
from trainables.spec import TrialSpec

if TYPE_CHECKING:
    import torch

    import trainables.encoders.base


@dataclass(frozen=True, slots=True)
class Freeze:
    """All that state `through` depends on keeps its weights, so that state stays as it was."""

    through: int
    excludes: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def parse(cls, argument: str | None, n_layers: int, text: str) -> "Freeze":
        """Takes one number, 0..`n_layers`.

        Raises:
            AblationError: it is missing, no number, or outside.
        """
        if not argument:
            raise AblationError(text, "'freeze' up to which layer? Write `freeze:6`.")
        if re.fullmatch(r"\d+", argument, re.ASCII) is None:
            raise AblationError(
                text,
                f"'{argument}' is not one number. `freeze:n` means the embeddings and layers 1-n: "
                f"write `freeze:6`.",
            )
        if int(argument) > n_layers:
            raise AblationError(
                text,
                f"this encoder has layers 1-{n_layers}. Write a number within 0-{n_layers} "
                "(0 freezes the embeddings only).",
            )
        return cls(int(argument))

    def __str__(self) -> str:
        return f"freeze:{self.through}"

    def touch(self, encoder: "trainables.encoders.base.Encoder", spec: TrialSpec) -> AblationReport:  # noqa: ARG002 - one signature for all
        """Switch gradients off."""
        frozen = {id(p): p for p in below(encoder, self.through)}
        for parameter in frozen.values():
            parameter.requires_grad = False
        return AblationReport(n_frozen=sum(p.numel() for p in frozen.values()))


def below(encoder: "trainables.encoders.base.Encoder", state: int) -> list["torch.nn.Parameter"]:
    """Parameters of embeddings and blocks 1..`state`, and whatever else state `state` depends on.

    Parts that lie outside both but feed the frozen blocks, such as DeBERTa's table of relative
    positions, are found by following the graph of one small forward pass.
    """
    import torch

    found = list(encoder.embeddings.parameters())
    for block in encoder.blocks[:state]:
        found += block.parameters()
    was_training = encoder.training
    encoder.eval()
    device = next(encoder.parameters()).device
    ids = torch.zeros((1, 2), dtype=torch.int64, device=device)
    with torch.enable_grad():
        states = encoder(ids, torch.ones_like(ids), with_states=True).states
    encoder.train(was_training)
    assert states is not None  # noqa: S101 - they were asked for
    pending, seen = [states[state].grad_fn], set()
    while pending:
        node = pending.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.append(node.variable)
        pending += [parent for parent, _ in node.next_functions]
    return found
