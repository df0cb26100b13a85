import json
import re
import subprocess
import sys
from dataclasses import asdict, replace
from types import SimpleNamespace

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save

from trainables.data.conllu import read_conllu
from trainables.data.sentence import DataError
from trainables.encoders.pretrained import load_encoder, load_tokenizer
from trainables.materials import Materials
from trainables.registry import UnknownName
from trainables.spec import Request
from trainables.training import Diverged
from trainables.trial import run_trial, trial_epochs


def measured(result):
    """All that must be equal between two runs of a trial."""
    return replace(result, facts=None)


def test_a_trial_learns_and_measures_all_that_was_asked(spec, request_all, workspace):
    """Every target is scored over all its words and every layer is compared."""
    result = run_trial(spec, request_all, workspace)
    test = {s.language: s for s in result.scores if (s.split, s.metric) == ("test", "accuracy")}
    assert set(test) == {"aa", "bb", "cc"}
    for ref in request_all.targets:
        n_words = sum(len(s.words) for s in read_conllu(ref.location))
        assert test[ref.language].n == n_words
    assert test["aa"].value > 0.8  # always NOUN would be 0.3
    assert [point.epoch for point in result.curve] == [1, 2, 3]
    assert {(s.source, s.target, s.layer) for s in result.similarity} == {
        ("aa", target, layer) for target in ("bb", "cc") for layer in range(5)
    }
    assert {s.state for s in result.similarity} == {"fine-tuned"}
    assert {s.n for s in result.similarity} == {16}


def test_equal_specs_give_equal_bits(spec, request_all, workspace, tmp_path):
    """A second run, after other work in the same process, gives the same bits."""
    first = run_trial(spec, request_all, workspace)
    run_trial(replace(spec, seed=2, ablation="reinit:1-2"), request_all, workspace)
    torch.rand(7)
    elsewhere = replace(workspace, checkpoints=str(tmp_path / "elsewhere"))
    assert measured(run_trial(spec, request_all, elsewhere)) == measured(first)


def test_reading_files_is_booked_as_loading(spec, request_all, workspace, monkeypatch):
    """On a clock that only reading moves, nothing else takes any time; each file is read once."""
    from trainables import accounting, materials

    load, read = materials.load_corpus, []

    def slowly(ref, encoder, cache):
        read.append(ref.location)
        return load(ref, encoder, cache)

    monkeypatch.setattr(materials, "load_corpus", slowly)
    monkeypatch.setattr(accounting, "time", SimpleNamespace(monotonic=lambda: 7.0 * len(read)))
    materials._words.cache_clear()
    facts = run_trial(spec, request_all, workspace).facts
    assert len(read) == len(set(read)) >= 4
    assert facts.load_s == 7.0 * len(read)
    assert facts.train_s == facts.evaluate_s == facts.similarity_s == 0


def test_more_files_than_a_process_keeps_are_not_read_ahead(spec, request_all, workspace):
    """They would be read twice."""
    materials = Materials(spec, workspace, 64)
    nowhere = replace(request_all.targets[0], location="nowhere", fingerprint="sha256:none")
    materials.get_ready(*[nowhere] * 57)
    with pytest.raises(DataError, match="nowhere"):
        materials.get_ready(nowhere)


def test_a_trial_says_how_fast_its_machine_was(spec, request_all, workspace):
    """Seconds of the fixed product: more than a microsecond, less than a second."""
    assert 1e-6 < run_trial(spec, request_all, workspace).facts.matmul_s < 1


FRESH = """
import json, pickle, sys
from dataclasses import asdict, replace
from trainables.trial import run_trial
spec, request, workspace = pickle.load(open(sys.argv[1], "rb"))
result = replace(run_trial(spec, request, workspace), facts=None)
print(json.dumps(asdict(result)))
"""


@pytest.mark.slow
def test_the_second_trial_of_a_worker_equals_the_first_of_a_fresh_one(
    spec, request_all, workspace, tmp_path
):
    """A warm process leaks nothing from one trial into the next."""
    import pickle

    ablated = replace(spec, ablation="reinit:1-2", seed=5)
    handed = tmp_path / "handed"
    fresh = replace(workspace, checkpoints=str(tmp_path / "fresh"))
    handed.write_bytes(pickle.dumps((ablated, request_all, fresh)))
    out = subprocess.run(
        [sys.executable, "-c", FRESH, str(handed)], capture_output=True, check=True, text=True
    ).stdout
    run_trial(spec, request_all, workspace)
    second = run_trial(ablated, request_all, workspace)
    assert json.loads(out) == json.loads(json.dumps(asdict(measured(second))))


