"""Masked language modelling: what is hidden, what is learnt, and that it can be repeated."""

import numpy as np
import pytest
import torch

from trainables.encoders.base import Encoder
from trainables.mlm import MaskPieces, MlmHead, MlmSettings, MlmTraining, masked
from trainables.toy.pretrain import Recipe, build_model, stacked

PIECES = MaskPieces(pad=0, mask=4, special=(0, 1, 2, 3, 4), n_pieces=12)
RECIPE = Recipe(hidden=16, intermediate=32, heads=2)


def pairs(n_lines, seed=0):
    """Lines of two pieces, of which either tells the other: 5 goes with 6, 7 with 8."""
    rng = np.random.default_rng(seed)
    return [np.array([2, 5 + 2 * k, 6 + 2 * k, 3]) for k in rng.integers(0, 2, n_lines)]


def trained(steps, *, until=None):
    model = build_model(RECIPE, 1, PIECES)
    encoder = Encoder(model)
    settings = MlmSettings(steps=steps, batch_size=8, learning_rate=1e-2, chosen=0.4)
    training = MlmTraining(encoder, MlmHead(encoder, 12, 0), pairs(64), PIECES, settings)
    losses = []
    training.run(until or steps, lambda _, loss: losses.append(loss))
    return training, losses


def test_masks_cover_what_they_should():
    """A fifth of the plain pieces is chosen, 80 % of those are hidden, 10 % replaced, 10 % kept."""
    lines = [np.array([2, *np.full(200, 7), 3]) for _ in range(100)]
    batch = masked(lines, PIECES, 0.2, np.random.default_rng(1))
    assert batch.chosen.sum() == pytest.approx(0.2 * 20_000, rel=0.1)
    assert not batch.chosen[:, 0].any(), "[CLS] is never chosen"
    assert (batch.gold == 7).all()
    seen = batch.input_ids[batch.chosen]
    assert (seen == 4).mean() == pytest.approx(0.8, abs=0.03)
    replaced = (seen != 4) & (seen != 7)
    assert replaced.mean() == pytest.approx(0.1 * 6 / 7, abs=0.02)  # 1 in 7 replaced by itself
    assert set(seen[replaced]) == {5, 6, 8, 9, 10, 11}
    assert (batch.input_ids[~batch.chosen] != 4).all()


def test_padding_is_neither_read_nor_chosen():
    """A short line is filled up, and what fills it is never hidden."""
    batch = masked(
        [np.array([2, 5, 3]), np.array([2, 5, 6, 7, 3])], PIECES, 0.9, np.random.default_rng(0)
    )
    assert batch.attention_mask.tolist() == [[1, 1, 1, 0, 0], [1] * 5]
    assert not batch.chosen[0, 2:].any()


def test_at_least_one_piece_is_chosen():
    """A batch so small that no piece falls to chance still has something to learn."""
    batch = masked([np.array([2, 5, 3])], PIECES, 1e-9, np.random.default_rng(0))
    assert batch.gold.tolist() == [5]


def test_what_depends_on_its_neighbour_is_learnt():
    """The loss falls below that of the best guess which does not look at the line."""
    _, losses = trained(90)
    blind = np.log(4)  # four pieces, all as usual
    assert losses[0] > blind
    assert np.mean(losses[-20:]) < 0.6 * blind


def test_a_training_can_be_repeated_and_cut_in_two():
    """Equal settings give equal bits, and stopping on the way changes none."""
    whole, losses = trained(12)
    torch.rand(5)
    halves, first = trained(12, until=5)
    halves.run(12, lambda _, loss: first.append(loss))
    assert first == losses
    for one, other in zip(whole.encoder.parameters(), halves.encoder.parameters(), strict=True):
        assert torch.equal(one, other)


def test_stacking_copies_layers_in_turn():
    """Layer 3 of four begins as layer 1 of two, and the embeddings are kept."""
    shallow = build_model(RECIPE, 2, PIECES)
    deep = stacked(shallow, build_model(RECIPE, 4, PIECES))
    for layer in range(4):
        own = deep.encoder.layer[layer].state_dict()
        below = shallow.encoder.layer[layer % 2].state_dict()
        assert all(torch.equal(own[name], below[name]) for name in own)
    names = dict(deep.embeddings.named_parameters())
    assert all(torch.equal(names[n], p) for n, p in shallow.embeddings.named_parameters())
    other = deep.encoder.layer[2].output.dense.weight
    other.data.zero_()
    assert deep.encoder.layer[0].output.dense.weight.abs().sum() > 0, "copies are their own"


def test_the_rate_rises_and_falls():
    """Up over the warm-up, then down in a straight line to almost nothing at the last step."""
    settings = MlmSettings(steps=100, learning_rate=1.0, warmup=0.1)
    assert [settings.rate(step) for step in (0, 9, 10, 55, 99)] == pytest.approx(
        [0.1, 1.0, 1.0, 0.5, 1 / 90]
    )
