from dataclasses import replace

import numpy as np
import pytest

from trainables.data.treebanks import data_ref
from trainables.encoders.pretrained import load_tokenizer
from trainables.spec import Request, TrialOptions
from trainables.trial import run_trial

N_LONG = 600


@pytest.fixture(scope="module")
def long_file(tmp_path_factory):
    """One sentence of 600 words, each hanging on the one before, and one of two words."""
    root = tmp_path_factory.mktemp("long")
    words = [(i, ("cat", "NOUN") if i % 2 else ("see", "VERB")) for i in range(1, N_LONG + 1)]
    rows = [f"{i}\t{form}\t_\t{tag}\t_\t_\t{i - 1}\tdep\t_\t_" for i, (form, tag) in words]
    blocks = [["# sent_id = 1", *rows], ["# sent_id = 2", *rows[:2]]]
    path = root / "UD_dd" / "dd_toy-ud-test.conllu"
    path.parent.mkdir()
    path.write_text("".join("\n".join(block) + "\n\n" for block in blocks), encoding="utf-8")
    return data_ref(root, "dd_toy", "test")


@pytest.mark.parametrize("task", ["upos", "parsing"])
@pytest.mark.parametrize("denominator", ["strict", "legacy"])
def test_long_sentences_and_their_denominators(spec, workspace, long_file, task, denominator):
    """Windows score all 602 words; a legacy denominator holds what one window does, and says so."""
    options = TrialOptions(max_length=32, overlap=8, denominator=denominator)
    hyper = replace(spec.hyper, epochs=1)
    trial = replace(spec, task=task, options=options, hyper=hyper)
    result = run_trial(trial, Request(targets=(long_file,)), workspace)
    found = {s.metric: s for s in result.scores if s.split == "test"}
    main = found["accuracy" if task == "upos" else "las"]
    if denominator == "strict":
        assert main.n == N_LONG + 2
        assert "words_kept" not in found
    else:
        tokenizer = load_tokenizer(spec.encoder)
        pieces = [len(tokenizer.tokenize(word)) for word in ("cat", "see") * (N_LONG // 2)]
        n_fit = int((np.cumsum(pieces) <= 32 - 2).sum())  # a window has two special pieces
        assert 0 < n_fit < N_LONG
        assert main.n == n_fit + 2
        assert found["words_kept"].value == pytest.approx((n_fit + 2) / (N_LONG + 2))
        assert found["words_kept"].n == N_LONG + 2
