import random
from dataclasses import replace

import numpy as np
import pytest

from trainables.data.fingerprints import content
from trainables.data.sentence import DataError
from trainables.data.texts import TextCorpus
from trainables.data.tsv import read_mldoc
from trainables.spec import DataRef, HyperParameters, Request, TrialOptions, TrialSpec
from trainables.tasks.classification import Topic
from trainables.trial import run_trial, trial_epochs

NOUNS = ["cat", "dog", "tree", "sun", "bird"]
VERBS = ["see", "eat", "like"]


def pinned(path, layout, split="train", language="en", **more):
    return DataRef(
        code=f"{layout}-{language}",
        language=language,
        split=split,
        location=str(path),
        layout=layout,
        fingerprint=content(path, layout),
        **more,
    )


def xnli_rows(n, seed, *, quote=""):
    """A hypothesis repeats the premise (entailment), says not (contradiction) or is about a z."""
    rng = random.Random(seed)
    rows = []
    for _ in range(n):
        premise = f"{quote}{rng.choice(NOUNS)} {rng.choice(VERBS)}"
        label, hypothesis = rng.choice(
            [("entailment", "yes ."), ("contradictory", "no no"), ("neutral", "x z")]
        )
        rows.append(f"{premise}\t{hypothesis}\t{label}")
    return rows


def pawsx_rows(n, seed):
    rng = random.Random(seed)
    rows = []
    for _ in range(n):
        is_same = rng.random() < 0.5
        words = rng.sample(NOUNS, 3)
        second = "same same" if is_same else "other"
        rows.append(f'"{words[0]} ""{words[1]}"""\t{second}\t{int(is_same)}')
    return rows


def sib_rows(n, seed):
    rng = random.Random(seed)
    of = {"health": "ill well", "sports": "ball run", "travel": "go far"}
    rows = ["index_id\tcategory\ttext"]
    for i in range(n):
        topic = rng.choice(sorted(of))
        rows.append(f"{i}\t{topic}\t{rng.choice(NOUNS)} {of[topic]} {rng.choice(VERBS)}")
    return rows


TOYS = {
    "xnli": ("xnli", xnli_rows),
    "pawsx": ("pawsx", pawsx_rows),
    "topic": ("sib200", sib_rows),
}


def write(path, rows):
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def trial(encoder, tmp_path):
    """A trial of one text task on made-up files, and its test set."""

    def make(task, **options):
        layout, rows = TOYS[task]
        files = {
            split: write(tmp_path / f"{task}-{split}.tsv", rows(n, seed))
            for seed, (split, n) in enumerate({"train": 96, "dev": 24, "test": 40}.items())
        }
        refs = {split: pinned(path, layout, split) for split, path in files.items()}
        spec = TrialSpec(
            task=task,
            encoder=encoder,
            source="en",
            train=refs["train"],
            dev=refs["dev"],
            ablation="ref",
            hyper=HyperParameters(learning_rate=5e-3, batch_size=8, epochs=4),
            seed=1,
            options=TrialOptions(max_length=32, **options),
        )
        return spec, refs["test"]

    return make


@pytest.mark.parametrize("task", TOYS)
def test_a_text_task_is_learnt_and_scored_on_every_example(trial, workspace, task):
    """Made-up classes that one word tells are learnt; every example is in the denominator."""
    spec, test = trial(task)
    result = run_trial(spec, Request(targets=(test,)), workspace)
    found = {score.metric: score for score in result.scores if score.split == "test"}
    assert set(found) == {"accuracy", "f1_macro"}
    assert {score.n for score in found.values()} == {40}
    assert found["accuracy"].value > 0.8  # chance: a third or a half
    assert found["f1_macro"].value > 0.8


def test_a_cut_example_is_scored_like_any_other(trial, workspace):
    """Windows of 8 pieces lose most of each text and not one example."""
    spec, test = trial("topic", head_dropout=0.1)
    spec = replace(spec, options=replace(spec.options, max_length=8, overlap=0))
    spec = replace(spec, hyper=replace(spec.hyper, epochs=1))
    result = run_trial(spec, Request(targets=(test,)), workspace)
    assert {score.n for score in result.scores if score.split == "test"} == {40}


def test_similarity_of_a_text_trial_compares_words(trial, workspace, request_all):
    """A model of texts is compared on the parallel sentences of treebanks, as any other."""
    spec, test = trial("xnli")
    spec = replace(spec, hyper=replace(spec.hyper, epochs=1))
    result = run_trial(spec, replace(request_all, targets=(test,)), workspace)
    assert {(s.source, s.target) for s in result.similarity} == {("aa", "bb"), ("aa", "cc")}


