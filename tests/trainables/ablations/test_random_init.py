import math

import pytest
import torch
from torch import nn

from trainables.ablations.base import AblationError, apply, parameter_hash
from trainables.encoders.base import Encoder
from trainables.encoders.pretrained import load_encoder
from trainables.spec import EncoderRef

BERT_BASE_BLOCK = 7_087_872


def ablated(ref, text, spec):
    encoder = load_encoder(ref)
    return encoder, apply(encoder, text, spec=spec)


def hashes(encoder):
    return [
        parameter_hash(encoder.embeddings),
        *(parameter_hash(block) for block in encoder.blocks),
    ]


def changed(encoder, ref):
    """Names of parameters that differ from the pretrained ones."""
    before = dict(load_encoder(ref).model.named_parameters())
    after = encoder.model.named_parameters()
    return {name for name, parameter in after if not torch.equal(parameter, before[name])}


def test_only_the_named_blocks_are_drawn_anew(ref, make_spec):
    """Blocks 2 and 4 change, blocks 1 and 3 and the embeddings keep their bits."""
    encoder, report = ablated(ref, "reinit:2,4", make_spec(ref))
    same = [a == b for a, b in zip(hashes(encoder), hashes(load_encoder(ref)), strict=True)]
    assert same == [True, True, False, True, False]
    blocks = (encoder.blocks[1], encoder.blocks[3])
    assert report.n_reinitialised == sum(p.numel() for b in blocks for p in b.parameters())
    assert report.n_frozen == 0
    inside = {f"{encoder._blocks_path}.{i}." for i in (1, 3)}
    assert all(any(name.startswith(i) for i in inside) for name in changed(encoder, ref))


def test_every_matrix_of_the_named_blocks_changes(ref, make_spec):
    """No weight of a named block keeps its pretrained values, whatever its module is called."""
    encoder, _ = ablated(ref, "reinit:2", make_spec(ref))
    matrices = {
        f"{encoder._blocks_path}.1.{name}"
        for name, p in encoder.blocks[1].named_parameters()
        if p.ndim > 1
    }
    assert matrices
    assert matrices <= changed(encoder, ref)


def test_fresh_weights_have_the_moments_of_their_distribution(ref, make_spec):
    """Matrices N(0, initializer_range), biases exactly 0, norms exactly (1, 0)."""
    encoder, _ = ablated(ref, "reinit:1-4", make_spec(ref))
    assert encoder.initializer_range == 0.1
    drawn = []
    for block in encoder.blocks:
        for module in block.modules():
            if isinstance(module, nn.LayerNorm):
                assert torch.equal(module.weight, torch.ones_like(module.weight))
                assert module.bias is None or not module.bias.any()
            elif isinstance(module, nn.Linear):
                drawn.append(module.weight.flatten())
                assert module.bias is None or not module.bias.any()
    pooled = torch.cat(drawn).double()
    n = len(pooled)
    assert n > 20_000
    assert abs(pooled.mean().item()) < 5 * 0.1 / math.sqrt(n)
    assert abs(pooled.std().item() - 0.1) < 5 * 0.1 / math.sqrt(2 * n)
    inside = (pooled.abs() < 0.1).double().mean().item()
    assert inside == pytest.approx(0.6827, abs=5 * math.sqrt(0.6827 * 0.3173 / n))


def test_torch_default_is_what_a_new_module_holds(bert, make_spec):
    """U(+-1/sqrt(fan in)) for weights and biases, as the published port leaves them."""
    encoder, _ = ablated(bert, "reinit:1-4", make_spec(bert, reinit="torch-default"))
    for block in encoder.blocks:
        dense = block.output.dense
        bound = 1 / math.sqrt(dense.in_features)
        assert dense.in_features == 64
        for values in (dense.weight, dense.bias):
            assert values.abs().max().item() <= bound
            assert values.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.35)
        assert dense.bias.any()
        assert torch.equal(block.output.LayerNorm.weight, torch.ones(32))
        assert not block.output.LayerNorm.bias.any()


def test_a_layer_does_not_depend_on_the_others_in_the_set(ref, make_spec):
    """Layer 2 is the same in `2`, `1-2`, `2,4` and `all`: its stream is named by it alone."""
    found = {
        parameter_hash(ablated(ref, text, make_spec(ref))[0].blocks[1])
        for text in ("reinit:2", "reinit:1-2", "reinit:2,4", "all")
    }
    assert len(found) == 1


def test_seeds_and_layers_differ(bert, make_spec):
    """Another seed, and another layer, draw other weights."""
    first = ablated(bert, "reinit:1-2", make_spec(bert))[0]
    other = ablated(bert, "reinit:1-2", make_spec(bert, seed=2))[0]
    assert parameter_hash(first.blocks[0]) != parameter_hash(other.blocks[0])
    queries = [block.attention.self.query.weight for block in first.blocks[:2]]
    assert not torch.equal(*queries)


def test_global_random_state_neither_matters_nor_moves(bert, make_spec):
    """The weights come from named streams only."""
    torch.manual_seed(1)
    first = ablated(bert, "all", make_spec(bert))[0]
    after = torch.rand(3)
    torch.manual_seed(1)
    assert torch.equal(torch.rand(3), after)
    second = ablated(bert, "all", make_spec(bert))[0]
    assert parameter_hash(first) == parameter_hash(second)


