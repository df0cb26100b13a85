"""`reinit:1-2` and `all`: draw weights anew after the whole encoder was loaded (D-04).

Never by skipping weights while loading: what is left then depends on the library's version, down
to uninitialised memory. Every parameter draws from a stream of its own, named by (seed, its name),
so a layer's new weights do not depend on which other layers are in the set.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from trainables.ablations.base import AblationReport
from trainables.ablations.layers import AblationError, parse_layers, spell_layers
from trainables.seeding import generator
from trainables.spec import TrialSpec

if TYPE_CHECKING:
    import torch

    import trainables.encoders.base

Distribution = Literal["normal", "torch-default"]

SIGMAS = 10.0
"""How far a moment of fresh weights may lie from its expectation: chance never gets there."""


@dataclass(frozen=True, slots=True)
class RandomInit:
    """`reinit:1-2`: whole blocks from scratch; embeddings and what lies outside blocks stay."""

    layers: tuple[int, ...]
    excludes: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def parse(cls, argument: str | None, n_layers: int, text: str) -> "RandomInit":
        """Takes a set of layers.

        Raises:
            AblationError: there is none, or it does not fit.
        """
        if not argument:
            raise AblationError(text, "'reinit' of which layers? Write `reinit:1-2`.")
        return cls(parse_layers(argument, n_layers, text))

    def __str__(self) -> str:
        return f"reinit:{spell_layers(self.layers)}"

    def touch(self, encoder: "trainables.encoders.base.Encoder", spec: TrialSpec) -> AblationReport:
        """Re-initialise each block of the set."""
        blocks = [encoder.blocks[layer - 1] for layer in self.layers]
        n = reinitialise(encoder, blocks, spec.seed, spec.options.reinit)
        return AblationReport(n_reinitialised=n)


@dataclass(frozen=True, slots=True)
class FromScratch:
    """`all`: no pretrained weight at all, embeddings included; `reinit:1-L` keeps those.

    Always N(0, initializer_range): the published code builds such a model without loading, so its
    layers never see PyTorch's defaults. Blocks get the weights that `reinit` would give them.
    """

    excludes: ClassVar[frozenset[str]] = frozenset({"reinit"})

    @classmethod
    def parse(cls, argument: str | None, n_layers: int, text: str) -> "FromScratch":  # noqa: ARG003 - one signature for all
        """Takes no argument.

        Raises:
            AblationError: it is given one.
        """
        if argument is not None:
            raise AblationError(text, "'all' takes nothing after it. Write `all` or `reinit:1-2`.")
        return cls()

    def __str__(self) -> str:
        return "all"

    def touch(self, encoder: "trainables.encoders.base.Encoder", spec: TrialSpec) -> AblationReport:
        """Re-initialise every parameter of the encoder."""
        n = reinitialise(encoder, [encoder.model], spec.seed, "normal")
        return AblationReport(n_reinitialised=n)


def reinitialise(
    encoder: "trainables.encoders.base.Encoder",
    modules: Iterable["torch.nn.Module"],
    seed: int,
    how: Distribution,
) -> int:
    """Draw all parameters of some parts of an encoder anew.

    Args:
        encoder: Changed in place.
        modules: Parts of it.
        seed: Of the trial.
        how: `normal`: matrices N(0, initializer_range), biases 0, norms (1, 0), padding rows 0.
            `torch-default`: what PyTorch gives a new module: matrices and biases U(+-1/sqrt(fan
            in)), norms (1, 0), embeddings N(0, 1).

    Returns:
        Number of weights drawn anew: all that the parts have.

    Raises:
        AblationError: a part has a parameter of a kind that is unknown here.
    """
    import torch

    modules = list(modules)
    names = {id(parameter): name for name, parameter in encoder.model.named_parameters()}
    done: set[int] = set()
    n = 0
    with torch.no_grad():
        for owner, own_name, parameter in _parameters(modules):
            if id(parameter) in done:
                continue
            done.add(id(parameter))
            name = names[id(parameter)]
            draw = _recipe(
                owner,
                own_name,
                parameter,
                name=name,
                how=how,
                initializer_range=encoder.initializer_range,
            )
            draw.fill(parameter, generator(seed, "reinit", name))
            draw.check(parameter, name)
            n += parameter.numel()
    expected = sum(p.numel() for p in {id(p): p for m in modules for p in m.parameters()}.values())
    assert n == expected > 0  # noqa: S101 - every parameter of the parts, and at least one
    return n


def _parameters(
    modules: Iterable["torch.nn.Module"],
) -> Iterator[tuple["torch.nn.Module", str, "torch.nn.Parameter"]]:
    """Each parameter with the module that owns it and its name there."""
    for module in modules:
        for owner in module.modules():
            for name, parameter in owner.named_parameters(recurse=False):
                yield owner, name, parameter


@dataclass(frozen=True, slots=True)
class Draw:
    """How one parameter is filled.

    Attributes:
        kind: `constant` (mean), `normal` (mean, spread = standard deviation) or `uniform`
            (mean +- spread).
        mean: Centre.
        spread: As said.
        zero_row: A row that is 0 whatever is drawn (padding); None for none.
    """

    kind: Literal["constant", "normal", "uniform"]
    mean: float = 0.0
    spread: float = 0.0
    zero_row: int | None = None

    def fill(self, parameter: "torch.Tensor", source: "torch.Generator") -> None:
        """Draw on the CPU, so that every device gets the same weights."""
        import torch

        fresh = torch.empty(parameter.shape, dtype=torch.float32)
        if self.kind == "constant":
            fresh.fill_(self.mean)
        elif self.kind == "normal":
            fresh.normal_(self.mean, self.spread, generator=source)
        else:
            fresh.uniform_(self.mean - self.spread, self.mean + self.spread, generator=source)
        if self.zero_row is not None:
            fresh[self.zero_row] = 0.0
        parameter.copy_(fresh)

    def check(self, parameter: "torch.Tensor", name: str) -> None:
        """Assert that mean and standard deviation are those of the recipe, up to chance."""
        import torch

        rows = parameter
        if self.zero_row is not None:
            keep = torch.arange(len(parameter), device=parameter.device) != self.zero_row
            rows = parameter[keep]
        deviation = {"constant": 0.0, "normal": self.spread, "uniform": self.spread / math.sqrt(3)}
        sigma, n = deviation[self.kind], rows.numel()
        mean = rows.mean(dtype=torch.float64).item()
        second = rows.double().sub(self.mean).square().mean().item()
        # Var((x - mean)^2) <= 2 sigma^4 for both distributions.
        is_right = abs(mean - self.mean) <= SIGMAS * sigma / math.sqrt(n) and abs(
            second - sigma**2
        ) <= SIGMAS * sigma**2 * math.sqrt(2 / n)
        assert is_right, (name, mean, second)  # noqa: S101 - our own invariant (D-04)


def _recipe(
    owner: "torch.nn.Module",
    own_name: str,
    parameter: "torch.nn.Parameter",
    *,
    name: str,
    how: Distribution,
    initializer_range: float,
) -> Draw:
    """Choose by the structure of the owner, not by its class's name."""
    from torch import nn

    is_bias = own_name.endswith("bias") and parameter.ndim == 1
    weight = getattr(owner, "weight", None)
    is_norm = isinstance(weight, nn.Parameter) and weight.ndim == 1
    if is_norm and own_name == "weight":
        return Draw("constant", mean=1.0)
    if isinstance(owner, nn.Embedding):
        deviation = initializer_range if how == "normal" else 1.0
        return Draw("normal", spread=deviation, zero_row=owner.padding_idx)
    if is_bias and (is_norm or how == "normal" or weight is None):
        return Draw("constant")
    if own_name in ("weight", "bias") and isinstance(weight, nn.Parameter) and weight.ndim > 1:
        if how == "normal":
            return Draw("normal", spread=initializer_range)
        return Draw("uniform", spread=1 / math.sqrt(_fan_in(owner, weight)))
    raise AblationError(
        "reinit",
        f"{name} ({type(owner).__name__}) is neither a matrix, a bias nor a norm: it is not known "
        "how such a weight starts. Choose another encoder.",
    )


def _fan_in(owner: "torch.nn.Module", weight: "torch.Tensor") -> int:
    """Inputs of one output; matrices are [out, in, ...], but for the `Conv1D` of the GPT kind."""
    if type(owner).__name__ == "Conv1D":
        return int(weight.shape[0])
    return math.prod(weight.shape[1:])
