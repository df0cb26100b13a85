"""Every task of the registry through one suite: a new one needs made-up files here, no more."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
import torch

from trainables import model as models
from trainables.data.reading import read
from trainables.data.treebanks import data_ref
from trainables.encoders.pretrained import encoder_ref
from trainables.encoders.tiny import tiny_encoder
from trainables.registry import LEARNERS, TASKS, load
from trainables.spec import HyperParameters, Request, TrialOptions, TrialSpec, Workspace
from trainables.training import Training
from trainables.trial import run_trial

N = {"train": 96, "dev": 20, "test": 30}
WORDS = ["cat", "dog", "tree", "sun", "bird"]


@dataclass(frozen=True)
class Example:
    """Made-up data of one task.

    Attributes:
        code: What a study would call them.
        above: A score on the test set that guessing does not reach.
        n_rows: What a sentence or example adds to the denominator of the task's metric.
        path: File below the data folder, with `{split}`; empty for the toy treebanks.
        text: Writes a file of so many sentences from a seed.
        labels: Writes `y_SPLIT.txt` beside it, for a layout that parts texts and classes.
        learning_rate: One that learns in a few epochs.
    """

    code: str
    above: float
    n_rows: Callable[[object], int]
    path: str = ""
    text: Callable[[random.Random, int], str] = field(default=lambda *_: "")
    labels: Callable[[str], str] | None = None
    learning_rate: float = 5e-3


def entities(rng, n):
    """A tree is a place; `sun bird` is a person; everything else is nothing."""
    kinds = {"tree": ["tree B-LOC"], "sun": ["sun B-PER", "bird I-PER"]}
    sentences = []
    for _ in range(n):
        words = [rng.choice(["tree", "sun", "eat", "old", "now", "here"]) for _ in range(6)]
        rows = [row for word in words for row in kinds.get(word, [f"{word} O"])]
        sentences.append("".join(f"en:{row.replace(' ', chr(9))}\n" for row in rows))
    return "\n".join(sentences)


def classes(header, row, of):
    """A table in which one word tells the class."""

    def text(rng, n):
        drawn = [rng.choice(sorted(of)) for _ in range(n)]
        rows = [row.format(label=label, hint=of[label], word=rng.choice(WORDS)) for label in drawn]
        return "".join(f"{line}\n" for line in (*header, *rows))

    return text


def letters(rng, n):
    """Texts of a language in letters of its own; the first letter tells which."""
    return "".join(f"{rng.choice(['aaa bbb', 'xyz zyx'])} {rng.choice('ab')}\n" for _ in range(n))


def words(sentence):
    return len(sentence.words)


def spans(sentence):
    """Entities of a well-formed sentence."""
    return sum(tag.startswith("B-") for tag in sentence.tags)


def one(_):
    return 1


EXAMPLES = {
    "upos": Example("aa_toy", 0.6, words),
    "ner": Example("wikiann-en", 0.6, spans, "en/{split}", entities),
    "parsing": Example("aa_toy", 0.6, words),
    "xnli": Example(
        "xnli-en",
        0.6,
        one,
        "xnli/{split}-en.tsv",
        classes(
            (),
            "{word}\t{hint}\t{label}",
            {"entailment": "yes", "neutral": "x z", "contradiction": "no no"},
        ),
    ),
    "pawsx": Example(
        "pawsx-en",
        0.7,
        one,
        "pawsx/{split}-en.tsv",
        classes((), "{word}\t{hint}\t{label}", {"0": "other", "1": "same same"}),
    ),
    "topic": Example(
        "sib200-en",
        0.6,
        one,
        "sib200/eng_Latn/{split}.tsv",
        classes(
            ("index_id\tcategory\ttext",),
            "1\t{label}\t{word} {hint}",
            {"health": "ill well", "sports": "ball run", "travel": "go far"},
        ),
    ),
    "langid": Example(
        "wili:mul/x_{split}.txt",
        0.8,
        one,
        "mul/x_{split}.txt",
        letters,
        labels=lambda text: "".join(f"{line[0]}\n" for line in text.splitlines()),
    ),
}
LEARNT_BY_STEPS = [task for task in TASKS if task not in LEARNERS]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """A tiny encoder that learns made-up data in a few epochs."""
    return encoder_ref(str(tiny_encoder(tmp_path_factory.mktemp("tasks") / "tiny", n_layers=2)))


@pytest.fixture(scope="module")
def root(tmp_path_factory, toy_root):
    """The made-up files of all tasks, beside the toy treebanks."""
    folder = tmp_path_factory.mktemp("task-data")
    (folder / "treebanks").symlink_to(toy_root, target_is_directory=True)
    (folder / "aa_toy-ud-test.conllu").write_bytes(
        (toy_root / "UD_aa_pud/aa_pud-ud-test.conllu").read_bytes()
    )
    for example in EXAMPLES.values():
        for seed, (split, n) in enumerate(N.items() if example.path else ()):
            file = folder / example.path.format(split=split)
            file.parent.mkdir(parents=True, exist_ok=True)
            text = example.text(random.Random(seed), n)
            file.write_text(text, encoding="utf-8")
            if example.labels:
                labels = file.with_name(file.name.replace("x_", "y_"))
                labels.write_text(example.labels(text), encoding="utf-8")
    return folder


@pytest.fixture
def trial(encoder, root, tmp_path, tmp_path_factory):
    """Spec, request and workspace of one task's trial."""

    def make(task, **more):
        example = EXAMPLES[task]
        spec = TrialSpec(
            task=task,
            encoder=encoder,
            source="en",
            train=data_ref(root, example.code, "train"),
            dev=data_ref(root, example.code, "dev"),
            ablation="ref",
            hyper=HyperParameters(learning_rate=example.learning_rate, batch_size=8, epochs=4),
            seed=1,
            options=TrialOptions(max_length=32, overlap=8),
        )
        workspace = Workspace(
            checkpoints=str(tmp_path / "checkpoints"),
            cache=str(tmp_path_factory.getbasetemp() / "task-cache"),
        )
        test = data_ref(root, example.code, "test")
        return replace(spec, **more), Request(targets=(test,), keep="best"), workspace

    return make


