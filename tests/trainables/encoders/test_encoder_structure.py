"""Blocks, embeddings and states are found by structure."""

import pytest
import torch
from torch import nn

from trainables.encoders.base import Encoder, EncoderError
from trainables.encoders.pretrained import load_encoder, load_tokenizer

TEXTS = ["cat dogs sun", "cat"]


@pytest.fixture
def batch(ref):
    """Two texts of unlike length, the shorter one padded."""
    encoded = load_tokenizer(ref)(TEXTS, padding=True, return_tensors="pt")
    assert encoded["attention_mask"].sum() < encoded["attention_mask"].numel()
    return encoded["input_ids"], encoded["attention_mask"]


def test_states_are_those_of_transformers(ref, batch):
    """States 0..L-1 are `hidden_states` bit for bit; state L is the last block's own output."""
    encoder = load_encoder(ref)
    ids, mask = batch
    with torch.no_grad():
        states = encoder(ids, mask, with_states=True).states
        theirs = encoder.model(input_ids=ids, attention_mask=mask, output_hidden_states=True)
    assert len(states) == len(theirs.hidden_states) == encoder.n_layers + 1 == 5
    for own, other in zip(list(states)[:-1], theirs.hidden_states[:-1], strict=True):
        assert torch.equal(own, other)
    final_norm = getattr(encoder.model, "final_norm", nn.Identity())
    assert torch.equal(final_norm(states[4]), theirs.hidden_states[4])


def test_the_last_state_is_what_the_head_would_read(ref, batch):
    """`last` is transformers' `last_hidden_state`, with and without states."""
    encoder = load_encoder(ref)
    ids, mask = batch
    with torch.no_grad():
        theirs = encoder.model(input_ids=ids, attention_mask=mask).last_hidden_state
        assert torch.equal(encoder(ids, mask).last, theirs)
        assert torch.equal(encoder(ids, mask, with_states=True).last, theirs)


def test_states_are_read_only_when_asked_for(ref, batch):
    """Without `with_states` there are none, and no hook stays behind."""
    encoder = load_encoder(ref)
    encoder(*batch, with_states=True)
    assert encoder(*batch).states is None
    assert not any(
        module._forward_hooks or module._forward_pre_hooks for module in encoder.modules()
    )


def test_padding_does_not_reach_a_word(ref, batch):
    """The short text alone and padded gives the same states, to rounding."""
    encoder = load_encoder(ref)
    ids, mask = batch
    n = int(mask[1].sum())
    with torch.no_grad():
        padded = encoder(ids, mask).last[1, :n]
        alone = encoder(ids[1:, :n], mask[1:, :n]).last[0]
    torch.testing.assert_close(padded, alone, atol=2e-5, rtol=1e-4)


def test_embeddings_and_blocks_are_disjoint(ref):
    """No parameter is in both, and the input embedding is in the embeddings."""
    encoder = load_encoder(ref)
    below = {id(p) for p in encoder.embeddings.parameters()}
    inside = {id(p) for p in encoder.blocks.parameters()}
    assert not below & inside
    assert id(encoder.input_embedding.weight) in below
    assert len(encoder.blocks) == encoder.n_layers == 4
    assert encoder.hidden_size == 32


def test_longest_input_fits_and_one_more_piece_does_not_promise_to(ref):
    """`max_positions` is 128 for all, also where positions count from after the padding index."""
    encoder = load_encoder(ref)
    assert encoder.max_positions == 128
    ids = torch.full((1, 128), 5)
    assert encoder(ids, torch.ones_like(ids)).last.shape == (1, 128, 32)


def test_convolution_after_the_first_layer_is_in_its_state():
    """DeBERTa-v2's convolution lies outside the blocks; state 1 holds it, as transformers' does."""
    from transformers import AutoModel, DebertaV2Config

    torch.manual_seed(0)
    config = DebertaV2Config(
        vocab_size=30,
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=64,
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
        conv_kernel_size=3,
        conv_act="gelu",
        position_biased_input=False,
    )
    encoder = Encoder(AutoModel.from_config(config).eval())
    ids = torch.arange(5, 11)[None]
    with torch.no_grad():
        states = encoder(ids, torch.ones_like(ids), with_states=True).states
        theirs = encoder.model(input_ids=ids, output_hidden_states=True).hidden_states
    assert all(torch.equal(a, b) for a, b in zip(states, theirs, strict=True))


def small(config_class, **settings):
    from transformers import AutoModel

    return AutoModel.from_config(config_class(vocab_size=30, **settings)).eval()


def test_shared_layers_are_refused():
    """ALBERT has one block for all layers: it cannot be ablated by layer, and is refused."""
    from transformers import AlbertConfig

    model = small(
        AlbertConfig,
        embedding_size=16,
        hidden_size=32,
        num_hidden_layers=4,
        num_attention_heads=2,
        intermediate_size=64,
    )
    with pytest.raises(EncoderError, match=r"'albert' \(AlbertModel\).*no list of 4 alike"):
        Encoder(model, "albert")


def test_two_stacks_are_refused():
    """An encoder-decoder has two lists of blocks: which is meant cannot be known."""
    from transformers import T5Config

    model = small(T5Config, d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2)
    with pytest.raises(EncoderError, match="more than one list of 2 alike"):
        Encoder(model, "t5")


def test_states_of_another_layout_are_refused():
    """XLNet passes time first between its blocks: noticed by looking, with a message."""
    from transformers import XLNetConfig

    model = small(XLNetConfig, d_model=32, n_layer=2, n_head=2, d_inner=64)
    with pytest.raises(EncoderError, match="states between its 2 blocks cannot be read"):
        Encoder(model, "xlnet").check("xlnet")


def test_lists_inside_blocks_do_not_confuse():
    """A block that holds a list of as many modules as there are layers is still a block."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.experts = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])

        def forward(self, state):
            return self.experts[0](state)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            from types import SimpleNamespace

            self.config = SimpleNamespace(num_hidden_layers=2, hidden_size=4)
            self.word = nn.Embedding(10, 4)
            self.body = nn.ModuleList([Block(), Block()])

        def get_input_embeddings(self):
            return self.word

        def forward(self, input_ids, attention_mask):
            from types import SimpleNamespace

            state = self.word(input_ids) * attention_mask[..., None]
            for block in self.body:
                state = block(state)
            return SimpleNamespace(last_hidden_state=state)

    encoder = Encoder(Model())
    encoder.check("experts")
    assert encoder.blocks is encoder.model.body
    assert encoder.embeddings is encoder.model.word


def test_an_encoder_error_survives_the_trip_between_processes():
    """Taken apart as pickle does and put together, the message is the same."""
    kind, arguments, *_ = EncoderError("encoder 'x': broken.").__reduce__()
    error = kind(*arguments)
    assert str(error) == "encoder 'x': broken."
