"""Our attachment scores against the official scorer of the CoNLL 2018 shared task (udtools)."""

import io
import random
from pathlib import Path

import numpy as np
import pytest
from udtools.udeval import evaluate, load_conllu

from trainables.data.conllu import read_conllu
from trainables.data.subwords import Corpus
from trainables.decoding.mst import best_tree
from trainables.tasks.parsing import Parsing, coarse

HEAD, DEPREL = 6, 7


def with_trees(source: str, heads, relations) -> str:
    """A CoNLL-U text with other trees; ranges, empty nodes and comments stay as they are."""
    trees = iter(zip(heads, relations, strict=True))
    lines = []
    for line in source.split("\n"):
        columns = line.split("\t")
        if columns[0].isdigit():
            head, columns[DEPREL] = next(trees)
            columns[HEAD] = str(head)
        lines.append("\t".join(columns))
    assert next(trees, None) is None
    return "\n".join(lines)


def judged(gold: str, system: str):
    """LAS and UAS by the official scorer, from two files' text."""
    loaded = [load_conllu(io.StringIO(text), "file", {}) for text in (gold, system)]
    found = evaluate(*loaded)
    return {name.lower(): (found[name].f1, found[name].gold_total) for name in ("LAS", "UAS")}


def perturbed(sentences, labels, seed):
    """A tree a sentence that has most of the gold arcs, and labels likewise."""
    rng = np.random.default_rng(seed)
    rows = []
    for sentence in sentences:
        n = len(sentence.words)
        scores = rng.normal(size=(n, n + 1))
        scores[np.arange(n), sentence.heads] += 2.5
        keep = rng.random(n) < 0.7
        drawn = rng.integers(len(labels), size=n)
        for head, relation, kept, other in zip(
            best_tree(scores), sentence.deprels, keep, drawn, strict=True
        ):
            known = kept and relation in labels
            rows.append((int(head), labels.index(relation) if known else int(other)))
    return np.array(rows)


def compare(path: Path, seed: int):
    """Score one perturbed file twice: by the task, and by the official scorer as written files."""
    sentences = read_conllu(str(path))
    starts = np.cumsum([0, *(len(s.words) for s in sentences)])
    corpus = Corpus(
        key="key",
        location=str(path),
        pieces=np.arange(starts[-1]),
        word_start=np.arange(starts[-1] + 1),
        label_piece=np.arange(starts[-1]),
        sent_ids=tuple(s.sent_id for s in sentences),
        orig_ids=tuple(s.orig_id for s in sentences),
        texts=tuple(s.text for s in sentences),
        tags=(),
        n_unknown=0,
        heads=np.array([head for s in sentences for head in s.heads]),
        deprels=tuple(name for s in sentences for name in s.deprels),
        upos=tuple(tag for s in sentences for tag in s.upos),
        lines=tuple(s.line for s in sentences),
        sentence_start=starts,
    )
    # A third of the relations was never seen in training: subtypes of seen ones among them.
    seen = sorted(set(corpus.deprels))
    labels = tuple(name for i, name in enumerate(seen) if i % 3 or name == "root")
    predicted = perturbed(sentences, labels, seed)
    ours = Parsing().score(corpus, Parsing().gold(corpus, labels), predicted, labels)
    gold = path.read_text(encoding="utf-8")
    system = with_trees(gold, predicted[:, 0], [labels[i] for i in predicted[:, 1]])
    return ours, judged(gold, system)


RELATIONS = ["nsubj", "nsubj:pass", "obj", "obl", "obl:tmod", "root", "punct", "acl:relcl"]


def made_up(n: int, seed: int) -> str:
    """Sentences of up to 12 words with random trees, ranges, empty nodes and spaces in words."""
    rng = random.Random(seed)
    blocks = []
    for number in range(n):
        n_words = rng.randint(1, 12)
        heads = best_tree(np.random.default_rng([seed, number]).normal(size=(n_words, n_words + 1)))
        rows = [f"# sent_id = s{number}"]
        for word, head in enumerate(heads, start=1):
            if word + 1 <= n_words and word % 5 == 2:
                rows.append(f"{word}-{word + 1}\tab{word}" + "\t_" * 8)
            form = rng.choice(["a", "bcd", "10 000", "é"])
            tag = rng.choice(["NOUN", "PUNCT", "SYM"])
            relation = "root" if head == 0 else rng.choice(RELATIONS)
            rows.append(f"{word}\t{form}\t_\t{tag}\t_\t_\t{head}\t{relation}\t_\t_")
            if word % 7 == 3:
                rows.append(f"{word}.1\telided\t_\tVERB" + "\t_" * 6)
        blocks.append("\n".join(rows) + "\n\n")
    return "".join(blocks)


@pytest.mark.parametrize("seed", range(5))
def test_the_official_scorer_agrees_on_made_up_trees(tmp_path, seed):
    """Over ranges, empty nodes and spaces in words: LAS and UAS to the last digit."""
    path = tmp_path / "made-up.conllu"
    path.write_text(made_up(60, seed), encoding="utf-8")
    ours, theirs = compare(path, seed)
    assert {name: ours[name] for name in theirs} == theirs
    assert 0.2 < ours["las"][0] < ours["uas"][0] < 0.98
    assert ours["las_full"][0] < ours["las"][0]


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("treebank", ["English", "Swedish", "French", "Icelandic", "Japanese"])
def test_the_official_scorer_agrees_on_real_treebanks(shared, treebank):
    """A thousand real sentences with perturbed trees: LAS and UAS to the last digit."""
    paths = sorted((shared / "data" / "ud" / f"UD_{treebank}-PUD").glob("*-ud-test.conllu"))
    if not paths:
        pytest.skip(f"no {treebank}-PUD in the shared folder")
    ours, theirs = compare(paths[0], seed=1)
    assert {name: ours[name] for name in theirs} == theirs
    assert ours["las"][1] > 10_000
    assert 0.2 < ours["las"][0] < ours["uas"][0] < 0.98


def test_the_writer_changes_trees_only():
    """Gold trees written back give the file back."""
    source = made_up(20, 9)
    rows = [line.split("\t") for line in source.split("\n") if line.split("\t")[0].isdigit()]
    assert with_trees(source, [row[HEAD] for row in rows], [row[DEPREL] for row in rows]) == source
    assert coarse("obl:tmod") == "obl"
