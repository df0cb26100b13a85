import copy

import numpy as np
import pytest
import torch
from torch import nn

from trainables.ablations.base import apply, parameter_hash
from trainables.encoders.compact import CompactEmbedding, CompactTable, decay_factor
from trainables.encoders.pretrained import encoder_ref, load_encoder
from trainables.spec import HyperParameters, TrialSpec

USED = np.array([0, 3, 4, 5, 7, 11, 40])
RATES = [1e-3, 2e-3, 1.5e-3, 1e-3]


def spec(ref, ablation="ref"):
    hyper = HyperParameters(learning_rate=1e-3, batch_size=2, epochs=1)
    return TrialSpec(
        task="upos",
        encoder=ref,
        source="en",
        train=None,
        dev=None,
        ablation=ablation,
        hyper=hyper,
        seed=1,
    )


def train(encoder, *, weight_decay=0.0):
    """Four steps of AdamW with dropout on batches of the pieces in `USED`."""
    parameters = [p for p in encoder.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(parameters, lr=1.0, weight_decay=weight_decay)
    torch.manual_seed(7)
    encoder.train()
    for rate in RATES:
        ids = torch.from_numpy(USED)[torch.randint(len(USED), (2, 6))]
        optimiser.param_groups[0]["lr"] = rate
        optimiser.zero_grad(set_to_none=True)
        encoder(ids, torch.ones_like(ids)).last.square().mean().backward()
        optimiser.step()


def test_training_is_the_same_bit_for_bit(ref):
    """Steps with the whole table and with the rows in use give equal weights everywhere."""
    whole, compact = load_encoder(ref), load_encoder(ref)
    train(whole)
    table = CompactEmbedding(compact, USED)
    train(compact)
    table.release()
    assert parameter_hash(compact) == parameter_hash(whole)
    assert parameter_hash(whole) != parameter_hash(load_encoder(ref))


def test_rows_not_in_use_keep_their_bits(bert):
    """Only the given rows move."""
    encoder = load_encoder(bert)
    before = encoder.input_embedding.weight.detach().clone()
    table = CompactEmbedding(encoder, USED)
    train(encoder)
    table.release()
    moved = (encoder.input_embedding.weight != before).any(dim=1).nonzero().flatten().tolist()
    assert set(moved) <= set(USED.tolist())
    assert len(moved) >= len(USED) - 1  # the padding row, 0, has no gradient


def test_weight_decay_of_other_rows_has_a_closed_form(bert):
    """With decay the other rows shrink by a known product; the trained ones agree bit for bit."""
    whole, compact = load_encoder(bert), load_encoder(bert)
    train(whole, weight_decay=0.01)
    table = CompactEmbedding(compact, USED)
    train(compact, weight_decay=0.01)
    table.release(decay_factor(RATES, 0.01))
    full, part = whole.input_embedding.weight, compact.input_embedding.weight
    assert torch.equal(part[USED], full[USED])
    torch.testing.assert_close(part, full, rtol=1e-6, atol=0)
    assert decay_factor([0.5, 0.1], 0.2) == pytest.approx(0.9 * 0.98)
    assert decay_factor(RATES, 0.0) == 1.0


def test_an_id_outside_the_table_raises(bert):
    """A piece that was not announced is an error with its id, not a wrong row."""
    encoder = load_encoder(bert)
    table = CompactEmbedding(encoder, USED)
    ids = torch.tensor([[3, 6, 4]])
    with pytest.raises(IndexError, match="piece id 6 is not in the compact embedding of 7 of"):
        encoder(ids, torch.ones_like(ids))
    table.release()
    assert encoder(ids, torch.ones_like(ids)).last.shape == (1, 3, 32)


@pytest.mark.parametrize("bad", [-1, 10**6])
def test_an_id_outside_the_vocabulary_raises(bert, bad):
    """Tokenizer and weights that do not belong together are noticed before training."""
    with pytest.raises(IndexError, match=f"piece id {bad} is outside the encoder's vocabulary"):
        CompactEmbedding(load_encoder(bert), np.array([1, bad]))


def test_ids_are_sorted_and_counted_once(bert):
    """Row i of the compact table is piece `ids[i]`."""
    encoder = load_encoder(bert)
    table = CompactEmbedding(encoder, np.array([7, 3, 7, 0]))
    assert table.ids.tolist() == [0, 3, 7]
    assert isinstance(encoder.embeddings.word_embeddings, CompactTable)
    shapes = {name: tuple(p.shape) for name, p in encoder.named_parameters() if "word_" in name}
    assert shapes == {"model.embeddings.word_embeddings.weight": (3, 32)}


def test_parameters_keep_names_and_order(ref):
    """Checkpoints and optimisers find the table under the same name as before."""
    encoder = load_encoder(ref)
    names = [name for name, _ in encoder.named_parameters()]
    table = CompactEmbedding(encoder, USED)
    assert [name for name, _ in encoder.named_parameters()] == names
    table.release()
    assert [name for name, _ in encoder.named_parameters()] == names


@pytest.mark.parametrize("case", ["frozen", "no ids", "scaled"])
def test_nothing_is_swapped_where_nothing_is_gained(bert, case):
    """Frozen tables, no ids, and tables that do more than look up stay whole."""

    class Scaled(nn.Embedding):
        def forward(self, ids):
            return 2 * super().forward(ids)

    encoder = load_encoder(bert)
    if case == "frozen":
        apply(encoder, "freeze:0", spec=spec(bert))
    if case == "scaled":
        encoder.set_input_embedding(Scaled(800, 32))
    before = encoder.input_embedding
    table = CompactEmbedding(encoder, USED[:0] if case == "no ids" else USED)
    assert encoder.input_embedding is before
    assert len(table.ids) == 0
    table.release()
    assert encoder.input_embedding is before


def test_release_twice_is_harmless(bert):
    """The second call finds nothing to put back."""
    encoder = load_encoder(bert)
    table = CompactEmbedding(encoder, USED)
    train(encoder)
    table.release()
    after = parameter_hash(encoder)
    table.release(0.5)
    assert parameter_hash(encoder) == after


def test_a_pristine_copy_is_not_reached(bert):
    """The swap touches one encoder, not the process's cached one."""
    encoder = load_encoder(bert)
    expected = parameter_hash(copy.deepcopy(encoder))
    CompactEmbedding(encoder, USED)
    train(encoder)
    assert parameter_hash(load_encoder(encoder_ref(bert.location))) == expected
