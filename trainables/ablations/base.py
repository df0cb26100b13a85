"""The language of ablations, and how one is done to an encoder.

An ablation is `ref`, or one or more parts joined by `+`: `all`, `reinit:1-2`, `freeze:6`,
`reinit:1-2+freeze:6`. What each name means is one file and one line of `registry.ABLATIONS`; their
order there is the order in which parts are spelt and done. No torch at the top: study files are
checked without it.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from trainables.ablations.layers import AblationError
from trainables.registry import ABLATIONS, load
from trainables.spec import TrialOptions, TrialSpec

if TYPE_CHECKING:
    import torch

    import trainables.encoders.base

__all__ = [
    "Ablation",
    "AblationError",
    "AblationReport",
    "apply",
    "canonical",
    "parameter_hash",
    "parse",
    "set_train_mode",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationReport:
    """What was done to an encoder, in single weights.

    Attributes:
        n_reinitialised: Weights drawn anew.
        n_frozen: Weights that training will not move.
    """

    n_reinitialised: int = 0
    n_frozen: int = 0

    def __add__(self, other: "AblationReport") -> "AblationReport":
        return AblationReport(
            n_reinitialised=self.n_reinitialised + other.n_reinitialised,
            n_frozen=self.n_frozen + other.n_frozen,
        )


@runtime_checkable  # so that shapes and types can be checked in tests
class Ablation(Protocol):
    """One part of an ablation, checked against an encoder of a known number of layers.

    `str()` is its one spelling. It copies no model: it touches the parameters that it says.

    Attributes:
        excludes: Names of parts that cannot stand beside it.
    """

    excludes: ClassVar[frozenset[str]]

    @classmethod
    def parse(cls, argument: str | None, n_layers: int, text: str) -> "Ablation":
        """Read what stands after the colon; None where there is no colon.

        Raises:
            AblationError: it is misspelt or does not fit; `text` is the whole ablation.
        """
        ...

    def touch(self, encoder: "trainables.encoders.base.Encoder", spec: TrialSpec) -> AblationReport:
        """Do it to a pristine encoder, in place."""
        ...


def parse(text: str, n_layers: int) -> tuple[Ablation, ...]:
    """The parts of an ablation, in the order in which they are done.

    Raises:
        AblationError: a part is misspelt, does not fit the encoder, stands twice, or contradicts
            another.
        UnknownName: no ablation has that name.
    """
    parts: dict[str, Ablation] = {}
    for spelt in text.split("+"):
        name, colon, argument = spelt.strip().partition(":")
        if not name:
            raise AblationError(
                text, "a part is empty. Write `ref`, or parts such as `reinit:1-2` joined by `+`."
            )
        kind: type[Ablation] = load("ablation", name, ABLATIONS)
        if name in parts:
            raise AblationError(
                text, f"'{name}' stands twice. Write one '{name}' with all that is meant."
            )
        parts[name] = kind.parse(argument.strip() if colon else None, n_layers, text)
    names = [name for name in ABLATIONS if name in parts]
    _refuse_contradictions(names, parts, text)
    return tuple(parts[name] for name in names)


def _refuse_contradictions(names: Sequence[str], parts: dict[str, Ablation], text: str) -> None:
    for name in names:
        for other in names:
            if other != name and other in parts[name].excludes:
                raise AblationError(
                    text, f"'{name}' leaves nothing for '{other}' to do. Write one of the two."
                )


def canonical(text: str, n_layers: int) -> str:
    """The one spelling of an ablation: equal for texts that mean the same.

    Args:
        text: As a study writes it.
        n_layers: Layers of the encoder.

    Raises:
        AblationError: as `parse`.
        UnknownName: as `parse`.
    """
    return "+".join(str(part) for part in parse(text, n_layers))


def apply(
    encoder: "trainables.encoders.base.Encoder", text: str, *, spec: TrialSpec
) -> AblationReport:
    """Do an ablation to a freshly loaded encoder, in place.

    Args:
        encoder: Pristine.
        text: The ablation.
        spec: Gives the seed and the options (`reinit`).

    Raises:
        AblationError: the ablation does not fit the encoder.
    """
    report = AblationReport()
    for part in parse(text, encoder.n_layers):
        report += part.touch(encoder, spec)
    return report


def set_train_mode(encoder: "trainables.encoders.base.Encoder", options: TrialOptions) -> None:
    """Put an encoder into train mode, but keep what is frozen as it computes in evaluation (D-13).

    Embeddings and blocks without a trainable weight stay in eval mode, so that no dropout disturbs
    them; `options.frozen_mode = "train"` gives them dropout, as the published code does.
    """
    encoder.train()
    if options.frozen_mode == "train":
        return
    for module in (encoder.embeddings, *encoder.blocks):
        parameters = list(module.parameters())
        if parameters and not any(parameter.requires_grad for parameter in parameters):
            module.eval()


def parameter_hash(module: "torch.nn.Module") -> str:
    """A hash of names, shapes, types and bytes of all parameters: equal if no bit has changed."""
    digest = hashlib.sha256()
    for name, parameter in module.named_parameters():
        value = parameter.detach().cpu().contiguous()
        digest.update(f"{name}\x1f{tuple(value.shape)}\x1f{value.dtype}\n".encode())
        if value.numel():
            digest.update(value.numpy().tobytes())
    return digest.hexdigest()
