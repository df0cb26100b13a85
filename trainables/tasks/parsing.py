"""Dependency parsing: a head and a relation for every word, LAS over all words of the file."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, cast

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from trainables.data.sentence import DataError
from trainables.data.subwords import Corpus
from trainables.data.trees import check_corpus
from trainables.decoding.mst import best_trees
from trainables.heads.biaffine import BiaffineParser
from trainables.metrics.attachment import count_attached
from trainables.metrics.by_sentence import BySentence, words_by_sentence
from trainables.spec import TrialOptions
from trainables.tasks.base import Readings

UNLABELLED = "_"
"""What CoNLL-U writes for no relation; never predicted, so always wrong in a denominator."""

NO_WORDS = ("PUNCT", "SYM")
"""UPOS of what the second paper does not score (D-05, family W)."""


class Parsing:
    """Dependency trees (a `trainables.tasks.base.Task`); a row is (head, label).

    Head 0 is the root, head h > 0 the h-th word of the sentence.
    """

    name: ClassVar[str] = "parsing"
    metric: ClassVar[str] = "las"
    level: ClassVar[Literal["word"]] = "word"

    def inventory(self, train: Corpus) -> tuple[str, ...]:
        """The relations of the training file with their subtypes, sorted."""
        check_corpus(train)
        labels = tuple(sorted(set(train.deprels) - {UNLABELLED, ""}))
        if not labels:
            raise DataError(
                train.location, None, "no word has a relation", "Train on a treebank with DEPREL."
            )
        return labels

    def gold(self, corpus: Corpus, labels: tuple[str, ...]) -> Int[np.ndarray, "W 2"]:
        """Head and label of each word; label -1 for a relation that training never saw.

        Raises:
            DataError: a sentence has no heads, or a cycle.
        """
        check_corpus(corpus)
        index = {label: i for i, label in enumerate(labels)}
        found = (index.get(relation, -1) for relation in _relations(corpus))
        return np.stack([corpus.heads, np.fromiter(found, np.int64, corpus.n_words)], axis=1)

    def head(
        self, hidden_size: int, labels: tuple[str, ...], options: TrialOptions, seed: int
    ) -> nn.Module:
        """A biaffine parser of the shape that the options name.

        With `deprels = "coarse"` subtypes of a relation are one class of its label scorer.
        """
        told_apart = [coarse(label) for label in labels] if options.deprels == "coarse" else labels
        classes = {name: i for i, name in enumerate(dict.fromkeys(told_apart))}
        return BiaffineParser(
            hidden_size,
            np.array([classes[name] for name in told_apart]),
            shape=options.parser,
            dropout=options.head_dropout,
            seed=seed,
        )

    def loss(
        self, head: nn.Module, readings: Readings, gold: Int[Tensor, "w 2"]
    ) -> Float[Tensor, ""]:
        """Cross-entropy of heads, and of labels at gold heads, both summed over words.

        The loop divides the sum by the number of words with a head; words without one, whose head
        was cut away, teach nothing. A word without a label teaches its head alone, and counts.
        """
        parser = cast("BiaffineParser", head)
        heads, labels = gold.unbind(dim=1)
        arcs = parser(readings.words, readings.sentences, readings.n_words)
        scores = arcs.scores[arcs.sentence, arcs.position]
        taught = torch.where(heads < 0, -1, labels)
        return cross_entropy(scores, heads, ignore_index=-1, reduction="sum") + parser.label_loss(
            arcs, heads.clamp(min=0), taught
        )

    def predict(self, head: nn.Module, readings: Readings) -> Int[Tensor, "w 2"]:
        """The single-root tree of the highest probability, each arc with its best label.

        The published code multiplies the probability of an arc by that of the label of the
        opposite arc, and adds up probabilities; here the log-probabilities of one arc are added.
        """
        parser = cast("BiaffineParser", head)
        arcs = parser(readings.words, readings.sentences, readings.n_words)
        chances, names = parser.best_labels(arcs)
        scores = (arcs.scores.log_softmax(dim=-1) + chances).detach().cpu().numpy()
        heads = torch.from_numpy(best_trees(scores, readings.n_words)).to(names.device)
        return torch.stack([heads, names[arcs.sentence, arcs.position, heads]], dim=1)

    def score(
        self,
        corpus: Corpus,
        gold: Int[np.ndarray, "W 2"],
        predicted: Int[np.ndarray, "W 2"],
        labels: tuple[str, ...],
    ) -> Mapping[str, tuple[float, int]]:
        """LAS and UAS over every word of the file, and over those of the second paper (D-05).

        `las` compares relations without subtypes, as the CoNLL 2018 scorer does, `las_full` whole
        ones; `*_no_punct` leave out the words that are PUNCT or SYM in the gold file, and are
        left out themselves where there are no others.
        """
        heads = gold[:, 0], predicted[:, 0]
        relations = _relations(corpus)
        by_name = _codes(relations, labels, predicted[:, 1])
        by_coarse = _codes([*map(coarse, relations)], [*map(coarse, labels)], predicted[:, 1])
        counts = count_attached(heads[0], by_coarse[0], heads[1], by_coarse[1])
        full = count_attached(heads[0], by_name[0], heads[1], by_name[1])
        words = count_attached(heads[0], by_coarse[0], heads[1], by_coarse[1], _is_word(corpus))
        scores = {
            "las": (counts.las, counts.n),
            "uas": (counts.uas, counts.n),
            "las_full": (full.las, full.n),
        }
        if words.n:
            scores["las_no_punct"] = (words.las, words.n)
            scores["uas_no_punct"] = (words.uas, words.n)
        return scores

    def by_sentence(
        self,
        corpus: Corpus,
        gold: Int[np.ndarray, "W 2"],
        predicted: Int[np.ndarray, "W 2"],
        labels: tuple[str, ...],
        metric: str,
    ) -> BySentence | None:
        """Words of each sentence that a metric of `score` counts, and those got wrong."""
        name, _, left_out = metric.partition("_no_punct")
        if left_out or name not in {"las", "uas", "las_full"}:
            return None
        right = gold[:, 0] == predicted[:, 0]
        if name != "uas":
            relations, known = _relations(corpus), list(labels)
            if name == "las":
                relations, known = [*map(coarse, relations)], [*map(coarse, labels)]
            right &= np.equal(*_codes(relations, known, predicted[:, 1]))
        counted = _is_word(corpus) if metric != name else None
        return words_by_sentence(right, corpus.sentence_start, counted)


def coarse(relation: str) -> str:
    """A relation without its subtype: `nsubj` of `nsubj:pass`."""
    return relation.partition(":")[0]


def _is_word(corpus: Corpus) -> Bool[np.ndarray, " W"]:
    """Words that are neither PUNCT nor SYM in the gold file."""
    return ~np.isin(np.array(corpus.upos, dtype=str), NO_WORDS)


def _relations(corpus: Corpus) -> Sequence[str]:
    """One relation a word, also of a file that has heads alone."""
    return corpus.deprels or [UNLABELLED] * corpus.n_words


def _codes(
    gold: Sequence[str], labels: Sequence[str], predicted: Int[np.ndarray, " W"]
) -> tuple[Int[np.ndarray, " W"], Int[np.ndarray, " W"]]:
    """Gold and predicted relations as numbers, equal where their names are equal."""
    code = {name: i for i, name in enumerate(dict.fromkeys([*labels, *gold]))}
    of_label = np.array([code[name] for name in labels])
    return np.fromiter((code[name] for name in gold), np.int64, len(gold)), of_label[predicted]
