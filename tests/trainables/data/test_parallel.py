import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainables.data.parallel import align
from trainables.data.sentence import DataError, Sentence


def file(language, names, original=None):
    """Path and sentences with these ids; sentence i stands at line 10 * (i + 1)."""
    original = original or [""] * len(names)
    return f"{language}.conllu", [
        Sentence(sent_id=name, text=f"{language} {i}", words=("w",), line=10 * (i + 1), orig_id=o)
        for i, (name, o) in enumerate(zip(names, original, strict=True))
    ]


PUD = [f"n{i:02}" for i in range(40)]


def test_same_order():
    """Files with the same ids in the same order are taken row by row."""
    files = {"en": file("en", PUD), "fr": file("fr", PUD)}
    assert align(files) == {"en": list(range(40)), "fr": list(range(40))}


def test_other_order():
    """A file in another order (Icelandic) is joined by its ids."""
    files = {"en": file("en", ["a", "b", "c"]), "is": file("is", ["c", "a", "b"])}
    assert align(files) == {"en": [0, 1, 2], "is": [1, 2, 0]}


def test_original_ids():
    """A file with ids of its own (old Polish) is joined by its `orig_file_sentence`."""
    names = ["s1", "s2", "s3"]
    files = {
        "pl": file("pl", names, ["b#1", "a#2", "c#3"]),
        "en": file("en", ["a", "b", "c"]),
    }
    assert align(files) == {"pl": [1, 0, 2], "en": [0, 1, 2]}


def test_original_ids_as_they_are():
    """Original ids without a `#` number are joined as well, and with one if others have it too."""
    plain = {"pl": file("pl", ["s1", "s2"], ["b", "a"]), "en": file("en", ["a", "b"])}
    numbered = {"pl": file("pl", ["s1", "s2"], ["d#2", "d#1"]), "cs": file("cs", ["d#1", "d#2"])}
    assert align(plain) == {"pl": [1, 0], "en": [0, 1]}
    assert align(numbered) == {"pl": [1, 0], "cs": [0, 1]}


def test_sent_id_goes_first():
    """Where the usual ids agree, original ids are not looked at."""
    files = {"en": file("en", ["a", "b"]), "cs": file("cs", ["a", "b"], ["b", "a"])}
    assert align(files)["cs"] == [0, 1]


def galician():
    """English and a Galician file with the faults of the real one, among forty sentences.

    Sentence 3 has a misspelt id, 9 a bare number, and 10 the id of 9, so that n10 is missing.
    """
    names = [*PUD]
    names[3], names[9], names[10] = "n03v", "141", "n09"
    return {"en": file("en", PUD), "gl": file("gl", names), "de": file("de", PUD)}


def test_wrong_ids_are_refused():
    """Broken ids stop the study with the language, the counts, the ids and the way out."""
    with pytest.raises(DataError) as caught:
        align(galician())
    error = caught.value
    assert (error.where, error.line) == ("gl.conllu", 40)
    assert "'gl' (40) do not match those of the other languages (40)" in error.what
    assert "2 that the other languages lack: n03v, 141" in error.what
    assert "2 that it lacks: n03, n10" in error.what
    assert "1 out of the common order, so probably on the wrong sentence: n09" in error.what
    assert 'similarity.unmatched = "drop"' in error.mend
    assert "the 37 sentences" in error.mend


def test_wrong_ids_are_dropped():
    """`drop` leaves the sentences that all have, and none whose id stands on a wrong sentence."""
    found = align(galician(), "drop")
    kept = [i for i in range(40) if i not in {3, 9, 10}]
    assert found == {"en": kept, "gl": kept, "de": kept}


def test_other_order_with_wrong_ids():
    """In a file of another order an id is believed, even if another one is broken."""
    names = ["x", *reversed(PUD[:-1])]
    found = align({"en": file("en", PUD), "is": file("is", names)}, "drop")
    assert found["en"] == list(range(39))
    assert found["is"] == list(range(39, 0, -1))


