"""The best tree under one root, by the algorithm of Chu and Liu (1965) and Edmonds (1967).

Words are numbered from 0 and heads as CoNLL-U numbers them: head 0 is the root, head h > 0 is
word h - 1. `scores[d, h]` is what the arc from head h to word d adds to its tree, e.g. a
log-probability: the best tree has the highest sum.

One root exactly, in one run: an arc from the root is taken to be worse than any arc between
words, so contraction joins all words first (over a complete graph it always can), and then the root
picks the word by which it enters. No large constant is added, which would cost digits. The remark
is that of Gabow and Tarjan (1984); Stanojevic and Cohen (2021) tell why parsers need it.
"""

import numpy as np
from jaxtyping import Bool, Float, Int

WORST = -1e30
"""Stands for scores that are no numbers or infinite: a diverged model still gets trees."""


def best_trees(
    scores: Float[np.ndarray, "s m k"], n_words: Int[np.ndarray, " s"]
) -> Int[np.ndarray, " w"]:
    """The single-root tree of the highest sum for each sentence of a batch.

    No tree is better than this one could be: the root takes the word that gains most by it, and
    every other word its best head among words. Where that is a tree it is the answer; only the
    other sentences are searched. Of equal scores the lowest number wins.

    Args:
        scores: Of each arc, with k = m + 1 heads; beyond a sentence's words anything may stand.
        n_words: Words of each sentence, at least 1 and at most m.

    Returns:
        Heads of all words, in the order of the sentences.
    """
    n, m = scores.shape[:2]
    real = np.arange(m) < n_words[:, None]
    clean = _finite(scores)
    clean[:, np.arange(m), np.arange(m) + 1] = -np.inf
    clean.transpose(0, 2, 1)[:, 1:][~real] = -np.inf
    among = clean[:, :, 1:]
    gain = np.where(real, clean[:, :, 0] - among.max(axis=2), -np.inf)
    gain[n_words == 1, 0] = np.inf
    heads = np.where(real, among.argmax(axis=2) + 1, 0)
    heads[np.arange(n), gain.argmax(axis=1)] = 0
    for at in np.flatnonzero(~_is_tree(heads)):
        heads[at, : n_words[at]] = _search(clean[at, : n_words[at], : n_words[at] + 1])
    return heads[real]


def best_tree(scores: Float[np.ndarray, "n k"]) -> Int[np.ndarray, " n"]:
    """As `best_trees`, for one sentence of n words and k = n + 1 heads."""
    return best_trees(scores[None], np.array([len(scores)]))


def _finite(scores: Float[np.ndarray, "s m k"]) -> Float[np.ndarray, "s m k"]:
    found = scores.astype(np.float64)
    return np.nan_to_num(found, copy=False, nan=WORST, neginf=WORST, posinf=-WORST)


def _is_tree(heads: Int[np.ndarray, "s m"]) -> Bool[np.ndarray, " s"]:
    """Whether every word is reached from the root."""
    above = np.pad(heads, ((0, 0), (1, 0)))
    for _ in range(int(heads.shape[1]).bit_length()):
        above = np.take_along_axis(above, above, axis=1)  # twice as far up
    found: Bool[np.ndarray, " s"] = (above == 0).all(axis=1)
    return found


def _search(scores: Float[np.ndarray, "n k"]) -> Int[np.ndarray, " n"]:
    """Contract cycles until one node is left, let the root enter it, and undo the contractions.

    Nodes 0..n-1 are words; each contraction makes the next one. A node is stood for by one of its
    words, whose row and column hold the best arcs into and out of the whole node.
    """
    n = len(scores)
    every = np.arange(n)
    score, root = scores[:, 1:].copy(), scores[:, 0].copy()
    ends = every[:, None] * n + every  # word * n + head: where the best arc really ends and starts
    root_ends = every.copy()
    forest = _Forest(n)
    node = list(range(n))  # the node that a word stands for
    path, picked = [0], {}
    while True:
        last = path[-1]
        head = int(score[last].argmax())
        if score[last, head] == -np.inf:  # all words are one node
            return forest.heads(node[last], int(root_ends[last]))
        picked[last] = head
        if head not in path:
            path.append(head)
            continue
        cycle = path[path.index(head) :]
        members, stands = np.array(cycle), cycle[0]
        inner = np.array([picked[word] for word in cycle])
        node[stands] = forest.join([node[word] for word in cycle], ends[members, inner])
        # Into the cycle: entering a node of it costs the arc by which the cycle entered that node.
        lost = score[members, inner]
        into = score[members] - lost[:, None]
        by = into.argmax(axis=0)
        score[stands], ends[stands] = into[by, every], ends[members[by], every]
        into_root = root[members] - lost
        best = int(into_root.argmax())
        root[stands], root_ends[stands] = into_root[best], root_ends[members[best]]
        # Out of the cycle: whichever of its nodes offers more.
        by = members[score[:, members].argmax(axis=1)]
        score[:, stands], ends[:, stands] = score[every, by], ends[every, by]
        score[members[1:]] = score[:, members[1:]] = score[stands, stands] = -np.inf
        del path[path.index(head) + 1 :]


class _Forest:
    """Which nodes were joined into which, and by which arcs."""

    def __init__(self, n: int) -> None:
        """Begin with n words, each a node of its own."""
        self.n = n
        self.parent = [-1] * n
        self.children: list[list[int]] = [[] for _ in range(n)]
        self.arc = [0] * n  # word * n + head of the arc that enters a node within its cycle

    def join(self, nodes: list[int], arcs: Int[np.ndarray, " c"]) -> int:
        """Make a new node of the nodes of a cycle."""
        new = len(self.parent)
        for node, arc in zip(nodes, arcs.tolist(), strict=True):
            self.parent[node], self.arc[node] = new, arc
        self.parent.append(-1)
        self.children.append(nodes)
        self.arc.append(0)
        return new

    def heads(self, top: int, root: int) -> Int[np.ndarray, " n"]:
        """Heads of all words if `root` is the root's word.

        An arc into a node replaces, in the node and in every cycle below it, the arc by which the
        cycle entered the same word; the other arcs of the cycles stay.
        """
        found = np.zeros(self.n, dtype=np.int64)
        entries = [(root, 0, top)]
        while entries:
            word, head, upper = entries.pop()
            found[word] = head
            below = word
            while below != upper:
                above = self.parent[below]
                for child in self.children[above]:
                    if child != below:
                        at, by = divmod(self.arc[child], self.n)
                        entries.append((at, by + 1, child))
                below = above
        return found
