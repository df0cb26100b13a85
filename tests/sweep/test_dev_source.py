"""A study may select the best epoch on data of its own, and on parts of files."""

import pytest

from sweep.resolve import wanted_files
from sweep.study import StudyError, load_study

TEXT = """
name = "tiny"
[encoder]
model = "./encoder"
[data]
root = "data"
sources = { en = "xnli:dev-en.tsv[:2000]", de = "xnli-de" }
dev = { en = "xnli:dev-en.tsv[2000:]" }
[grid]
task = "xnli"
source = ["en", "de"]
[hyper]
learning_rate = 1e-4
batch_size = 8
epochs = 1
[seeds]
report = 1
[evaluate]
targets = ["xnli:dev-sw.tsv[2000:]", "ar"]
naming = "xnli-{lang}[:100]"
"""


@pytest.fixture
def file(tmp_path):
    """A study that trains on one part of a file and selects on the other."""
    path = tmp_path / "tiny.toml"
    path.write_text(TEXT.replace("report = 1", "report = [1]"), encoding="utf-8")
    return path


def test_dev_data_of_its_own_stand_beside_the_source(file):
    """English selects on the other part of its file, German on the dev file of its data set."""
    assert list(wanted_files(load_study(str(file)))) == [
        ("xnli:dev-en.tsv[:2000]", "train", None),
        ("xnli:dev-en.tsv[2000:]", "dev", None),
        ("xnli-de", "train", None),
        ("xnli-de", "dev", None),
        ("xnli:dev-sw.tsv[2000:]", "test", None),
        ("xnli-ar[:100]", "test", None),
    ]


def test_a_task_may_have_dev_data_of_its_own(file):
    """What stands below the task goes before what holds for all of them."""
    study = load_study(str(file), ['tasks.xnli.dev.en="xnli-en[:9]"'])
    assert study.dev_code("xnli", "en") == "xnli-en[:9]"


@pytest.mark.parametrize("part", ["[2000]", "[a:b]", "[::2]", "[-5:]", "[:2000"])
def test_a_part_is_two_bounds_and_nothing_else(file, part):
    """No steps, no negative bounds, no single number."""
    with pytest.raises(StudyError, match=r"data\.dev\.en"):
        load_study(str(file), [f'data.dev.en="xnli-en{part}"'])