def test_different_corpora():
    """Files without a common sentence are refused, also under `drop`, without that way out."""
    files = {
        "en": file("en", ["a", "b"]),
        "fr": file("fr", ["c", "d"]),
        "de": file("de", ["b", "a"]),
    }
    for unmatched in ("refuse", "drop"):
        with pytest.raises(DataError) as caught:
            align(files, unmatched)
        assert "'fr' (2) do not match" in caught.value.what
        assert "Leave the language out" in caught.value.mend


def test_shorter_file():
    """A file cut short is refused by what it lacks, without a line."""
    with pytest.raises(DataError) as caught:
        align({"en": file("en", PUD), "fr": file("fr", PUD[:38])})
    assert caught.value.line is None
    assert "'fr' (38) do not match those of the other language (40)" in caught.value.what
    assert "2 that it lacks: n38, n39" in caught.value.what


def test_many_unmatched_are_counted():
    """A long list of ids is cut after five, with its count."""
    with pytest.raises(DataError, match=r"9 that it lacks: n31, n32, n33, n34, n35, \.\.\."):
        align({"en": file("en", PUD), "fr": file("fr", PUD[:31])})


def test_majority_is_the_standard():
    """The language that differs is blamed, even if it comes first."""
    files = {
        "gl": file("gl", ["a", "x"]),
        "en": file("en", ["a", "b"]),
        "fr": file("fr", ["a", "b"]),
    }
    with pytest.raises(DataError, match=r"gl\.conllu:20: .*1 that the other languages lack: x"):
        align(files)


def test_id_twice():
    """An id that stands twice is refused with both lines, whatever is asked."""
    files = {"en": file("en", ["a", "b", "c"]), "fr": file("fr", ["a", "b", "a"])}
    for unmatched in ("refuse", "drop"):
        with pytest.raises(DataError, match=r"fr\.conllu:30: sent_id 'a' .* twice.*at line 10"):
            align(files, unmatched)


def test_no_ids():
    """Files without ids are refused, even of equal length, at their first sentence without one."""
    with pytest.raises(DataError, match=r"fr\.conllu:20: a sentence of 'fr' without `# sent_id`"):
        align({"en": file("en", ["a", "b"]), "fr": file("fr", ["a", ""])})
    with pytest.raises(DataError, match=r"en\.conllu:10: .*Give every sentence"):
        align({"en": file("en", ["", ""]), "fr": file("fr", ["", ""])})


def test_no_sentences():
    """An empty file cannot be compared."""
    with pytest.raises(DataError, match="no sentences for 'fr'"):
        align({"en": file("en", ["a"]), "fr": file("fr", [])})


def test_one_language_and_none():
    """One language is aligned with itself; no language gives nothing."""
    assert align({"en": file("en", ["b", "a"])}) == {"en": [1, 0]}
    assert align({}) == {}


@given(
    st.sets(st.text("abc#1", min_size=1, max_size=4), min_size=1, max_size=12),
    st.integers(0, 2**32),
    st.integers(1, 4),
)
def test_any_orders(names, seed, n_languages):
    """Whatever the orders, row k of every language has the same id, and every id comes once."""
    draw = random.Random(seed)
    orders = {f"l{i}": draw.sample(sorted(names), len(names)) for i in range(n_languages)}
    files = {language: file(language, order) for language, order in orders.items()}
    found = align(files)
    rows = [[orders[name][i] for i in found[name]] for name in orders]
    assert all(row == sorted(names) for row in rows)
    assert align(dict(reversed(files.items()))) == found


@given(st.lists(st.sets(st.integers(0, 30), min_size=1), min_size=2, max_size=4))
def test_dropped_to_the_intersection(sets):
    """`drop` keeps exactly the ids that all files hold, or refuses when there is none."""
    orders = {f"l{i}": [f"id{n}" for n in sorted(s, reverse=True)] for i, s in enumerate(sets)}
    orders["more"] = [*orders["l0"], "of its own"]  # lengths differ, so places prove nothing
    files = {language: file(language, order) for language, order in orders.items()}
    both = set.intersection(*(set(order) for order in orders.values()))
    if not both:
        with pytest.raises(DataError):
            align(files, "drop")
        return
    for language, rows in align(files, "drop").items():
        assert [orders[language][i] for i in rows] == sorted(both)
