"""Means over pieces, however the windows came."""

import numpy as np
import pytest
import torch

from trainables.similarity.pooling import Pool, masked_sum


def windows(seed=0):
    """Five windows of up to 7 pieces: sentence 1 in three windows, two of them in one batch."""
    generator = torch.Generator().manual_seed(seed)
    states = [torch.randn(5, 7, 3, generator=generator) for _ in range(4)]
    mask = torch.rand(5, 7, generator=generator) < 0.5
    mask[:, 2] = True
    return torch.tensor([2, 1, 1, 0, 1]), states, mask


def naive(index, states, mask, n):
    """Collect every piece of a sentence, then take the mean."""
    means = np.zeros((len(states), n, states[0].shape[2]))
    for layer, state in enumerate(states):
        for sentence in range(n):
            pieces = [
                state[window, piece].double().numpy()
                for window in range(len(index))
                if index[window] == sentence
                for piece in range(mask.shape[1])
                if mask[window, piece]
            ]
            means[layer, sentence] = np.mean(pieces, axis=0)
    return means


@pytest.mark.parametrize("batches", [[5], [2, 3], [1, 1, 1, 1, 1]])
def test_means_are_over_all_pieces_of_all_windows(batches):
    """Pieces of several windows count alike, in one batch or in many."""
    index, states, mask = windows()
    pool, start = Pool(3), 0
    for size in batches:
        part = slice(start, start + size)
        pool.add(index[part], [state[part] for state in states], mask[part])
        start += size
    means = pool.means()
    assert means.dtype == np.float32
    assert means == pytest.approx(naive(index, states, mask, 3), abs=1e-6)


def test_equal_batches_give_equal_bits():
    """Two pools that saw the same batches agree to the last bit."""
    index, states, mask = windows()
    first, second = Pool(3), Pool(3)
    for pool in (first, second):
        pool.add(index, states, mask)
    assert (first.means() == second.means()).all()


def test_half_precision_states_are_summed_in_float32():
    """512 pieces of bfloat16 0.1 have the mean of that number, inside autocast too."""
    state = torch.full((1, 512, 2), 0.1, dtype=torch.bfloat16)
    mask = torch.ones(1, 512, dtype=torch.bool)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        pool = Pool(1)
        pool.add(torch.tensor([0]), [state, state.float()], mask)
        total = masked_sum(state, mask)
    assert total.dtype == torch.float32
    exact = float(torch.tensor(0.1, dtype=torch.bfloat16))
    assert pool.means() == pytest.approx(np.full((2, 1, 2), exact), rel=1e-6)


def test_states_keep_no_gradients_and_need_none():
    """States that require gradients are pooled without a graph."""
    pool = Pool(1)
    pool.add(torch.tensor([0]), [torch.ones(1, 2, 3, requires_grad=True)], torch.ones(1, 2).bool())
    assert pool.means().tolist() == [[[1.0, 1.0, 1.0]]]


def test_sentences_without_pieces_are_refused():
    """A sentence that never came, or came without a piece that counts, is named."""
    index, states, mask = windows()
    pool = Pool(5)
    pool.add(index, states, mask)
    with pytest.raises(ValueError, match=r"2 of 5 sentences .* sentence 3"):
        pool.means()
    with pytest.raises(ValueError, match="no batch"):
        Pool(1).means()
