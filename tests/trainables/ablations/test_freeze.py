import pytest
import torch
from torch import nn

from trainables.ablations.base import apply, parameter_hash, set_train_mode
from trainables.encoders.pretrained import load_encoder
from trainables.spec import TrialOptions

IDS = torch.tensor([[5, 6, 7, 8], [9, 10, 11, 12]])
MASK = torch.ones_like(IDS)


def ablated(ref, text, make_spec):
    encoder = load_encoder(ref)
    return encoder, apply(encoder, text, spec=make_spec(ref))


def step(encoder):
    """One optimiser step on a made-up loss, with decay, over all parameters that ask for it."""
    parameters = [p for p in encoder.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(parameters, lr=1e-2, weight_decay=0.1)
    set_train_mode(encoder, TrialOptions())
    torch.manual_seed(0)
    encoder(IDS, MASK).last.square().sum().backward()
    optimiser.step()


def hashes(encoder):
    return [
        parameter_hash(encoder.embeddings),
        *(parameter_hash(block) for block in encoder.blocks),
    ]


@pytest.mark.parametrize("n", [0, 2, 3])
def test_frozen_parts_keep_their_bits_through_a_step(ref, make_spec, n):
    """Embeddings and blocks 1..n hash the same before and after; every block above moves."""
    encoder, _ = ablated(ref, f"freeze:{n}", make_spec)
    before = hashes(encoder)
    step(encoder)
    same = [a == b for a, b in zip(before, hashes(encoder), strict=True)]
    assert same == [True] * (n + 1) + [False] * (4 - n)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_the_frozen_state_computes_the_same_after_training(ref, make_spec, n):
    """State n is untouched by training, also where parts outside the blocks feed it (DeBERTa)."""
    encoder, _ = ablated(ref, f"freeze:{n}", make_spec)
    with torch.no_grad():
        before = encoder.eval()(IDS, MASK, with_states=True).states
    step(encoder)
    with torch.no_grad():
        after = encoder.eval()(IDS, MASK, with_states=True).states
    for layer in range(n + 1):
        assert torch.equal(before[layer], after[layer])
    assert not torch.equal(before[4], after[4])


def test_the_count_is_that_of_embeddings_and_blocks(bert, make_spec):
    """For BERT: all tables with their norm, and blocks 1..n, nothing else."""
    encoder, report = ablated(bert, "freeze:2", make_spec)
    parts = (encoder.embeddings, *encoder.blocks[:2])
    assert report.n_frozen == sum(p.numel() for m in parts for p in m.parameters())
    assert report.n_frozen == sum(p.numel() for p in encoder.parameters() if not p.requires_grad)
    assert report.n_reinitialised == 0
    tables = ("word_embeddings", "position_embeddings", "token_type_embeddings", "LayerNorm")
    for table in tables:
        assert not getattr(encoder.embeddings, table).weight.requires_grad


def test_relative_positions_are_frozen_with_the_blocks_that_read_them(refs, make_spec):
    """DeBERTa keeps them outside embeddings and blocks; `freeze:0` leaves them free."""
    for n, is_free in ((0, True), (1, False)):
        encoder, _ = ablated(refs["deberta-v2"], f"freeze:{n}", make_spec)
        assert encoder.model.encoder.rel_embeddings.weight.requires_grad is is_free
        assert encoder.model.encoder.LayerNorm.weight.requires_grad is is_free


def test_a_final_norm_stays_free(refs, make_spec):
    """ModernBERT's last norm lies above every block: freezing all blocks does not reach it."""
    encoder, _ = ablated(refs["modernbert"], "freeze:4", make_spec)
    free = [name for name, p in encoder.model.named_parameters() if p.requires_grad]
    assert free == ["final_norm.weight"]


def test_frozen_parts_drop_nothing_in_training(ref, make_spec):
    """In train mode the frozen states are those of evaluation; the ones above have dropout."""
    encoder, _ = ablated(ref, "freeze:2", make_spec)
    encoder.eval()
    for module in encoder.modules():
        if isinstance(module, nn.Dropout) or type(module).__name__ == "StableDropout":
            module.p = 0.5
    with torch.no_grad():
        calm = encoder(IDS, MASK, with_states=True).states
        set_train_mode(encoder, TrialOptions())
        states = encoder(IDS, MASK, with_states=True).states
    assert [torch.equal(a, b) for a, b in zip(calm, states, strict=True)][:3] == [True] * 3
    assert all(not module.training for module in encoder.blocks[1].modules())
    assert all(module.training for module in encoder.blocks[2].modules())


def test_train_mode_gives_frozen_parts_their_dropout(bert, make_spec):
    """`frozen_mode = "train"` is the published code: states below vary from pass to pass."""
    options = TrialOptions(frozen_mode="train")
    encoder, _ = ablated(bert, "freeze:2", make_spec)
    set_train_mode(encoder, options)
    assert all(module.training for module in encoder.modules())
    with torch.no_grad():
        passes = [encoder(IDS, MASK, with_states=True).states[2] for _ in range(2)]
    assert not torch.equal(*passes)


def test_without_freezing_all_is_in_train_mode(bert, make_spec):
    """`ref` trains everything with dropout."""
    encoder, _ = ablated(bert, "ref", make_spec)
    set_train_mode(encoder, TrialOptions())
    assert all(module.training for module in encoder.modules())


def test_a_frozen_random_layer_is_drawn_first(bert, make_spec):
    """In `reinit:1-2+freeze:3` the fresh weights are frozen, in whatever order it is written."""
    encoder, report = ablated(bert, "freeze:3+reinit:1-2", make_spec)
    drawn, _ = ablated(bert, "reinit:1-2", make_spec)
    assert hashes(encoder) == hashes(drawn)
    assert report.n_reinitialised == sum(p.numel() for p in encoder.blocks[:2].parameters())
    before = hashes(encoder)
    step(encoder)
    same = [a == b for a, b in zip(before, hashes(encoder), strict=True)]
    assert same == [True] * 4 + [False]


def test_freezing_draws_no_random_numbers(bert, make_spec):
    """The pass that looks for what is below leaves the generator where it was, and no gradient."""
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    encoder, _ = ablated(bert, "freeze:2", make_spec)
    assert torch.equal(torch.rand(3), expected)
    assert all(p.grad is None for p in encoder.parameters())


def test_a_hash_sees_one_bit_a_name_and_a_shape():
    """Equal for equal parameters only."""
    layer = nn.Linear(3, 2)
    first = parameter_hash(layer)
    assert parameter_hash(layer) == first
    with torch.no_grad():
        layer.weight[0, 0] = torch.nextafter(layer.weight[0, 0], torch.tensor(9.0))
    assert parameter_hash(layer) != first
    same = nn.ParameterDict({"a": nn.Parameter(torch.zeros(2, 3))})
    for other in ({"b": torch.zeros(2, 3)}, {"a": torch.zeros(3, 2)}):
        named = nn.ParameterDict({k: nn.Parameter(v) for k, v in other.items()})
        assert parameter_hash(named) != parameter_hash(same)