def test_a_file_without_classes_is_refused(trial, workspace, tmp_path):
    """XTREME's test files of PAWS-X hide the classes: there is nothing to score."""
    spec, _ = trial("pawsx")
    spec = replace(spec, hyper=replace(spec.hyper, epochs=1))
    hidden = pinned(write(tmp_path / "hidden.tsv", ["cat\tdog", "dog\tcat"]), "pawsx", "test")
    with pytest.raises(DataError, match=r"hidden\.tsv:1: 2 of 2 examples have no class"):
        run_trial(spec, Request(targets=(hidden,)), workspace)


def test_one_class_is_no_choice(trial, workspace, tmp_path):
    """A training file in which all examples have one class is refused."""
    spec, _ = trial("xnli")
    train = pinned(write(tmp_path / "one.tsv", ["cat\tdog\tneutral"] * 9), "xnli")
    with pytest.raises(DataError, match=r"one\.tsv: the examples have 1 classes \(neutral\)"):
        run_trial(replace(spec, train=train), Request(), workspace)


def test_a_class_that_training_never_saw_counts_as_wrong(trial, workspace, tmp_path):
    """MasakhaNEWS has topics that SIB-200 has not: they stay in the denominators."""
    spec, test = trial("topic")
    rows = ["index_id\tcategory\ttext", *(f"{i}\treligion\tcat" for i in range(5))]
    other = pinned(write(tmp_path / "other.tsv", rows), "sib200", "test")
    result = run_trial(spec, Request(targets=(test, other)), workspace)
    found = [(s.value, s.n) for s in result.scores if s.data_key == other.key]
    assert found == [(0.0, 5), (0.0, 5)]


def texts_labelled(*labels):
    """A corpus of texts of one piece each."""
    n = len(labels)
    return TextCorpus(
        key="key",
        location="file",
        pieces=np.arange(n),
        types=np.zeros(n, dtype=np.int64),
        owned=np.ones(n, dtype=bool),
        start=np.arange(n + 1),
        labels=labels,
        lines=tuple(range(n)),
        n_words=n,
        n_cut=0,
    )


def test_scores_by_hand():
    """A class never learnt and one falsely predicted have F1 0 and stay in the mean."""
    corpus = texts_labelled("a", "a", "b", "x", "a")
    gold = Topic().gold(corpus, ("a", "b", "c"))
    assert gold.tolist() == [[0], [0], [1], [-1], [0]]
    predicted = np.array([[0], [0], [1], [0], [2]])
    scores = Topic().score(corpus, gold, predicted, ("a", "b", "c"))
    # a: 2 right of 3 predicted and 3 gold: 2/3; b: 1; c: predicted once, never right; x: 0.
    assert scores["f1_macro"] == (pytest.approx((2 / 3 + 1 + 0 + 0) / 4), 5)
    assert scores["accuracy"] == (pytest.approx(3 / 5), 5)


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("One. Two. Three.", ("One.", "Two.")),
        ("Only one", ("Only one", "")),
        ('He said "no." Then he left.', ('He said "no."', "Then he left.")),
        ("3.5 per cent rose! Why?", ("3.5 per cent rose!", "Why?")),
        ("一。二。三。", ("一。", "二。")),
    ],
)
def test_of_a_news_document_the_first_two_sentences_are_read(tmp_path, text, pair):
    """MLDoc is a pair of its first two sentences; a point inside a number ends none."""
    (example,) = read_mldoc(str(write(tmp_path / "english.dev", [f"CCAT\t{text}"])))
    assert ((example.text, example.pair), example.label) == (pair, "CCAT")


ALPHABETS = {"aaa": "abcde", "bbb": "vwxyz", "ccc": "klmno"}


def wili(folder, split, n, seed):
    """Texts in three made-up languages, each with letters of its own."""
    rng = random.Random(seed)
    labels = [rng.choice(sorted(ALPHABETS)) for _ in range(n)]
    words = [
        " ".join("".join(rng.choices(ALPHABETS[label], k=4)) for _ in range(3)) for label in labels
    ]
    write(folder / f"y_{split}.txt", labels)
    return pinned(write(folder / f"x_{split}.txt", words), "wili", split, language="mul")


@pytest.fixture
def langid(encoder, tmp_path):
    refs = {
        split: wili(tmp_path, split, n, seed)
        for seed, (split, n) in enumerate({"train": 90, "dev": 30, "test": 30}.items())
    }
    hyper = HyperParameters(
        learning_rate=1e-2, batch_size=32, epochs=6, warmup=0.0, schedule="plateau"
    )
    spec = TrialSpec(
        task="langid",
        encoder=encoder,
        source="mul",
        train=refs["train"],
        dev=refs["dev"],
        ablation="ref",
        hyper=hyper,
        seed=1,
    )
    return spec, Request(targets=(refs["test"],))