@pytest.mark.parametrize("stop_at", [0, 7, 8, 13, 23])
def test_a_resumed_trial_ends_with_the_same_bits(spec, request_all, workspace, tmp_path, stop_at):
    """Killed after any step and run again, a trial measures what an undisturbed one does."""
    calm = replace(workspace, checkpoints=str(tmp_path / "calm"))
    expected = run_trial(spec, request_all, calm)
    eager = replace(workspace, checkpoint_s=0.0)
    with pytest.MonkeyPatch.context() as patch:
        _die_after(patch, stop_at)
        with pytest.raises(KeyboardInterrupt):
            run_trial(spec, request_all, eager)
    resumed = run_trial(spec, request_all, eager)
    assert measured(resumed) == measured(expected)
    assert resumed.facts.resumed_epochs == max(stop_at - 1, 0) // 8


def _die_after(patch, n_steps):
    """Stop a trial right after the checkpoint of one step (8 steps an epoch)."""
    from trainables.checkpoint import Checkpoints

    def save(self, training):
        self.save(training)
        self.wait()
        if training.progress.step >= n_steps:
            raise KeyboardInterrupt

    patch.setattr(Checkpoints, "save_if_due", save)


def test_a_torn_checkpoint_is_passed_over(spec, request_all, workspace, tmp_path, caplog):
    """A half-written newest state costs its steps, not the trial."""
    expected = run_trial(spec, request_all, replace(workspace, checkpoints=str(tmp_path / "calm")))
    with pytest.MonkeyPatch.context() as patch:
        _die_after(patch, 11)
        with pytest.raises(KeyboardInterrupt):
            run_trial(spec, request_all, workspace)
    newest, older = sorted((tmp_path / "checkpoints").iterdir(), reverse=True)
    assert older.stat().st_size > 0
    newest.write_bytes(newest.read_bytes()[: newest.stat().st_size // 2])
    assert measured(run_trial(spec, request_all, workspace)) == measured(expected)
    assert "torn" in caplog.text


def test_a_checkpoint_of_another_spec_is_foreign(spec, request_all, workspace, tmp_path, caplog):
    """States of another seed in the same folder are not taken up."""
    other = replace(spec, seed=9)
    expected = run_trial(other, request_all, replace(workspace, checkpoints=str(tmp_path / "c")))
    with pytest.MonkeyPatch.context() as patch:
        _die_after(patch, 9)
        with pytest.raises(KeyboardInterrupt):
            run_trial(spec, request_all, workspace)
    assert measured(run_trial(other, request_all, workspace)) == measured(expected)
    assert "another trial" in caplog.text


def test_a_state_of_another_shape_is_passed_over(spec, request_all, workspace, tmp_path, caplog):
    """A state whose compact embedding has other rows costs its steps, not the trial."""
    expected = run_trial(spec, request_all, replace(workspace, checkpoints=str(tmp_path / "calm")))
    with pytest.MonkeyPatch.context() as patch:
        _die_after(patch, 11)
        with pytest.raises(KeyboardInterrupt):
            run_trial(spec, request_all, workspace)
    for state in (tmp_path / "checkpoints").iterdir():
        with safe_open(state, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no dict
            about = file.metadata()
        (table,) = (name for name in tensors if re.fullmatch(r"model\..*word_embeddings.*", name))
        tensors[table] = tensors[table][1:].clone()
        state.write_bytes(save(tensors, about))
    assert measured(run_trial(spec, request_all, workspace)) == measured(expected)
    assert "another model" in caplog.text


def test_kept_weights_stay_their_trials_own_under_another_name(spec, request_all, workspace):
    """Equal trial ids share weights: a file's code, language and place are none of its content."""
    run_trial(spec, replace(request_all, keep="best"), workspace)
    renamed = replace(
        spec,
        train=replace(spec.train, code="aa_other", language="a", split="x"),
        encoder=replace(spec.encoder, name="other"),
    )
    (later,) = trial_epochs_without_training(renamed, request_all, workspace)
    assert {score.split for score in later.scores} == {"dev", "test"}


@pytest.mark.parametrize("ablation", ["ref", "reinit:1-2+freeze:2", "freeze:0", "all"])
def test_kept_weights_answer_later_requests_without_training(
    spec, request_all, workspace, ablation
):
    """A target asked for later is measured as if it had been asked for at once."""
    spec = replace(spec, ablation=ablation)
    whole = run_trial(spec, replace(request_all, keep="best"), workspace)
    later = list(trial_epochs_without_training(spec, request_all, workspace))
    assert later == [measured(whole)]


def trial_epochs_without_training(spec, request, workspace):
    epochs = trial_epochs(spec, request, workspace)
    try:
        yield next(epochs)
    except StopIteration as end:
        yield measured(end.value)


def test_a_probe_measures_the_encoder_as_it_is(probe, request_all, workspace):
    """A probe trains nothing, predicts nothing and compares the pretrained states."""
    result = run_trial(probe, replace(request_all, targets=()), workspace)
    assert (result.scores, result.curve, result.best_epoch) == ((), (), 0)
    assert {s.state for s in result.similarity} == {"pretrained"}


def test_a_pruned_trial_measures_nothing(spec, request_all, workspace):
    """Told to stop after its first epoch, a trial reports where, and no test score."""
    result = run_trial(spec, request_all, workspace, report=lambda _: False)
    assert result.pruned_at == 1
    assert {s.split for s in result.scores} == {"dev"}
    assert result.similarity == ()


def test_accuracy_agrees_with_a_naive_recount(spec, request_all, workspace):
    """One sentence at a time, words looked up one by one: the same number of right words."""
    request = replace(request_all, keep="best", similarity=None)
    result = run_trial(spec, request, workspace)
    right = {ref.language: naive_right(spec, workspace, ref) for ref in request.targets}
    tested = [s for s in result.scores if (s.split, s.metric) == ("test", "accuracy")]
    test = {s.language: round(s.value * s.n) for s in tested}
    assert test == right


def naive_right(spec, workspace, ref):
    """Count right words without batches, windows, caches or shared code for prediction."""
    from safetensors.torch import load_file

    weights = load_file(f"{workspace.checkpoints}/best.safetensors")
    encoder = load_encoder(spec.encoder).eval()
    ids = weights.pop("table_ids")
    state = dict(encoder.named_parameters())
    with torch.no_grad():
        for name, value in weights.items():
            if not name.startswith("encoder."):
                continue
            own = name.removeprefix("encoder.")
            if own in state and state[own].shape == value.shape:
                state[own].copy_(value)
            else:
                encoder.embeddings.get_submodule("word_embeddings").weight[ids] = value
    tokenizer = load_tokenizer(spec.encoder)
    tags = sorted({t for s in read_conllu(spec.train.location) for t in s.upos})
    n_right = 0
    for sentence in read_conllu(ref.location):
        pieces, at = [tokenizer.cls_token_id], []
        for word in sentence.words:
            own = tokenizer.encode(word, add_special_tokens=False) or [tokenizer.unk_token_id]
            texts = tokenizer.convert_ids_to_tokens(own)
            at.append(len(pieces) + next(i for i, text in enumerate(texts) if text.strip("▁")))
            pieces += own
        pieces.append(tokenizer.sep_token_id)
        with torch.no_grad():
            one = torch.tensor([pieces])
            last = encoder(one, torch.ones_like(one)).last[0]
        logits = last @ weights["head.linear.weight"].T + weights["head.linear.bias"]
        for position, gold in zip(at, sentence.upos, strict=True):
            n_right += tags[int(logits[position].argmax())] == gold
    return n_right


def test_too_high_a_rate_is_said_to_diverge(spec, workspace):
    """A loss that is no number stops the trial with advice, not with a score."""
    wild = replace(spec, hyper=replace(spec.hyper, learning_rate=1e30))
    with pytest.raises(Diverged, match="learning_rate"):
        run_trial(wild, Request(), workspace)


def test_an_unknown_selection_metric_is_refused_before_an_epoch(spec, workspace):
    """A misspelt metric costs no training, and is said once with the metrics there are."""
    odd = replace(spec, options=replace(spec.options, select="acuracy"))
    with pytest.raises(UnknownName, match=r"options.select 'acuracy'. Did you mean 'accuracy'\?"):
        next(trial_epochs(odd, Request(), workspace))
