"""Memory runs out: smaller parts, the same effective batch, the same numbers."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from trainables.encoders.base import Encoder
from trainables.encoders.pretrained import encoder_ref, load_encoder
from trainables.encoders.tiny import tiny_encoder
from trainables.materials import Materials
from trainables.model import Lesson, Model
from trainables.registry import TASKS, load
from trainables.shortage import by_halves
from trainables.spec import Request
from trainables.training import Training
from trainables.trial import run_trial


def lesson_of(spec, workspace, micro_batch=0):
    """A training at its first step, as `fine_tune` would begin it."""
    encoder = load_encoder(spec.encoder)
    materials = Materials(spec, workspace, encoder.max_positions)
    corpus = materials.corpus(spec.train)
    task = load("task", spec.task, TASKS)()
    labels = task.inventory(corpus)
    head = task.head(encoder.hidden_size, labels, spec.options, spec.seed)
    lesson = Lesson(materials.units(spec.train), task.gold(corpus, labels))
    model = Model(encoder, head, materials.device)
    encoder.train()
    head.train()
    return Training(model, task, lesson, spec, micro_batch=micro_batch)


def gradients(training, chosen):
    """Gradients of one batch by name, its loss, and the next draw of the generator."""
    losses, _ = training._gradients(chosen)
    after = torch.rand(1).item()
    found = {name: p.grad for name, p in training.model.trainable() if p.grad is not None}
    return found, sum(losses).item(), after


@pytest.mark.parametrize(
    ("architecture", "task", "long"),
    [
        ("bert", "upos", False),
        ("bert", "parsing", False),
        ("bert", "parsing", True),
        ("xlm-roberta", "upos", True),
        ("distilbert", "upos", False),
        ("deberta-v2", "upos", False),
        ("modernbert", "upos", False),
    ],
)
def test_parts_have_the_gradients_of_the_whole_with_dropout(  # noqa: PLR0917 - fixtures, cases
    spec, workspace, tmp_path, architecture, task, long
):
    """Sentence by sentence, with dropout everywhere: gradients, loss and later draws are equal."""
    folder = tiny_encoder(tmp_path / "encoder", architecture=architecture, n_layers=2)
    options = replace(spec.options, head_dropout=0.2, max_length=8 if long else 512, overlap=2)
    spec = replace(spec, encoder=encoder_ref(str(folder)), task=task, options=options)
    chosen = np.arange(11)
    whole, whole_loss, whole_after = gradients(lesson_of(spec, workspace), chosen)
    for size in (1, 4):
        part, loss, after = gradients(lesson_of(spec, workspace, size), chosen)
        assert loss == pytest.approx(whole_loss, rel=1e-5)
        assert after == whole_after
        assert part.keys() == whole.keys()
        for name, gradient in whole.items():
            torch.testing.assert_close(part[name], gradient, rtol=1e-3, atol=1e-6, msg=name)


@pytest.fixture
def small_memory(monkeypatch):
    """`small_memory(pieces)`: an encoder that cannot take more padded pieces at a time."""
    tried = []
    original = Encoder.forward

    def install(most):
        def forward(self, input_ids, *args, **kwargs):
            output = original(self, input_ids, *args, **kwargs)
            tried.append((input_ids.numel(), torch.is_grad_enabled()))
            if input_ids.numel() > most:  # after the draws, as a real one would
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
            return output

        monkeypatch.setattr(Encoder, "forward", forward)
        return tried

    return install


def test_a_trial_that_runs_out_of_memory_ends_with_the_same_numbers(
    spec, request_all, workspace, tmp_path, small_memory
):
    """Training and evaluation go on in smaller parts, the row says so, the numbers stay."""
    calm = run_trial(spec, request_all, replace(workspace, checkpoints=str(tmp_path / "calm")))
    most = 4 * int(lesson_of(spec, workspace).lesson.units.lengths.max())
    tried = small_memory(most)
    short = run_trial(spec, request_all, workspace)
    assert calm.facts.micro_batch is None
    assert short.facts.micro_batch in {2, 3, 4, 5, 6}  # of 8
    too_large = [is_training for n, is_training in tried if n > most]
    assert 0 < sum(too_large) < 6  # what does not fit is not tried again in each of the 24 steps
    assert not all(too_large)  # and evaluation met it, too
    np.testing.assert_allclose(
        [p.loss for p in short.curve], [p.loss for p in calm.curve], rtol=1e-3
    )
    for one, other in zip(short.scores, calm.scores, strict=True):
        assert replace(one, value=other.value) == other
        assert one.value == pytest.approx(other.value, abs=0.02)  # a word or two on the edge
    for one, other in zip(short.similarity, calm.similarity, strict=True):
        assert one.value == pytest.approx(other.value, abs=1e-3)


def test_other_dropout_would_be_seen(spec, workspace, tmp_path, monkeypatch):
    """The tolerance above means something: parts that draw for themselves move the loss by more."""
    from contextlib import nullcontext

    calm = run_trial(spec, Request(), replace(workspace, checkpoints=str(tmp_path / "calm")))
    monkeypatch.setattr("trainables.parts.Draws", lambda *_: nullcontext())
    other = run_trial(spec, Request(), replace(workspace, micro_batch=3))
    assert max(
        abs(a.loss / b.loss - 1) for a, b in zip(other.curve, calm.curve, strict=True)
    ) > 5e-3  # fmt: skip


def test_a_sentence_that_does_not_fit_alone_is_the_end(spec, workspace, small_memory):
    """There is nothing smaller than a sentence: the error comes out, after ever smaller tries."""
    tried = small_memory(3)
    with pytest.raises(torch.OutOfMemoryError):
        run_trial(spec, Request(), workspace)
    assert len(tried) < 8


def test_a_rehearsal_changes_no_number(spec, workspace):
    """The longest batch goes through before the first step, and nothing of it stays."""
    plain, rehearsed = lesson_of(spec, workspace), lesson_of(spec, workspace)
    rehearsed.rehearse()
    assert all(parameter.grad is None for _, parameter in rehearsed.model.trainable())
    chosen = np.arange(8)
    one, other = gradients(plain, chosen), gradients(rehearsed, chosen)
    assert one[1:] == other[1:]
    assert all(torch.equal(one[0][name], other[0][name]) for name in one[0])


def test_halves_come_in_order_and_leave_nothing_out():
    """Every index is run once, in order, in batches that fit; too large ones are not repeated."""
    lengths = np.array([5, 4, 4, 3, 2, 2, 1])
    batches = [np.array([0, 1, 2, 3]), np.array([4, 5, 6])]
    tries, done = [], []

    def run(chosen):
        size = len(chosen) * int(lengths[chosen].max())
        tries.append(size)
        if size > 5:
            raise MemoryError
        done.append(chosen.tolist())

    by_halves(batches, lengths, run)
    assert done == [[0], [1], [2], [3], [4], [5, 6]]
    assert tries == [20, 10, 5, 4, 8, 4, 3, 6, 2, 4]


def test_another_error_is_not_taken_for_a_shortage():
    """Only a lack of memory makes parts smaller."""

    def run(_):
        raise RuntimeError("an illegal memory access was encountered")

    with pytest.raises(RuntimeError, match="illegal"):
        by_halves([np.arange(2)], np.array([1, 1]), run)


def test_real_shortage_on_the_cpu_is_known():
    """What torch raises for a tensor larger than any machine counts as a shortage."""
    from trainables.shortage import is_shortage

    with pytest.raises(RuntimeError) as found:
        torch.empty(2**55, dtype=torch.uint8)
    assert is_shortage(found.value)
