import math

import numpy as np
import pytest
import torch

from trainables.heads import biaffine
from trainables.heads.biaffine import SHAPES, BiaffineParser, Bilinear, Projection

N_WORDS = np.array([3, 1, 2])
HIDDEN = 8


def parser(shape, *, n_labels=4, seed=1, dropout=0.0, is_filled=False):
    """A head in eval mode; `is_filled` draws all weights, so that no score is zero."""
    head = BiaffineParser(HIDDEN, np.arange(n_labels), shape=shape, dropout=dropout, seed=seed)
    if is_filled:
        rng = torch.Generator().manual_seed(7)
        with torch.no_grad():
            for parameter in head.parameters():
                parameter.normal_(std=0.2, generator=rng)
    return head.eval().requires_grad_(requires_grad=False)


def states(n_words=N_WORDS, seed=3):
    rng = torch.Generator().manual_seed(seed)
    words = torch.randn(int(n_words.sum()), HIDDEN, generator=rng)
    return words, torch.randn(len(n_words), HIDDEN, generator=rng), n_words


@pytest.mark.parametrize("shape", SHAPES)
def test_sentences_are_padded_by_words_and_only_legal_heads_have_scores(shape):
    """The root and the other words of a sentence are legal, padding and the word itself are not."""
    arcs = parser(shape, is_filled=True)(*states())
    assert arcs.scores.shape == (3, 3, 4)
    legal = arcs.scores.isfinite()
    assert legal[0].tolist() == [[1, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]]
    assert legal[1, 0].tolist() == [1, 0, 0, 0]
    assert legal[2, :2].tolist() == [[1, 0, 1, 0], [1, 1, 0, 0]]


def test_a_form_scores_dependent_times_matrix_times_head():
    """By hand: (1, 2; 1) W (3, 5) with a constant beside the dependent alone."""
    form = Bilinear(1, 2, (True, False), offset=False)
    with torch.no_grad():
        form.weight.copy_(torch.tensor([[[1.0, 0.0], [0.0, 10.0], [100.0, 1000.0]]]))
    found = form.single(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 5.0]]))
    assert found.tolist() == [[3 + 2 * 10 * 5 + 300 + 5000]]


def test_pairs_hold_what_single_arcs_score():
    """Every (dependent, head) of all pairs equals that arc scored alone, in this orientation."""
    rng = torch.Generator().manual_seed(0)
    form = Bilinear(3, 4, (True, True), offset=True)
    with torch.no_grad():
        for parameter in form.parameters():
            parameter.normal_(generator=rng)
    dependents, heads = torch.randn(2, 5, 4, generator=rng), torch.randn(2, 6, 4, generator=rng)
    pairs = form.pairs(dependents, heads)
    assert pairs.shape == (2, 5, 6, 3)
    for sentence, word, head in np.ndindex(2, 5, 6):
        alone = form.single(dependents[sentence, [word]], heads[sentence, [head]])[0]
        torch.testing.assert_close(pairs[sentence, word, head], alone)


@pytest.mark.parametrize("shape", SHAPES)
def test_scores_are_those_of_a_naive_loop(shape):
    """One arc at a time, by the formula of the paper, from the named parameters."""
    head = parser(shape, is_filled=True)
    words, roots, n_words = states()
    arcs = head(words, roots, n_words)
    p = {name: parameter.detach() for name, parameter in head.named_parameters()}
    slope = {
        "first-align": lambda x: max(x, 0.1 * x),
        "beto": lambda x: x if x > 0 else math.expm1(x),
    }

    def project(name, state):
        raw = p[f"{name}.linear.weight"] @ state + p[f"{name}.linear.bias"]
        return torch.tensor([slope[shape](float(x)) for x in raw])

    def score(kind, form, dependent, over):
        left, right = project(f"{kind}_dependent", dependent), project(f"{kind}_head", over)
        biases = SHAPES[shape].arc_biases if kind == "arc" else SHAPES[shape].label_biases
        left = torch.cat([left, torch.ones(int(biases[0]))])
        right = torch.cat([right, torch.ones(int(biases[1]))])
        moved = p[f"{kind}.offset"][form] if SHAPES[shape].has_offset else 0.0
        return float(left @ p[f"{kind}.weight"][form] @ right + moved)

    log_p, names = head.best_labels(arcs)
    first = 0
    for sentence, n in enumerate(n_words):
        nodes = [roots[sentence], *words[first : first + n]]
        for word in range(n):
            for over in (h for h in range(n + 1) if h != word + 1):
                arc = score("arc", 0, nodes[word + 1], nodes[over])
                assert float(arcs.scores[sentence, word, over]) == pytest.approx(arc, rel=1e-4)
                labels = torch.tensor(
                    [score("label", form, nodes[word + 1], nodes[over]) for form in range(4)]
                )
                best = labels.log_softmax(0).max(0)
                assert int(names[sentence, word, over]) == int(best.indices)
                torch.testing.assert_close(
                    log_p[sentence, word, over], best.values, rtol=1e-4, atol=1e-4
                )
        first += n


