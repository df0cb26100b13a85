"""The similarity that the code published with "First Align, then Predict" computes.

Not the paper's formula: Gaussian kernels, a quarter of the sentences, and slices that overlap by
all but one row (PROTOCOLS section 2). Values of the papers compare with this one only.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Float32, Float64, Int

from trainables.encoders.base import Encoder
from trainables.similarity.base import Level, Pooling, each_pair

MAX_PIECES = 200
_FEWEST = 8
"""Slices of a single row have no distances."""


@runtime_checkable
class Tokenizer(Protocol):
    """What is asked of a Hugging Face tokenizer here."""

    cls_token: str
    sep_token: str

    def encode(self, text: str) -> list[int]:
        """Pieces of a text, with the special ones around them."""


def published_pieces(tokenizer: Tokenizer, text: str) -> list[int]:
    """Tokenise as the published code does, which adds the special pieces twice.

    `[CLS] [CLS] ... [SEP] [SEP]`; from 200 pieces on, the first 199 and `[CLS] [SEP] [SEP]`. Of
    these the mean leaves out the first and the last.
    """
    pieces = tokenizer.encode(f"{tokenizer.cls_token} {text} {tokenizer.sep_token}")
    if len(pieces) >= MAX_PIECES:
        pieces = pieces[: MAX_PIECES - 1] + tokenizer.encode(tokenizer.sep_token)
    return pieces


def published_states(
    encoder: Encoder, tokenizer: Tokenizer, texts: Sequence[str]
) -> Float32[np.ndarray, "layers n d"]:
    """Pool raw texts as the published code does: one forward a sentence, no padding.

    Args:
        encoder: Left in eval mode.
        tokenizer: The encoder's own.
        texts: `# text` of each sentence.

    Raises:
        ValueError: there are no texts.
    """
    if not texts:
        raise ValueError("no texts: give at least one sentence.")
    device = next(encoder.parameters()).device
    encoder.eval()
    pooled: list[torch.Tensor] = []
    with torch.inference_mode():
        for text in texts:
            ids = torch.tensor([published_pieces(tokenizer, text)], device=device)
            states = encoder(ids, torch.ones_like(ids), with_states=True).states
            pooled.append(torch.stack([state[0, 1:-1].float().mean(dim=0) for state in states]))
    means: Float32[np.ndarray, "layers n d"] = torch.stack(pooled, dim=1).cpu().numpy()
    return means


def slices(n: int) -> list[slice]:
    """Slices `[i : i + n//4]` for i = 0, 1, ...; `n // (n//4)` of them: 4 from n = 16 on."""
    batch = n // 4
    return [slice(i, i + batch) for i in range(n // batch)]


def rbf_published(x: Float[np.ndarray, "n d"], y: Float[np.ndarray, "_n e"]) -> float:
    """Mean over `slices` of the biased, centred CKA with Gaussian kernels.

    Per slice `tr(KHLH) / sqrt(tr(KHKH) tr(LHLH))`; `K = exp(-D / (2 s^2))` in float32, `s^2` the
    median of the non-zero entries of `D`, own one each side; centred in float64.

    Raises:
        ValueError: fewer than 8 rows, a side is constant within a slice, or the rows differ in
            number.
    """
    if len(x) != len(y):
        raise ValueError(f"{len(x)} and {len(y)} rows: give the same sentences on both sides.")
    left, right = _kernels(x), _kernels(y)
    if left is None or right is None:
        raise ValueError(
            f"fewer than {_FEWEST} rows ({len(x)}), or a side is constant or not finite within a "
            "slice: the published CKA is undefined."
        )
    return _value(left, right)


@dataclass(frozen=True, slots=True)
class RbfPublished:
    """The published RBF CKA, on the published pooling.

    Its null is drawn: the pivot's rows are permuted before slicing, as often as there are
    shuffles; the quantile interpolates between draws (of 20, between the two largest).
    """

    name: str = "rbf-published"

    @property
    def pooling(self) -> Pooling:
        """`pooling.published_states`."""
        return "published"

    def options(self) -> dict[str, str | int]:
        """How it was taken (D-22)."""
        return {
            "kernel": "rbf",
            "bandwidth": "median of non-zero squared distances, own one each side and slice",
            "centring": "double",
            "bias": "biased",
            "slices": "[i : i + n//4] for i = 0..3, mean",
            "text": "raw text",
            "pooling": "mean over positions, one sentence a forward",
            "special_pieces": "one first and one last kept",
            "max_pieces": MAX_PIECES,
            "states_dtype": "float32",
            "dtype": "float32 kernels, float64 centring",
            "null": "drawn, pivot's rows permuted before slicing",
        }

    def layer(
        self,
        sides: Sequence[Float[np.ndarray, "n d"]],
        pairs: Sequence[tuple[int, int]],
        shuffles: Sequence[Int[np.ndarray, "n"]],
    ) -> list[Level]:
        """See `base.Measure`; `n` counts the sentences inside the slices only."""
        n = len(sides[0])
        used = slices(n)[-1].stop if n >= _FEWEST else n
        levels = [Level(math.nan, used)] * len(pairs)
        drawn: dict[int, list[list[Float64[np.ndarray, "m m"]] | None]] = {
            i: [_kernels(sides[i][order]) for order in shuffles] for i in {i for i, _ in pairs}
        }
        for at, x, y in each_pair(pairs, lambda i: _kernels(sides[i])):
            if x is None or y is None:
                continue
            null = [_value(draw, y) for draw in drawn[pairs[at][0]] if draw is not None]
            levels[at] = Level(
                _value(x, y),
                used,
                float(np.mean(null)) if null else math.nan,
                float(np.quantile(null, 0.95)) if null else math.nan,
            )
        return levels


def _kernels(side: Float[np.ndarray, "n d"]) -> list[Float64[np.ndarray, "m m"]] | None:
    """Centred kernel of each slice, scaled to norm 1; None where one is undefined."""
    if len(side) < _FEWEST or not np.isfinite(side).all():
        return None
    rows = side.astype(np.float32)
    kernels = [_kernel(rows[part]) for part in slices(len(rows))]
    defined = [kernel for kernel in kernels if kernel is not None]
    return defined if len(defined) == len(kernels) else None


def _kernel(x: Float32[np.ndarray, "m d"]) -> Float64[np.ndarray, "m m"] | None:
    if (x == x[0]).all():
        return None
    products = x @ x.T
    off = products.diagonal() - products
    distances = off + off.T
    sigma = math.sqrt(np.median(distances[distances != 0]))
    distances *= -0.5 / (sigma * sigma)
    centred = np.exp(distances).astype(np.float64)
    means = centred.mean(axis=0)
    centred -= means[:, None] + means[None, :] - means.mean()
    norm = math.sqrt(float(np.einsum("ij,ij->", centred, centred)))
    scaled: Float64[np.ndarray, "m m"] = centred / norm
    return scaled


def _value(x: list[Float64[np.ndarray, "m m"]], y: list[Float64[np.ndarray, "m m"]]) -> float:
    values = [float(np.einsum("ij,ij->", k, m)) for k, m in zip(x, y, strict=True)]
    return sum(values) / len(values)


RBF_PUBLISHED = RbfPublished()
