from dataclasses import replace

import pytest
import torch

from trainables.ablations.base import AblationError, canonical
from trainables.ablations.gold_pos import is_told
from trainables.data.treebanks import data_ref
from trainables.encoders.pretrained import encoder_ref
from trainables.encoders.tiny import tiny_encoder
from trainables.heads.gold_tags import NAMES, WIDTH, GoldTags, numbers
from trainables.spec import HyperParameters, Request, TrialSpec, Workspace
from trainables.trial import run_trial, trial_epochs


def treebank(n):
    """Three words `x` in turning order: only the tag says which is the verb, the root."""
    blocks = []
    for number in range(n):
        verb = number % 3 + 1
        rows = [
            f"{i}\tx\t_\t{'VERB' if i == verb else 'NOUN'}\t_\t_\t"
            f"{0 if i == verb else verb}\t{'root' if i == verb else 'dep'}\t_\t_"
            for i in (1, 2, 3)
        ]
        blocks.append("\n".join(rows) + "\n\n")
    return "".join(blocks)


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """A parsing trial in which words differ by gold tags alone."""
    root = tmp_path_factory.mktemp("told")
    for split, n in (("train", 60), ("dev", 12), ("test", 30)):
        (root / f"aa_told-ud-{split}.conllu").write_text(treebank(n))
    return TrialSpec(
        task="parsing",
        encoder=encoder_ref(str(tiny_encoder(root / "tiny", n_layers=2))),
        source="aa",
        train=data_ref(root, "aa_told", "train"),
        dev=data_ref(root, "aa_told", "dev"),
        ablation="gold-pos",
        hyper=HyperParameters(learning_rate=5e-3, batch_size=6, epochs=3),
        seed=1,
    ), data_ref(root, "aa_told", "test")


@pytest.fixture
def workspace(tmp_path):
    return Workspace(checkpoints=str(tmp_path / "checkpoints"), cache=str(tmp_path / "cache"))


def test_a_parser_that_is_told_finds_what_others_cannot(told, workspace, tmp_path):
    """Trees that follow from tags alone: all found with `gold-pos`, about a third without."""
    spec, target = told
    request = Request(targets=(target,), keep="best")
    whole = run_trial(spec, request, workspace)
    las = {s.metric: s.value for s in whole.scores if s.split == "test"}["las"]
    assert las == 1.0
    elsewhere = replace(workspace, checkpoints=str(tmp_path / "ref"))
    plain = run_trial(replace(spec, ablation="ref"), request, elsewhere)
    assert {s.metric: s.value for s in plain.scores if s.split == "test"}["las"] < 0.6
    again = trial_epochs(spec, request, workspace)  # from the weights that were kept
    with pytest.raises(StopIteration) as end:
        next(again)
    assert end.value.value.scores == whole.scores


def test_other_tasks_are_not_told(told, workspace):
    """A tagger that is told the tags is refused, with a way out."""
    spec, _ = told
    with pytest.raises(AblationError, match="'gold-pos' is for parsing, and this is 'upos'"):
        run_trial(replace(spec, task="upos"), Request(), workspace)


def test_it_is_spelt_last_and_goes_with_others():
    """One spelling whatever the order; registered last, so that older spellings stay."""
    assert canonical(" gold-pos + reinit:1-2", 4) == "reinit:1-2+gold-pos"
    assert [is_told(text) for text in ("gold-pos", "reinit:1+gold-pos", "ref")] == [
        True,
        True,
        False,
    ]
    with pytest.raises(AblationError):
        canonical("ref+gold-pos", 4)


def test_tags_are_numbered_alike_for_every_file():
    """The 17 tags of UD, CONJ of version 1 as CCONJ, and 0 for what is none of them."""
    assert len(NAMES) == 17
    assert numbers(("CONJ", "CCONJ", "_", "", "ADJ")).tolist() == [5, 5, 0, 0, 1]
    assert NAMES[4] == "CCONJ"


def test_no_tag_and_the_root_are_zeros_beside_the_state():
    """A state of 3 features becomes one of 103; zeros stay zeros in training."""
    tags = GoldTags(seed=1)
    states = torch.ones(2, 3)
    wide = tags.words(states, torch.tensor([0, 4]))
    assert wide.shape == (2, 3 + WIDTH)
    assert wide[0, 3:].abs().sum().item() == 0
    assert torch.equal(wide[1, 3:], tags.embedding.weight[4])
    assert torch.equal(tags.sentences(states)[:, 3:], torch.zeros(2, WIDTH))
    wide.sum().backward()
    assert tags.embedding.weight.grad is not None
    assert tags.embedding.weight.grad[0].abs().sum().item() == 0
