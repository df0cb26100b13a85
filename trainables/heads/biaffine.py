"""Which word hangs on which, and by what relation: the biaffine head of Dozat and Manning (2017).

Two published shapes (PROTOCOLS 1.1 and 1.6) in one set of parts: four projections of the states, a
bilinear form over (dependent, head) for arcs, one form a relation for labels.

    words, roots --gather--> states --MLPs--> [s m i], [s m+1 j] --bilinear--> arcs [s m m+1]

The root is the sentence's [CLS] state and always a legal head with a score of its own. Only states
of words and roots are ever paired, never pieces. The published code of the first paper spreads the
softmax over all pieces and padding, that of the second masks the root out; here a softmax is over
the legal heads of a word: the root of its sentence and all words of it but the word itself.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from trainables.draws import sentence_dropout
from trainables.seeding import generator
from trainables.transfer import put

LABEL_SCORES = 2**21
"""Most scores of labelled arcs at once while predicting, unless one sentence has more: 8 MB, and
eight times as much of what is between; on a CPU larger parts are no faster."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One published parser.

    Attributes:
        arc: Width of the projections behind arcs.
        label: Width of the projections behind labels.
        activation: After each projection.
        dropout: Share of features dropped, the same ones in all words of a sentence.
        arc_biases: Whether the form of arcs sees a constant 1 beside the (dependent, head).
        label_biases: The same for the forms of labels.
        has_offset: Whether forms add a constant of their own.
        start: How matrices begin; vectors begin at zero.
    """

    arc: int
    label: int
    activation: Callable[[], nn.Module]
    dropout: float
    arc_biases: tuple[bool, bool]
    label_biases: tuple[bool, bool]
    has_offset: bool
    start: Literal["orthogonal", "xavier"]


SHAPES: Mapping[str, Shape] = {
    "first-align": Shape(
        arc=500,
        label=200,
        activation=lambda: nn.LeakyReLU(0.1),
        dropout=0.1,
        arc_biases=(True, False),
        label_biases=(True, True),
        has_offset=False,
        start="orthogonal",
    ),
    "beto": Shape(
        arc=512,
        label=128,
        activation=nn.ELU,
        dropout=0.33,
        arc_biases=(True, True),
        label_biases=(False, False),
        has_offset=True,
        start="xavier",
    ),
}


class Projection(nn.Module):
    """Linear layer, activation, and dropout that is shared by the words of a sentence."""

    def __init__(self, n_in: int, n_out: int, shape: Shape) -> None:
        """Make the parts; `BiaffineParser` fills the weights."""
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        self.activation = shape.activation()
        self.dropout = shape.dropout

    def forward(
        self, states: Float[Tensor, "r d"], sentence: Int[Tensor, " r"], n_sentences: int
    ) -> Float[Tensor, "r h"]:
        """Project states; `sentence` says which of them share their dropped features."""
        found: Tensor = self.activation(self.linear(states))
        if not self.training:
            return found
        kept = found.new_ones(n_sentences, found.shape[1])
        return found * sentence_dropout(kept, self.dropout)[sentence]


class Bilinear(nn.Module):
    """`o` bilinear forms of a dependent and a head, each perhaps with a constant 1 beside it."""

    def __init__(self, n_out: int, width: int, biases: tuple[bool, bool], offset: bool) -> None:
        """Make the parts; `BiaffineParser` fills the weights."""
        super().__init__()
        self.biases = biases
        self.weight = nn.Parameter(torch.empty(n_out, width + biases[0], width + biases[1]))
        self.offset = nn.Parameter(torch.empty(n_out)) if offset else None

    def single(
        self, dependents: Float[Tensor, "w i"], heads: Float[Tensor, "w i"]
    ) -> Float[Tensor, "w o"]:
        """Score one head for each dependent."""
        left, right = self._with_ones(dependents, heads)
        return self._moved(torch.einsum("woj,wj->wo", self._half(left), right))

    def pairs(
        self, dependents: Float[Tensor, "s m i"], heads: Float[Tensor, "s k i"]
    ) -> Float[Tensor, "s m k o"]:
        """Score every head of a sentence for each of its dependents."""
        left, right = self._with_ones(dependents, heads)
        return self._moved(torch.einsum("smoj,skj->smko", self._half(left), right))

    def _half(self, left: Float[Tensor, "*rows i"]) -> Float[Tensor, "*rows o j"]:
        n_out, n_in, n_right = self.weight.shape
        found = left @ self.weight.transpose(0, 1).reshape(n_in, n_out * n_right)
        return found.view(*left.shape[:-1], n_out, n_right)

    def _with_ones(self, *sides: Tensor) -> Iterator[Tensor]:
        for side, biased in zip(sides, self.biases, strict=True):
            yield nn.functional.pad(side, (0, 1), value=1.0) if biased else side

    def _moved(self, scores: Float[Tensor, "*rows o"]) -> Float[Tensor, "*rows o"]:
        scores = scores.float()
        return scores if self.offset is None else scores + self.offset


@dataclass(frozen=True, slots=True)
class Arcs:
    """The words of some sentences, paired with all their heads; m = most words, k = m + 1.

    Attributes:
        scores: Of each head for each word; -inf where it is not legal. Head 0 is the root.
        dependents: What forms of labels see of each word.
        heads: What they see of each head.
        sentence: Sentence of each word.
        position: Index of each word in its sentence.
    """

    scores: Float[Tensor, "s m k"]
    dependents: Float[Tensor, "s m j"]
    heads: Float[Tensor, "s k j"]
    sentence: Int[Tensor, " w"]
    position: Int[Tensor, " w"]


class BiaffineParser(nn.Module):
    """States of words and sentences in; scores of arcs and of their labels out."""

    class_of: Int[Tensor, " labels"]
    first: Int[Tensor, " classes"]

    def __init__(
        self,
        hidden_size: int,
        classes: Int[np.ndarray, " labels"],
        *,
        shape: str,
        dropout: float,
        seed: int,
    ) -> None:
        """Initialise each weight from its own stream of the seed (D-03).

        Args:
            hidden_size: Width of the states.
            classes: Class of each label, from 0 without a gap. Labels of one class are not told
                apart; the first of them is predicted.
            shape: Name in `SHAPES`.
            dropout: Probability in [0, 1), before the projections.
            seed: Of the trial.
        """
        super().__init__()
        parts = SHAPES[shape]
        self.dropout = nn.Dropout(dropout)
        self.arc_dependent = Projection(hidden_size, parts.arc, parts)
        self.arc_head = Projection(hidden_size, parts.arc, parts)
        self.label_dependent = Projection(hidden_size, parts.label, parts)
        self.label_head = Projection(hidden_size, parts.label, parts)
        self.arc = Bilinear(1, parts.arc, parts.arc_biases, parts.has_offset)
        self.label = Bilinear(
            int(classes.max()) + 1, parts.label, parts.label_biases, parts.has_offset
        )
        self.register_buffer("class_of", torch.from_numpy(classes), persistent=False)
        self.register_buffer(
            "first", torch.from_numpy(np.unique(classes, return_index=True)[1]), persistent=False
        )
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                _fill(parameter, parts.start, generator(seed, "head", name))

    def forward(
        self,
        words: Float[Tensor, "w d"],
        roots: Float[Tensor, "s d"],
        n_words: Int[np.ndarray, " s"],
    ) -> Arcs:
        """Pair every word with every head of its sentence.

        Args:
            words: States of all words, in the order of the sentences.
            roots: State of each sentence's root.
            n_words: Words of each sentence.
        """
        n, m, device = len(n_words), int(n_words.max()), words.device
        of_word = np.repeat(np.arange(n), n_words)
        start = np.cumsum(n_words) - n_words
        sentence = put(of_word, device)
        position = put(np.arange(len(of_word)) - start[of_word], device)
        words = self.dropout(words)
        roots = sentence_dropout(roots, self.dropout.p) if self.training else roots
        at_root = torch.arange(n, device=device)
        states, all_of = torch.cat([roots, words]), torch.cat([at_root, sentence])
        place = torch.cat([torch.zeros_like(at_root), position + 1])

        def dependents(projection: Projection) -> Tensor:
            return _pad(projection(words, sentence, n), sentence, position, (n, m))

        def heads(projection: Projection) -> Tensor:
            return _pad(projection(states, all_of, n), all_of, place, (n, m + 1))

        scores = self.arc.pairs(dependents(self.arc_dependent), heads(self.arc_head))[..., 0]
        legal = put(_legal(n_words, m), device)
        return Arcs(
            scores=scores.masked_fill(~legal, -torch.inf),
            dependents=dependents(self.label_dependent),
            heads=heads(self.label_head),
            sentence=sentence,
            position=position,
        )

    def label_loss(
        self, arcs: Arcs, heads: Int[Tensor, " w"], labels: Int[Tensor, " w"]
    ) -> Float[Tensor, ""]:
        """Cross-entropy of the labels of given arcs, summed; label -1 adds nothing."""
        scores = self.label.single(
            arcs.dependents[arcs.sentence, arcs.position], arcs.heads[arcs.sentence, heads]
        )
        wanted = torch.where(labels < 0, -1, self.class_of[labels])
        return cross_entropy(scores, wanted, ignore_index=-1, reduction="sum")

    def best_labels(self, arcs: Arcs) -> tuple[Float[Tensor, "s m k"], Int[Tensor, "s m k"]]:
        """The best label of every arc, a few sentences at a time: its log-probability, its index.

        The probability is that of the label given the arc; the first of equal ones is taken.
        """
        n, m, k = arcs.scores.shape
        size = max(1, LABEL_SCORES // (m * k * len(self.first)))
        chances, names = [], []
        for at in range(0, n, size):
            scores = self.label.pairs(arcs.dependents[at : at + size], arcs.heads[at : at + size])
            best, name = scores.max(dim=-1)
            chances.append(best - scores.logsumexp(dim=-1))
            names.append(self.first[name])
        return torch.cat(chances), torch.cat(names)


def _fill(parameter: Tensor, start: str, stream: torch.Generator) -> None:
    """Begin one parameter; forms begin at zero beside orthogonal projections."""
    if parameter.ndim == 1 or (parameter.ndim == 3 and start == "orthogonal"):  # noqa: PLR2004 - [out, i, j]: a form
        parameter.zero_()
    elif start == "orthogonal":
        nn.init.orthogonal_(parameter, generator=stream)
    else:
        for matrix in parameter if parameter.ndim == 3 else (parameter,):  # noqa: PLR2004 - as above
            nn.init.xavier_uniform_(matrix, generator=stream)


def _pad(
    rows: Float[Tensor, "r h"],
    sentence: Int[Tensor, " r"],
    place: Int[Tensor, " r"],
    size: tuple[int, int],
) -> Float[Tensor, "s m h"]:
    """Put each row to its place in its sentence, zeros elsewhere."""
    return rows.new_zeros(*size, rows.shape[1]).index_put((sentence, place), rows)


def _legal(n_words: Int[np.ndarray, " s"], m: int) -> Bool[np.ndarray, "s m k"]:
    """Heads that a word may have: the root and the words of its sentence, but not itself."""
    heads = np.arange(m + 1)
    itself = heads == np.arange(m)[:, None] + 1
    legal: Bool[np.ndarray, "s m k"] = (heads <= n_words[:, None, None]) & ~itself
    return legal