def test_every_task_has_an_example():
    """The suite covers the whole registry."""
    assert set(EXAMPLES) == set(TASKS)


@pytest.mark.parametrize("name", TASKS)
def test_it_learns_and_scores_every_row_whatever_the_batches(name, trial, monkeypatch):
    """What guessing does not reach is reached, over all that the file holds; batches are no matter.

    The counts of single sentences add up to the score. The second look, with one sentence a batch,
    uses the weights that the first trial kept.
    """
    spec, request, workspace = trial(name)
    result = run_trial(spec, request, workspace)
    task = load("task", name, TASKS)()
    assert task.name == name
    metric = next(s for s in result.scores if (s.split, s.metric) == ("test", task.metric))
    expected = sum(EXAMPLES[name].n_rows(item) for item in read(request.targets[0]))
    assert metric.n == expected
    assert metric.value > EXAMPLES[name].above
    assert {point.dev_metric for point in result.curve} == {task.metric}
    assert value_of(result.sentences) == pytest.approx(metric.value, rel=1e-12)
    assert len(result.sentences[0].items) == len(read(request.targets[0]))
    monkeypatch.setattr(models, "LEAST_PIECES", 1)
    monkeypatch.setitem(models.LOOK_BUDGET, "cpu", 1)
    again = run_trial(spec, request, workspace)
    assert [s for s in again.scores if s.split == "test"] == [
        s for s in result.scores if s.split == "test"
    ]


def value_of(sentences):
    """The score that the counts of the only file add up to."""
    (counts,) = sentences
    there, missed = sum(counts.items), sum(counts.missed)
    if counts.spurious is None:
        return (there - missed) / there
    return 2 * (there - missed) / (2 * there - missed + sum(counts.spurious))


class Begun(Exception):  # noqa: N818 - a signal, no error
    """Training was about to begin."""


@pytest.mark.parametrize("name", LEARNT_BY_STEPS)
def test_its_head_starts_alike_in_all_ablations(name, trial, monkeypatch):
    """Of one seed every ablation begins with the same head (D-03); of another seed with another."""
    heads = []

    def stop(self, *_args, **_kwargs):
        heads.append({key: value.clone() for key, value in self.model.head.state_dict().items()})
        raise Begun

    monkeypatch.setattr(Training, "epochs", stop)
    for more in ({}, {"ablation": "reinit:1"}, {"ablation": "all"}, {"seed": 2}):
        with pytest.raises(Begun):
            run_trial(*trial(name, **more))
    ref, *ablated, other = heads
    for head in ablated:
        assert list(head) == list(ref)
        assert all(torch.equal(head[key], ref[key]) for key in ref)
    assert any(not torch.equal(other[key], ref[key]) for key in ref)


def enough(name, items):
    """How many items hold just enough labels to train on: an entity, or two classes."""
    if hasattr(items[0], "label"):
        return next(i for i, item in enumerate(items) if item.label != items[0].label) + 1
    return next(i for i, item in enumerate(items) if EXAMPLES[name].n_rows(item)) + 1


@pytest.mark.parametrize("name", LEARNT_BY_STEPS)
def test_what_training_never_saw_costs_no_row(name, trial):
    """After training on next to nothing, unknown labels are misses and every row still counts."""
    spec, request, workspace = trial(name)
    spec = replace(spec, train=replace(spec.train, limit=enough(name, read(spec.train))))
    task = load("task", name, TASKS)()
    result = run_trial(spec, replace(request, keep="none"), workspace)
    scores = {s.metric: s for s in result.scores if s.split == "test"}
    assert scores[task.metric].n == sum(map(EXAMPLES[name].n_rows, read(request.targets[0])))
    assert all(0 <= s.value <= 1 for s in scores.values())
