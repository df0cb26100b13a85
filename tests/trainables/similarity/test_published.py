"""The published procedure, against its steps written out here."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from trainables.encoders.base import Encoder, EncoderOutput, LayerStates
from trainables.similarity.base import compare
from trainables.similarity.published import (
    published_pieces,
    published_states,
    rbf_published,
    slices,
)


def written_out(x, y):
    """Slices, float32 kernels, centring by products with H: one step after the other."""
    n = len(x)
    batch = n // 4
    values = []
    for i in range(n // batch):
        centred = []
        for side in (x, y):
            part = side[i : i + batch]
            g = np.dot(part, part.T)
            d = np.diag(g) - g + (np.diag(g) - g).T
            sigma = math.sqrt(np.median(d[d != 0]))
            kernel = np.exp(d * np.float32(-0.5 / sigma**2))
            h = np.eye(batch) - np.ones((batch, batch)) / batch
            centred.append(h @ kernel @ h)
        k, m = centred
        values.append((k * m).sum() / (np.sqrt((k * k).sum()) * np.sqrt((m * m).sum())))
    return np.mean(values)


@pytest.mark.parametrize("n", [16, 37, 80, 13])
def test_value_is_that_of_the_steps(n):
    """Alone and in a batch, the value is that of the published steps."""
    rng = np.random.default_rng(n)
    x = rng.normal(size=(n, 6)).astype(np.float32)
    y = (x + rng.normal(size=(n, 6))).astype(np.float32)
    assert rbf_published(x, y) == pytest.approx(written_out(x, y), abs=1e-9)
    row = compare({"en": x[None], "ru": y[None]}, ["en"], "rbf-published", 0, 0)[0]
    assert row.value == rbf_published(x, y)


@pytest.mark.parametrize(
    ("n", "starts", "stop", "used"),
    [(800, 4, 200, 203), (1000, 4, 250, 253), (1001, 4, 250, 253), (13, 4, 3, 6), (11, 5, 2, 6)],
)
def test_slices_overlap_by_all_but_one_row(n, starts, stop, used):
    """Of 800 sentences 203 enter the value; five slices occur only below 16 sentences."""
    found = slices(n)
    assert len(found) == starts
    assert found[0] == slice(0, stop)
    assert found[1] == slice(1, stop + 1)
    assert found[-1].stop == used


def test_rows_count_only_sentences_that_entered():
    """`n` is that of the slices, and sentences beyond them change nothing."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 1, 40, 3)).astype(np.float32)
    row = compare({"a": x, "b": y}, ["a"], "rbf-published", 0, 0)[0]
    y[:, 13:] = 0
    assert row.n == 13
    assert compare({"a": x, "b": y}, ["a"], "rbf-published", 0, 0)[0] == row


def test_null_is_drawn_from_permuted_pivots():
    """Mean and quantile are those of the value with each permuted pivot; the seed decides."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1, 40, 3)).astype(np.float32)
    y = x + 0.1
    first, again, other = (
        compare({"a": x, "b": y}, ["a"], "rbf-published", 10, seed)[0] for seed in (1, 1, 2)
    )
    assert first == again
    assert first.null_mean != other.null_mean
    assert first.value == pytest.approx(1.0, abs=1e-4)
    drawn = [rbf_published(x[0][rng.permutation(40)], y[0]) for _ in range(400)]
    assert first.null_mean == pytest.approx(np.mean(drawn), abs=4 * np.std(drawn) / math.sqrt(10))
    assert first.null_mean < first.null_95 < first.value


def test_undefined_sides_are_refused():
    """Too few rows, or a slice without variation, is an error that says so."""
    x = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(ValueError, match=r"fewer than 8 rows \(7\)"):
        rbf_published(x[:7], x[:7])
    with pytest.raises(ValueError, match="constant"):
        rbf_published(x, np.ones_like(x))
    with pytest.raises(ValueError, match="20 and 19 rows"):
        rbf_published(x, x[:-1])


class Letters:
    """A tokenizer of letters: [CLS] 1, [SEP] 2, letters from 10."""

    cls_token = "<"  # noqa: S105 - a special piece
    sep_token = ">"  # noqa: S105 - a special piece

    def encode(self, text):
        """One piece a letter, special pieces as in the text, one more pair around it."""
        ids = {"<": 1, ">": 2}
        return [1, *(ids.get(c, ord(c) - 87) for c in text if c != " "), 2]


class Ramp(Encoder):
    """State l of piece p at position t is (p + l, t)."""

    def __init__(self):
        nn.Module.__init__(self)
        self.weight = nn.Parameter(torch.ones(()))

    def forward(self, input_ids, attention_mask, *, with_states=False):
        """Two states."""
        assert with_states
        assert not self.training
        assert attention_mask.all()
        at = torch.arange(input_ids.shape[1])[None].expand_as(input_ids)
        states = tuple(torch.stack([input_ids + layer, at], dim=-1).float() for layer in (0, 1))
        return EncoderOutput(states[-1], LayerStates(states))


def test_special_pieces_come_twice_and_long_texts_get_three_more():
    """One [CLS] and one [SEP] stay inside the outermost pair; 200 pieces are cut as published."""
    letters = Letters()
    assert published_pieces(letters, "ab") == [1, 1, 10, 11, 2, 2]
    assert published_pieces(letters, "a" * 195) == [1, 1, *[10] * 195, 2, 2]
    cut = published_pieces(letters, "a" * 196)
    assert cut == [1, 1, *[10] * 196, 2, 1, 2, 2]
    assert published_pieces(letters, "a" * 300) == [1, 1, *[10] * 197, 1, 2, 2]


def test_states_are_means_without_the_outermost_pieces():
    """Of [CLS] [CLS] a b [SEP] [SEP] the mean runs over [CLS] a b [SEP], in every layer."""
    states = published_states(Ramp(), Letters(), ["ab", "a"])
    assert states.dtype == np.float32
    assert states.shape == (2, 2, 2)
    assert states[0, 0].tolist() == [(1 + 10 + 11 + 2) / 4, (1 + 2 + 3 + 4) / 4]
    assert states[1, 1] == pytest.approx([(1 + 10 + 2) / 3 + 1, 2.0])
    with pytest.raises(ValueError, match="no texts"):
        published_states(Ramp(), Letters(), [])
