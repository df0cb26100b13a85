from functools import cache
from itertools import product

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from trainables.data.conllu import find_cycle
from trainables.decoding import mst
from trainables.decoding.mst import best_tree, best_trees


@cache
def all_trees(n):
    """Every single-root tree over n words, one a row: 1, 2, 9, 64, 625, 7776 of them."""
    found = product(range(n + 1), repeat=n)
    return np.array([t for t in found if t.count(0) == 1 and not find_cycle(t)])


def total(scores, heads):
    return scores[np.arange(len(scores)), heads].sum(axis=-1)


def test_there_are_as_many_trees_as_cayley_says():
    """The judge of the next tests counts n^(n-1) rooted trees over n words."""
    assert [len(all_trees(n)) for n in range(1, 6)] == [n ** (n - 1) for n in range(1, 6)]


@given(st.data(), st.integers(1, 6))
@settings(max_examples=300, deadline=None)
def test_no_single_root_tree_scores_higher(data, n):
    """Over whole numbers, whose sums are exact: a tree of one root, as good as the best of all."""
    scores = data.draw(arrays(np.float64, (n, n + 1), elements=st.integers(-9, 9)))
    heads = best_tree(scores)
    assert heads.tolist().count(0) == 1
    assert find_cycle(heads.tolist()) == []
    assert total(scores, heads) == total(scores, all_trees(n)).max()


@pytest.mark.parametrize("seed", range(8))
def test_it_agrees_with_networkx_on_longer_sentences(seed):
    """Eighteen words, arcs from the root made dear: the arborescence of another implementation."""
    n = 18
    scores = np.random.default_rng(seed).normal(size=(n, n + 1))
    graph = nx.DiGraph()
    for word, head in product(range(n), range(n + 1)):
        if head != word + 1:
            dear = 1000 * (head == 0)
            graph.add_edge(head, word + 1, weight=float(scores[word, head] - dear))
    judge = nx.maximum_spanning_arborescence(graph)
    heads = {word: head for head, word in judge.edges}
    assert best_tree(scores).tolist() == [heads[word] for word in range(1, n + 1)]


def test_a_cycle_is_broken_where_it_costs_least():
    """Two words that prefer each other: one must take the root, the one that loses less."""
    scores = np.log([[0.3, 0.0001, 0.7], [0.1, 0.9, 0.0001]])
    # root -> 1 -> 2: .3 * .9 = .27; root -> 2 -> 1: .1 * .7 = .07
    assert best_tree(scores).tolist() == [0, 1]


def test_two_words_that_prefer_the_root_get_one_root():
    """Both would be roots (.6 * .9); the best tree with one is .6 * .1 or .9 * .4."""
    scores = np.log([[0.6, 0.0001, 0.4], [0.9, 0.1, 0.0001]])
    assert best_tree(scores).tolist() == [2, 0]


def test_equal_scores_are_settled_by_number():
    """Where everything is equal, the first word is the root and all others hang on it."""
    assert best_tree(np.zeros((4, 5))).tolist() == [0, 1, 1, 1]


def test_padding_is_not_read_and_inputs_are_left_alone():
    """A sentence has the same tree alone as beside longer ones, whatever stands beyond its end."""
    rng = np.random.default_rng(0)
    n_words = np.array([3, 1, 7, 5, 2])
    scores = rng.normal(size=(5, 7, 8))
    alone = [best_tree(one[:n, : n + 1]) for one, n in zip(scores, n_words, strict=True)]
    for one, n in zip(scores, n_words, strict=True):
        one[n:], one[:, n + 1 :] = np.nan, np.inf
    before = scores.copy()
    assert best_trees(scores, n_words).tolist() == np.concatenate(alone).tolist()
    np.testing.assert_array_equal(scores, before)


@pytest.mark.parametrize("broken", [np.nan, np.inf, -np.inf])
def test_a_diverged_model_still_gets_trees(broken):
    """Scores that are no numbers lead to some tree of one root, not to a crash or a hang."""
    scores = np.random.default_rng(1).normal(size=(9, 10))
    scores[2:6] = broken
    heads = best_tree(scores).tolist()
    assert (heads.count(0), find_cycle(heads)) == (1, [])
    everywhere = best_tree(np.full((9, 10), broken)).tolist()
    assert (everywhere.count(0), find_cycle(everywhere)) == (1, [])


def test_the_search_is_skipped_where_the_best_heads_make_a_tree(monkeypatch):
    """A confident parser pays for no contraction, even if two words would like to be the root."""
    monkeypatch.setattr(mst, "_search", None)
    scores = np.full((3, 4), -9.0)
    scores[0, 0], scores[1, 1], scores[2, 0], scores[2, 2] = -0.1, -0.1, -1.0, -1.5
    assert best_tree(scores).tolist() == [0, 1, 2]