def test_the_first_paper_starts_orthogonal_with_forms_of_zero():
    """500 and 200 features; rows of projections are orthonormal, all else is zero."""
    head = BiaffineParser(768, np.arange(30), shape="first-align", dropout=0.0, seed=1)
    weight = head.arc_head.linear.weight.detach()
    assert weight.shape == (500, 768)
    assert head.label_dependent.linear.weight.shape == (200, 768)
    torch.testing.assert_close(weight @ weight.T, torch.eye(500), atol=1e-5, rtol=0)
    assert head.arc.weight.shape == (1, 501, 500)
    assert head.label.weight.shape == (30, 201, 201)
    zero = [head.arc.weight, head.label.weight, head.arc_head.linear.bias]
    assert not any(parameter.any() for parameter in zero)
    assert (head.arc.offset, head.label.offset) == (None, None)


def test_the_second_paper_starts_with_xavier_matrices():
    """512 and 128 features; uniform within sqrt(6 / (n_in + n_out)) of each matrix, biases zero."""
    head = BiaffineParser(768, np.arange(37), shape="beto", dropout=0.0, seed=1).requires_grad_(
        requires_grad=False
    )
    matrices = {
        "arc_head": (head.arc_head.linear.weight, 768 + 512),
        "label_head": (head.label_head.linear.weight, 768 + 128),
        "arc": (head.arc.weight, 513 + 513),
        "label": (head.label.weight, 128 + 128),
    }
    for name, (weight, fan) in matrices.items():
        bound = (6 / fan) ** 0.5
        assert 0.99 * bound < float(weight.abs().max()) <= bound, name
        assert float(weight.std()) == pytest.approx(bound / 3**0.5, rel=0.01), name
    assert head.arc.weight.shape == (1, 513, 513)
    assert head.label.weight.shape == (37, 128, 128)
    assert not any(p.any() for p in head.parameters() if p.ndim == 1)


@pytest.mark.parametrize("shape", SHAPES)
def test_each_weight_has_a_stream_of_its_own(shape):
    """More labels change the label forms alone, another seed every drawn matrix (D-03)."""
    one, more, other = (
        dict(parser(shape, n_labels=n, seed=seed).named_parameters())
        for n, seed in ((4, 1), (6, 1), (4, 2))
    )
    for name, value in one.items():
        if not name.startswith("label."):
            assert torch.equal(value, more[name]), name
        assert torch.equal(value, other[name]) == (not value.any()), name
    assert not torch.equal(one["arc_head.linear.weight"], one["arc_dependent.linear.weight"])


@pytest.mark.parametrize("shape", SHAPES)
def test_dropout_is_shared_by_the_words_of_a_sentence(shape):
    """In training, the same features vanish in all words of a sentence, others in the next one."""
    torch.manual_seed(0)
    part = Projection(HIDDEN, 200, SHAPES[shape]).train()
    same = torch.ones(6, HIDDEN)
    found = part(same, torch.tensor([0, 0, 0, 1, 1, 1]), 2)
    gone = found == 0
    assert torch.equal(gone[0], gone[1])
    assert torch.equal(gone[3], gone[5])
    assert not torch.equal(gone[0], gone[3])
    assert float(gone.float().mean()) == pytest.approx(SHAPES[shape].dropout, abs=0.1)
    kept = part.eval()(same, torch.zeros(6, dtype=torch.long), 1)
    torch.testing.assert_close(found[~gone], (kept / (1 - SHAPES[shape].dropout))[~gone])


@pytest.mark.parametrize("shape", SHAPES)
def test_a_sentence_has_the_same_scores_alone_and_in_a_batch(shape):
    """Padding and neighbours change no score beyond rounding (D-20)."""
    head = parser(shape, is_filled=True)
    words, roots, n_words = states()
    together, first = head(words, roots, n_words), 0
    labels = head.best_labels(together)
    for at, n in enumerate(n_words):
        alone = head(words[first : first + n], roots[at : at + 1], n_words[at : at + 1])
        torch.testing.assert_close(together.scores[at, :n, : n + 1], alone.scores[0])
        torch.testing.assert_close(labels[0][at, :n, : n + 1], head.best_labels(alone)[0][0])
        first += n


def test_labels_by_parts_are_labels_at_once(monkeypatch):
    """Less memory, one sentence at a time: the same labels."""
    head = parser("beto", is_filled=True)
    arcs = head(*states())
    chances, names = head.best_labels(arcs)
    monkeypatch.setattr(biaffine, "LABEL_SCORES", 1)
    again = head.best_labels(arcs)
    torch.testing.assert_close(again[0], chances)
    assert torch.equal(again[1], names)


def test_labels_of_one_class_share_a_form():
    """Labels 0 and 2 are not told apart: two forms, equal losses, and the first is predicted."""
    head = BiaffineParser(HIDDEN, np.array([0, 1, 0]), shape="beto", dropout=0.0, seed=1).eval()
    arcs = head(*states())
    heads = torch.tensor([0, 1, 1, 0, 2, 0])
    assert head.label.weight.shape == (2, 128, 128)
    with torch.no_grad():
        losses = [float(head.label_loss(arcs, heads, torch.full((6,), i))) for i in range(3)]
    assert losses[0] == losses[2] != losses[1]
    assert set(head.best_labels(arcs)[1].flatten().tolist()) == {0, 1}


@pytest.fixture(autouse=True)
def one_thread():
    """As a trial runs: one thread, whatever the machine does besides."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