def test_all_leaves_no_pretrained_weight(ref, make_spec):
    """Every matrix and table changes, the count is the whole encoder, padding stays 0."""
    encoder, report = ablated(ref, "all", make_spec(ref))
    assert report.n_reinitialised == sum(p.numel() for p in encoder.parameters())
    tables = {name for name, p in encoder.model.named_parameters() if p.ndim > 1}
    assert tables <= changed(encoder, ref)
    table = encoder.input_embedding
    assert table.padding_idx is not None
    assert not table.weight[table.padding_idx].any()
    assert table.weight[table.padding_idx + 5].any()


def test_all_and_every_layer_differ_by_the_embeddings(bert, make_spec):
    """`reinit:1-4` keeps what is pretrained outside the blocks; the blocks are those of `all`."""
    every, report = ablated(bert, "reinit:1-4", make_spec(bert))
    scratch, whole = ablated(bert, "all", make_spec(bert))
    assert parameter_hash(every.embeddings) == parameter_hash(load_encoder(bert).embeddings)
    assert parameter_hash(scratch.embeddings) != parameter_hash(every.embeddings)
    assert hashes(every)[1:] == hashes(scratch)[1:]
    outside = sum(p.numel() for p in every.embeddings.parameters())
    assert whole.n_reinitialised - report.n_reinitialised == outside


def test_all_is_normal_whatever_the_option(bert, make_spec):
    """The published code never gave a model from scratch PyTorch's defaults."""
    normal = ablated(bert, "all", make_spec(bert))[0]
    port = ablated(bert, "all", make_spec(bert, reinit="torch-default"))[0]
    assert parameter_hash(normal) == parameter_hash(port)


@pytest.mark.slow
def test_a_block_of_bert_base_is_counted_whole(make_spec):
    """|set| x 7,087,872 weights, the figure of the protocol."""
    from transformers import AutoModel, BertConfig

    config = BertConfig(num_hidden_layers=2, vocab_size=10)
    encoder = Encoder(AutoModel.from_config(config, add_pooling_layer=False))
    ref = EncoderRef(name="base", location="", fingerprint="", n_layers=2)
    for text, n in (("reinit:1", 1), ("reinit:1-2", 2)):
        report = apply(encoder, text, spec=make_spec(ref))
        assert report.n_reinitialised == n * BERT_BASE_BLOCK
    weight = encoder.blocks[0].output.dense.weight.double()
    assert weight.std().item() == pytest.approx(0.02, rel=5 / math.sqrt(2 * weight.numel()))


def odd_encoder(block):
    """A 2-layer model with blocks of one's own."""
    from types import SimpleNamespace

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.config = SimpleNamespace(num_hidden_layers=2, hidden_size=4)
            self.word = nn.Embedding(10, 4)
            self.body = nn.ModuleList([block(), block()])

        def get_input_embeddings(self):
            return self.word

    return Encoder(Model())


ODD = EncoderRef(name="odd", location="", fingerprint="", n_layers=2)


def test_norms_convolutions_tables_and_bare_biases_are_known(make_spec):
    """Each kind of module inside a block starts as it should, recognised by its shape."""

    class RootMeanSquare(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.full((4,), 9.0))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = RootMeanSquare()
            self.conv = nn.Conv1d(50, 60, 3)
            self.relative = nn.Embedding(2000, 4, padding_idx=1)
            self.q_bias = nn.Parameter(torch.full((4,), 9.0))

    encoder = odd_encoder(Block)
    apply(encoder, "reinit:1", spec=make_spec(ODD))
    block = encoder.blocks[0]
    assert torch.equal(block.norm.weight, torch.ones(4))
    assert torch.equal(block.q_bias, torch.zeros(4))
    assert block.conv.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert not block.conv.bias.any()
    assert block.relative.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert not block.relative.weight[1].any()
    apply(encoder, "reinit:1", spec=make_spec(ODD, reinit="torch-default"))
    bound = 1 / math.sqrt(50 * 3)
    assert block.conv.weight.abs().max().item() == pytest.approx(bound, rel=0.01)
    assert block.conv.bias.any()
    assert block.relative.weight.std().item() == pytest.approx(1.0, rel=0.05)
    assert torch.equal(block.q_bias, torch.zeros(4))


def test_an_unknown_kind_of_weight_is_refused_by_name(make_spec):
    """How a gate starts cannot be guessed: refused rather than left pretrained."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Parameter(torch.ones(4, 4))

    with pytest.raises(AblationError, match=r"body\.0\.gate \(Block\) is neither a matrix"):
        apply(odd_encoder(Block), "reinit:1", spec=make_spec(ODD))


def test_weights_shared_by_two_blocks_are_drawn_and_counted_once(make_spec):
    """A tied parameter is one parameter."""
    shared = nn.Linear(4, 4)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.own, self.tied = nn.Linear(4, 4), shared

    report = apply(odd_encoder(Block), "reinit:1-2", spec=make_spec(ODD))
    assert report.n_reinitialised == 3 * 20
