"""Reading a study's data before anything is spent: counts, faults, alignment."""

import pytest

from sweep.check import check_data, refuse_faults
from sweep.study import StudyError, build_study

WORDS = "1\ta\t_\tNOUN\t_\t_\t0\troot\t_\t_\n2\tb\t_\tVERB\t_\t_\t1\tdep\t_\t_\n\n"


def sentences(*ids):
    """A treebank of two-word sentences with these ids."""
    return "".join(f"# sent_id = {name}\n# text = a b\n{WORDS}" for name in ids)


@pytest.fixture
def folder(tmp_path):
    """Train, dev, and two parallel files of three sentences in different order."""
    texts = {
        "en_ewt-ud-train": sentences("t1", "t2", "t3", "t4"),
        "en_ewt-ud-dev": sentences("d1"),
        "en_pud-ud-test": sentences("p1", "p2", "p3"),
        "fr_pud-ud-test": sentences("p3", "p1", "p2"),
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.conllu").write_text(text, encoding="utf-8")
    return tmp_path


def study_of(folder, **more):
    table = {
        "name": "tiny",
        "encoder": {"model": "e"},
        "data": {"root": str(folder), "sources": {"en": "en_ewt"}, "train_limit": 3},
        "grid": {"task": "upos", "source": "en"},
        "hyper": {"learning_rate": 1e-4, "batch_size": 8, "epochs": 1},
        "seeds": {"report": [1]},
        "evaluate": {"targets": ["en", "fr"], "naming": "{lang}_pud"},
        "similarity": {},
    }
    return build_study(table | more, "tiny.toml")


def test_counts_are_of_what_is_used(folder):
    """Sentences and words are counted within the limits, parallel sentences over all languages."""
    check = check_data(study_of(folder))
    assert [(f.code, f.split, f.n_sentences, f.n_words) for f in check.files] == [
        ("en_ewt", "train", 3, 6),
        ("en_ewt", "dev", 1, 2),
        ("en_pud", "test", 3, 6),
        ("fr_pud", "test", 3, 6),
    ]
    assert check.files[2].purposes == ("upos target", "similarity")
    assert (check.n_parallel, check.faults) == (3, ())


def test_every_fault_is_told(folder):
    """A missing file and a broken one are both named, and nothing is said on alignment."""
    (folder / "en_ewt-ud-dev.conllu").unlink()
    (folder / "fr_pud-ud-test.conllu").write_text("1\ta\n\n", encoding="utf-8")
    check = check_data(study_of(folder))
    assert [bool(file.fault) for file in check.files] == [False, True, False, True]
    assert "en_ewt-ud-dev.conllu" in check.faults[0]
    assert "fr_pud-ud-test.conllu:1" in check.faults[1]
    assert check.n_parallel is None
    with pytest.raises(StudyError, match=r"tiny\.toml: 1 of 4 files cannot be used, in .*:\n  "):
        refuse_faults(study_of(folder), folder / "cache")


def test_parallel_files_that_do_not_match_are_a_fault(folder):
    """A language that lacks a sentence is refused, and with `drop` costs that sentence."""
    (folder / "fr_pud-ud-test.conllu").write_text(sentences("p1", "p3"), encoding="utf-8")
    assert "fr" in check_data(study_of(folder)).misalignment
    dropping = check_data(study_of(folder, similarity={"unmatched": "drop"}))
    assert (dropping.n_parallel, dropping.faults) == (2, ())


def test_nothing_is_aligned_when_nothing_is_compared(folder):
    """Without similarity, files that do not match are no fault."""
    (folder / "fr_pud-ud-test.conllu").write_text(sentences("x"), encoding="utf-8")
    check = check_data(study_of(folder, similarity={"states": []}))
    assert (check.n_parallel, check.faults) == (None, ())


def test_sound_data_are_read_once(folder, monkeypatch):
    """Files that passed are not read again until one of them changes."""
    cache, study = folder / "cache", study_of(folder)
    reads = []
    monkeypatch.setattr("sweep.check.check_data", lambda s: reads.append(s) or check_data(s))
    refuse_faults(study, cache)
    refuse_faults(study, cache)
    assert len(reads) == 1
    (folder / "en_ewt-ud-dev.conllu").write_text(sentences("d1", "d2"), encoding="utf-8")
    refuse_faults(study, cache)
    assert len(reads) == 2


def test_data_that_failed_are_read_again(folder):
    """A fault is told every time, not only the first."""
    (folder / "fr_pud-ud-test.conllu").write_text(sentences("x"), encoding="utf-8")
    for _ in range(2):
        with pytest.raises(StudyError, match="cannot be used"):
            refuse_faults(study_of(folder), folder / "cache")


def bio(language, *sentences):
    """A WikiANN file; each sentence is a list of tags."""
    blocks = ("".join(f"{language}:w\t{tag}\n" for tag in tags.split()) for tags in sentences)
    return "\n".join(blocks)


def ner_study(folder, **files):
    """A study of named entities on files named like `en_train`."""
    for name, text in files.items():
        language, split = name.split("_")
        (folder / language).mkdir(exist_ok=True)
        (folder / language / split).write_text(text, encoding="utf-8")
    return study_of(
        folder,
        grid={"task": "ner", "source": "en"},
        data={"root": str(folder), "sources": {"en": "wikiann-en"}},
        evaluate={"targets": ["en", "fr"], "naming": "wikiann-{lang}"},
        similarity={"states": []},
    )


def test_broken_spans_and_labels_never_learnt_are_notes(folder):
    """Both change what scores mean, and neither forbids the study."""
    study = ner_study(
        folder,
        en_train=bio("en", "B-PER I-PER O", "B-LOC"),
        en_dev=bio("en", "B-PER"),
        en_test=bio("en", "O I-PER", "B-PER", "I-LOC"),
        fr_test=bio("fr", "B-MISC I-MISC O B-PER", "B-MISC"),
    )
    check = check_data(study)
    assert check.faults == ()
    broken, missed = check.notes
    assert broken == (
        "wikiann-en test: 2 of 3 sentences have an entity that does not begin with B- (first in "
        "that of line 1: word 2 ('w') has I-PER after O); lenient F1 takes it for one, strict F1 "
        "does not"
    )
    assert missed == "wikiann-fr test: MISC (2 of 3): ner never learns from en, so all are missed"
    refuse_faults(study, folder / "cache")


def test_a_file_without_what_a_task_reads_is_a_fault(folder):
    """Bare words, a treebank without tags and texts cannot be used for words' labels."""
    study = ner_study(folder, en_train=bio("en", "B-PER"), en_dev=bio("en", "O"), fr_test="fr:x\n")
    (folder / "en_none-ud-test.conllu").write_text(
        "1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n\n", encoding="utf-8"
    )
    (folder / "xnli").mkdir()
    (folder / "xnli/test-en.tsv").write_text("a\tb\tneutral\n", encoding="utf-8")
    told = check_data(
        study.model_copy(
            update={
                "evaluate": study.evaluate.model_copy(
                    update={"targets": ("en_none", "xnli-en", "fr")}
                )
            }
        )
    )
    faults = [file.fault for file in told.files if file.split == "test"]
    assert faults[0].endswith("en_none-ud-test.conllu: without entity tags, which 'ner' needs")
    assert faults[1].endswith("test-en.tsv: a file of texts, and task 'ner' reads words")
    assert "fr/test:1: 1 column" in faults[2]
    assert told.notes == ("wikiann-en dev: no entity begins here; F1 is 0 whatever is predicted",)


def test_the_same_files_for_another_task_are_read_again(folder):
    """That files passed for one task says nothing on another."""
    cache = folder / "cache"
    refuse_faults(study_of(folder), cache)
    with pytest.raises(StudyError, match="without entity tags, which 'ner' needs"):
        refuse_faults(study_of(folder, grid={"task": "ner", "source": "en"}), cache)
