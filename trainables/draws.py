"""Dropout of a part of a batch, as the whole batch would have drawn it.

When memory forces a batch to go forward in smaller parts, its sums are the same to rounding, but
each part would draw masks of its own. Here every dropout of a part draws the mask of the whole,
from the same place of the same stream, and keeps its own rows of it. It costs the drawing again
for each part, and no memory beyond one mask.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode, handle_torch_function, has_torch_function_unary

from trainables.data.batching import Batch


@dataclass(frozen=True, slots=True)
class Extent:
    """How much a batch holds: its windows, positions of a window, words and sentences."""

    windows: int = 0
    positions: int = 0
    words: int = 0
    sentences: int = 0

    @classmethod
    def of(cls, batch: Batch) -> "Extent":
        """That of a padded batch."""
        windows, positions = batch.input_ids.shape
        return cls(windows, positions, len(batch.word), len(batch.chosen))

    def after(self, part: "Extent") -> "Extent":
        """What lies before the next part, if this lies before `part`."""
        return Extent(
            windows=self.windows + part.windows,
            words=self.words + part.words,
            sentences=self.sentences + part.sentences,
        )


def sentence_dropout(rows: Tensor, p: float) -> Tensor:
    """Dropout in training of a tensor with one row a sentence, whatever the number of words."""
    if has_torch_function_unary(rows):
        found: Tensor = handle_torch_function(sentence_dropout, (rows,), rows, p)
        return found
    return functional.dropout(rows, p)


class Draws(TorchFunctionMode):
    """Within this block a part of a batch draws as the whole: `with Draws(whole, part, before):`.

    The global generator must stand where it stood when the whole began, and afterwards stands where
    the whole would have left it. Tensors are told apart by their shapes: states have one row a
    window, attention one a window (or a window and a head), what heads read one a word or a
    sentence. A tensor of none of these draws as it is.

    On a GPU the fused attention kernels draw inside; there a part draws attention masks of its own
    (the same law, not the same bits).

    Args:
        whole: The batch as it would have gone forward.
        part: What goes forward now: some of its sentences, in its order.
        before: What of the whole lies before the part; `positions` unused.
    """

    def __init__(self, whole: Extent, part: Extent, before: Extent) -> None:
        super().__init__()
        self._whole, self._part, self._before = whole, part, before

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - torch's signature
        kwargs = kwargs or {}
        if func is functional.dropout:
            return self._dropout(*args, **kwargs)
        if func is sentence_dropout:
            return self._rows(*args, **kwargs)
        if func is functional.scaled_dot_product_attention:
            return self._attention(*args, **kwargs)
        return func(*args, **kwargs)

    def _dropout(
        self,
        given: Tensor,
        p: float = 0.5,
        training: bool = True,
        inplace: bool = False,
    ) -> Tensor:
        if not training or p == 0 or given.numel() == 0:
            return functional.dropout(given, p, training, inplace)
        keep = self._keep(given, p)
        return given.mul_(keep) if inplace else given * keep

    def _rows(self, given: Tensor, p: float) -> Tensor:
        first, n = self._before.sentences, self._part.sentences
        whole = given.new_ones(self._whole.sentences, *given.shape[1:])
        return given * functional.dropout(whole, p)[first : first + n]

    def _attention(  # noqa: PLR0917 - torch's signature
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        """What torch itself does on the CPU when there is dropout, which no fused kernel has."""
        is_plain = query.ndim == 4 and not is_causal and not enable_gqa  # noqa: PLR2004 - [b heads t d]
        if dropout_p == 0 or not is_plain or query.device.type != "cpu":
            return functional.scaled_dot_product_attention(
                query,
                key,
                value,
                attn_mask,
                dropout_p,
                is_causal,
                scale=scale,
                enable_gqa=enable_gqa,
            )
        scores = query @ key.transpose(-1, -2) * (scale or query.shape[-1] ** -0.5)
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(~attn_mask, -torch.inf)
        elif attn_mask is not None:
            scores = scores + attn_mask
        weights = scores.softmax(dim=-1)
        return weights * self._keep(weights, dropout_p) @ value

    def _keep(self, given: Tensor, p: float) -> Tensor:
        """Of the whole's mask (0, or what makes up for the zeros), the place of `given`."""
        whole, part, before = self._whole, self._part, self._before
        size, at = list(given.shape), [slice(n) for n in given.shape]
        inner = range(1, 2) if given.ndim == 3 else range(2, 4)  # noqa: PLR2004 - [b t d], else [b heads t t]
        if given.ndim > 2 and given.shape[0] % part.windows == 0:  # noqa: PLR2004 - as above
            times = given.shape[0] // part.windows  # heads may be folded into the rows
            inner = range(1, 3) if times > 1 else inner
            if all(given.shape[i] == part.positions for i in inner if i < given.ndim):
                size[0] = whole.windows * times
                at[0] = slice(before.windows * times, (before.windows + part.windows) * times)
                for i in inner:
                    size[i] = whole.positions
        elif given.ndim == 2 and given.shape[0] == part.words:  # noqa: PLR2004 - [words d]
            size[0] = whole.words
            at[0] = slice(before.words, before.words + part.words)
        elif given.ndim == 2 and given.shape[0] == part.sentences:  # noqa: PLR2004 - [sentences d]
            size[0] = whole.sentences
            at[0] = slice(before.sentences, before.sentences + part.sentences)
        return functional.dropout(given.new_ones(size), p)[tuple(at)]