def test_every_layer_tells_languages_with_letters_of_their_own(langid, workspace):
    """Even the embeddings do, as letters alone tell; each layer has a row of its own."""
    spec, request = langid
    result = run_trial(spec, request, workspace)
    test = {s.metric: s for s in result.scores if s.split == "test"}
    assert set(test) == {"accuracy", *(f"accuracy@{layer}" for layer in range(5))}
    assert all(score.value > 0.9 and score.n == 30 for score in test.values())  # chance: 1/3
    layers = [test[f"accuracy@{layer}"].value for layer in range(5)]
    assert test["accuracy"].value == pytest.approx(sum(layers) / 5)
    assert (len(result.curve), result.pruned_at) == (6, None)


def test_probes_are_trained_on_the_encoder_as_it_was(langid, workspace, request_all):
    """After a trial of probes the states are those of the pretrained encoder."""
    spec, _ = langid
    asked = replace(request_all, targets=())
    after = run_trial(spec, asked, workspace).similarity
    hyper = HyperParameters(learning_rate=0.0, batch_size=1, epochs=0)
    bare = replace(spec, task="probe", train=None, dev=None, hyper=hyper)
    before = run_trial(bare, asked, workspace).similarity
    assert [s.value for s in after] == [s.value for s in before]


def test_probe_trials_are_equal_to_the_bit(langid, workspace):
    """Run twice, a trial of probes measures the same; another seed or pooling does not."""
    spec, request = langid
    first, again = (run_trial(spec, request, workspace) for _ in range(2))
    assert (first.scores, first.curve) == (again.scores, again.curve)
    whole = replace(spec, options=TrialOptions(pool_special=True))
    other = run_trial(whole, request, workspace)
    assert [p.loss for p in other.curve] != [p.loss for p in first.curve]


def test_pooled_states_are_means_over_owned_pieces(langid, workspace, encoder):
    """What a probe reads is the mean of the text's own pieces, or of all, computed one by one."""
    import torch
    from torch import nn

    from trainables.data.texts import Texts, load_texts
    from trainables.encoders.pretrained import load_encoder
    from trainables.model import Model
    from trainables.probing import read_features

    spec, _ = langid
    model = load_encoder(encoder)
    corpus = load_texts(spec.dev, encoder, workspace.cache, 64)
    for pooling, cut in (("pieces", slice(1, -1)), ("all", slice(None))):
        found = read_features(
            Model(model, nn.Identity(), torch.device("cpu"), pooling=pooling), Texts(corpus, 0)
        )
        for i in (0, 7):
            ids = torch.from_numpy(corpus.pieces[corpus.start[i] : corpus.start[i + 1]])[None]
            with torch.inference_mode():
                states = model(ids, torch.ones_like(ids), with_states=True).states
            expected = torch.stack([state[0, cut].mean(dim=0) for state in states])
            torch.testing.assert_close(found[i], expected, rtol=1e-5, atol=1e-5)


def test_a_pruned_probe_trial_says_where(langid, workspace):
    """Told to stop after its second epoch, a trial of probes reports it and no test score."""
    spec, request = langid
    epochs = trial_epochs(spec, request, workspace)
    next(epochs)
    epochs.send(True)  # noqa: FBT003 - the generator's protocol
    with pytest.raises(StopIteration) as end:
        epochs.send(False)  # noqa: FBT003 - as above
    assert end.value.value.pruned_at == 2
    assert {s.split for s in end.value.value.scores} == {"dev"}


def test_the_labels_of_languages_are_pinned_too(tmp_path):
    """Another file of labels is other data, though the texts are the same."""
    before = wili(tmp_path, "train", 9, 1)
    (tmp_path / "y_train.txt").write_text("aaa\n" * 9, encoding="utf-8")
    assert pinned(before.location, "wili").fingerprint != before.fingerprint


def test_a_rate_is_halved_after_every_epoch_without_gain():
    """Epochs 2 and 4 are no better than the best before: the rate is a quarter."""
    from trainables.training import learning_rate

    hyper = HyperParameters(
        learning_rate=8.0, batch_size=1, epochs=9, warmup=0.0, schedule="plateau"
    )
    assert [
        learning_rate(5, 9, hyper, dev) for dev in ([], [0.5], [0.5, 0.5], [0.5, 0.5, 0.6, 0.1])
    ] == [8.0, 8.0, 4.0, 2.0]


def test_the_rate_of_fine_tuning_follows_dev_too(trial, workspace):
    """Each epoch's rate is that of the one before, halved if that one brought no gain on dev."""
    spec, _ = trial("topic")
    spec = replace(spec, hyper=replace(spec.hyper, schedule="plateau", warmup=0.0, epochs=5))
    curve = run_trial(spec, Request(), workspace).curve
    rate, best = 5e-3, -1.0
    for point in curve:
        assert point.learning_rate == pytest.approx(rate)
        rate /= 1 if point.dev_value > best else 2
        best = max(best, point.dev_value)
    assert rate < 5e-3  # dev cannot rise for ever: it was halved
