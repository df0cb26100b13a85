"""What only a GPU can show; all are skipped without one."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from trainables.checkpoint import Checkpoints
from trainables.encoders.base import Encoder
from trainables.encoders.pretrained import encoder_ref, load_encoder
from trainables.encoders.tiny import tiny_encoder
from trainables.finetuning import begin, with_head
from trainables.heads.biaffine import SHAPES
from trainables.materials import Materials
from trainables.memory import cap, peak
from trainables.registry import TASKS, load
from trainables.rehearsal import rehearse
from trainables.shortage import is_shortage
from trainables.spec import Request
from trainables.trial import run_trial

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no GPU")

TASK_NAMES = ("upos", "parsing")


@pytest.fixture
def on_gpu(workspace):
    """The usual workspace, on the GPU."""
    yield replace(workspace, device="cuda", gpus=1.0)
    cap(torch.device("cuda"), 1.0)


def training_of(spec, workspace):
    """A training at its first step, on the workspace's device."""
    encoder = load_encoder(spec.encoder)
    materials = Materials(spec, workspace, encoder.max_positions)
    encoder.to(materials.device)
    task = load("task", spec.task, TASKS)()
    labels = task.inventory(materials.corpus(spec.train))
    model = with_head(encoder, task, labels, materials)
    return begin(model, task, labels, materials)[0]


def measured(result):
    """All that must be equal between two runs of a trial."""
    return replace(result, facts=None)


def without_dropout(encoder_spec, folder, architecture="bert"):
    """The same trial on an encoder that draws nothing: another device draws other numbers."""
    made = tiny_encoder(folder, architecture=architecture, n_layers=4)
    config = (made / "config.json").read_text(encoding="utf-8")
    for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
        config = config.replace(f'"{name}": 0.1', f'"{name}": 0.0')
    (made / "config.json").write_text(config, encoding="utf-8")
    options = replace(encoder_spec.options, head_dropout=0.0)
    return replace(encoder_spec, encoder=encoder_ref(str(made)), options=options)


@pytest.mark.parametrize("task", TASK_NAMES)
def test_the_gpu_finds_what_the_cpu_finds(  # noqa: PLR0917 - fixtures, cases
    spec, request_all, workspace, on_gpu, tmp_path, task, monkeypatch
):
    """Without dropout the two devices differ by rounding: losses, scores, similarity."""
    monkeypatch.setitem(SHAPES, "first-align", replace(SHAPES["first-align"], dropout=0.0))
    spec = replace(without_dropout(spec, tmp_path / "plain"), task=task)
    cpu = run_trial(spec, request_all, replace(workspace, checkpoints=str(tmp_path / "cpu")))
    gpu = run_trial(spec, request_all, on_gpu)
    np.testing.assert_allclose(
        [p.loss for p in gpu.curve], [p.loss for p in cpu.curve], rtol=0.01, atol=1e-5
    )
    for one, other in zip(gpu.scores, cpu.scores, strict=True):
        assert replace(one, value=other.value) == other
        assert one.value == pytest.approx(other.value, abs=0.03)  # a few words on the edge
    for one, other in zip(gpu.similarity, cpu.similarity, strict=True):
        assert one.value == pytest.approx(other.value, abs=0.01)
    assert gpu.facts.device == torch.cuda.get_device_name()
    assert gpu.facts.device_memory > gpu.facts.peak_memory > 0


@pytest.mark.parametrize("task", TASK_NAMES)
def test_equal_specs_give_equal_numbers_on_one_gpu(spec, request_all, on_gpu, tmp_path, task):
    """A second run, after other work in the process, with dropout and all."""
    spec = replace(spec, task=task)
    first = run_trial(spec, request_all, on_gpu)
    run_trial(replace(spec, seed=2, ablation="reinit:1-2"), Request(), on_gpu)
    elsewhere = replace(on_gpu, checkpoints=str(tmp_path / "elsewhere"))
    assert measured(run_trial(spec, request_all, elsewhere)) == measured(first)


