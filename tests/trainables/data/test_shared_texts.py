"""Real files of texts through a real tokenizer; skipped where the shared data are not there."""

import csv
import os
from pathlib import Path

import numpy as np
import pytest

from trainables.data.reading import read
from trainables.data.texts import Texts, as_texts, build_texts
from trainables.data.treebanks import data_ref

SHARED = Path(os.environ.get("XLING_SHARED", Path(__file__).parents[4] / "shared"))
TOKENIZER = SHARED / "models" / "me5-small-packed" / "tokenizer.json"

pytestmark = [
    pytest.mark.data,
    pytest.mark.slow,  # tokenises 20,000 examples
    pytest.mark.skipif(not TOKENIZER.exists(), reason="the shared data folder is not here"),
]

NAMED = [
    ("xnli-en", "dev", 2490, 3),
    ("xnli-zh", "dev", 2490, 3),
    ("xnli-tr", "dev", 2490, 3),
    ("kornli-ko", "dev", 2490, 3),
    ("americasnli-quy", "test", 750, 3),
    ("pawsx-de", "dev", 2000, 2),
    ("pawsx-zh", "test", 2000, 2),
    ("pawsx-ko", "test", 2000, 0),
    ("sib200-eng_Latn", "train", 701, 7),
    ("sib200-zh", "test", 204, 7),
    ("masakhanews-lin", "test", 175, 4),
    ("wili-mul", "train", 4000, 20),
]


@pytest.fixture(scope="module")
def tokenizer():
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast.from_pretrained(TOKENIZER.parent, local_files_only=True)


@pytest.mark.parametrize(("code", "split", "n", "n_classes"), NAMED)
def test_every_example_of_a_real_file_reaches_a_batch(tokenizer, code, split, n, n_classes):
    """Counts are the manifest's, classes those of the task, and no example is empty or too long."""
    ref = data_ref(SHARED / "data", code, split)
    corpus = as_texts(build_texts(read(ref), tokenizer, 128), ref.key, ref.location)
    assert corpus.n_sentences == n == examples_of(ref.location)
    assert len(set(corpus.labels) - {""}) == n_classes
    units = Texts(corpus, tokenizer.pad_token_id)
    assert units.lengths.max() <= 128
    batch = units.collate(np.arange(0, n, 97))
    assert (batch.owned.sum(axis=1) > 0).all()
    assert (batch.input_ids[:, 0] == tokenizer.cls_token_id).all()


def examples_of(location):
    """What the manifest says of a file."""
    path = Path(location).relative_to(SHARED / "data").as_posix()
    with (SHARED / "data" / "MANIFEST.tsv").open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return next(int(row["sentences"]) for row in rows if row["path"] == path)