def test_a_resumed_trial_ends_with_the_same_numbers_on_one_gpu(spec, request_all, on_gpu, tmp_path):
    """Killed in the middle of an epoch, a trial goes on as if nothing had been."""

    def save(self, training):
        self.save(training)
        self.wait()
        if training.progress.step >= 13:  # 8 steps an epoch
            raise KeyboardInterrupt

    calm = run_trial(spec, request_all, replace(on_gpu, checkpoints=str(tmp_path / "calm")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoints, "save_if_due", save)
        with pytest.raises(KeyboardInterrupt):
            run_trial(spec, request_all, on_gpu)
    resumed = run_trial(spec, request_all, on_gpu)
    assert resumed.facts.resumed_epochs == 1
    assert measured(resumed) == measured(calm)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize("task", TASK_NAMES)
def test_half_precision_learns_as_well(spec, on_gpu, tmp_path, task, precision):
    """Dev scores are those of single precision but for a few words."""
    single = run_trial(replace(spec, task=task), Request(), on_gpu)
    elsewhere = replace(on_gpu, checkpoints=str(tmp_path / "half"))
    half = run_trial(replace(spec, task=task, precision=precision), Request(), elsewhere)
    assert half.curve[-1].dev_value > single.curve[-1].dev_value - 0.05
    assert half.curve[-1].dev_value > 0.8


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_sees_the_same_similarity(probe, request_all, on_gpu, precision):
    """Of the encoder as it is: what training makes of rounding is not asked here."""
    looked_at = replace(request_all, targets=())
    single = run_trial(probe, looked_at, on_gpu)
    half = run_trial(replace(probe, precision=precision), looked_at, on_gpu)
    for one, other in zip(half.similarity, single.similarity, strict=True):
        assert one.value == pytest.approx(other.value, abs=0.02)


@pytest.mark.parametrize("task", TASK_NAMES)
def test_no_step_waits_for_the_gpu_but_for_one_look_at_the_mask(spec, on_gpu, task, recwarn):
    """The host runs ahead; transformers asks once a forward pass whether there is padding."""
    training = training_of(replace(spec, task=task), on_gpu)
    training.progress.loss_sum = training.progress.loss_sum.to(training.model.device)
    training._step(np.arange(8), 1e-3)  # kernels are loaded, memory is pinned
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("warn")
    try:
        for _ in range(3):
            training._step(np.arange(8), 1e-3)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    waited = [str(warning.message) for warning in recwarn if "synchroniz" in str(warning.message)]
    assert len(waited) <= 3, waited


def test_a_trial_is_held_to_its_share(spec, on_gpu):
    """What lies beyond it fails here, as a shortage that the ladder knows."""
    share = 0.1
    run_trial(spec, Request(), replace(on_gpu, gpus=share, memory_fraction=share))
    total = torch.cuda.get_device_properties(0).total_memory
    torch.empty(int(0.05 * total), dtype=torch.uint8, device="cuda")
    with pytest.raises(torch.OutOfMemoryError) as caught:
        torch.empty(int(0.11 * total), dtype=torch.uint8, device="cuda")
    assert is_shortage(caught.value)


@pytest.mark.parametrize("task", TASK_NAMES)
def test_real_shortage_is_met_with_smaller_parts(spec, request_all, on_gpu, tmp_path, task):
    """A card with too little memory for a batch: smaller parts, the same numbers to rounding."""
    spec = replace(without_dropout(spec, tmp_path / "plain"), task=task)
    calm = run_trial(spec, request_all, replace(on_gpu, checkpoints=str(tmp_path / "calm")))
    ladder = []

    def short_of_memory(self, *args, **kwargs):
        """Leave so little free that a batch does not fit and half of one does."""
        n = args[0].numel()
        ladder.append(n)
        filled = None
        if n > 40:
            free = torch.cuda.mem_get_info()[0]
            filled = torch.empty(free - 2**26, dtype=torch.uint8, device="cuda")
            torch.empty(2**30, dtype=torch.uint8, device="cuda")  # the real error of a full card
        del filled
        return original(self, *args, **kwargs)

    original = Encoder.forward
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Encoder, "forward", short_of_memory)
        short = run_trial(spec, request_all, on_gpu)
    assert short.facts.micro_batch < 8
    assert max(ladder) > 40
    np.testing.assert_allclose(
        [p.loss for p in short.curve], [p.loss for p in calm.curve], rtol=0.01
    )
    for one, other in zip(short.scores, calm.scores, strict=True):
        assert one.value == pytest.approx(other.value, abs=0.03)


def test_parts_have_the_gradients_of_the_whole_but_for_fused_attention(spec, on_gpu, tmp_path):
    """Dropout of embeddings, blocks and head is the whole's; attention's alone is the kernel's."""
    spec = without_dropout(spec, tmp_path / "plain")
    folder = tmp_path / "plain" / "config.json"
    config = folder.read_text(encoding="utf-8")
    folder.write_text(
        config.replace('"hidden_dropout_prob": 0.0', '"hidden_dropout_prob": 0.1'),
        encoding="utf-8",
    )
    spec = replace(spec, encoder=encoder_ref(str(tmp_path / "plain")))
    found = []
    for size in (0, 1, 4):
        training = training_of(spec, replace(on_gpu, micro_batch=size))
        training.model.encoder.train()
        training.model.head.train()
        losses, _ = training._gradients(np.arange(11))
        named = {name: p.grad for name, p in training.model.trainable() if p.grad is not None}
        found.append((named, sum(losses).item()))
    (whole, whole_loss), *parts = found
    for part, loss in parts:
        assert part.keys() == whole.keys()
        assert loss == pytest.approx(whole_loss, rel=1e-4)
        for name, gradient in whole.items():
            torch.testing.assert_close(part[name], gradient, rtol=1e-2, atol=1e-5, msg=name)


@pytest.mark.parametrize("task", TASK_NAMES)
def test_a_rehearsal_foresees_the_peak(spec, request_all, on_gpu, task):
    """What is measured before the first trial is what the trial then takes, or a little more."""
    spec = replace(spec, task=task)
    foreseen = rehearse(spec, request_all, on_gpu)
    taken = run_trial(spec, request_all, on_gpu).facts.peak_memory
    assert 0.9 * taken <= foreseen <= 2 * taken
    assert peak(torch.device("cuda")) > 0
