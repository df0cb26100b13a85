import pytest

from trainables.ablations.base import AblationError, canonical
from trainables.registry import UnknownName


@pytest.mark.parametrize(
    ("written", "spelt"),
    [
        ("ref", "ref"),
        ("all", "all"),
        ("reinit:1-2", "reinit:1-2"),
        ("reinit:1,2", "reinit:1-2"),
        ("reinit:2,1", "reinit:1-2"),
        ("reinit:1,2,5", "reinit:1-2,5"),
        ("reinit:1-12", "reinit:1-12"),
        ("freeze:0", "freeze:0"),
        ("freeze:06", "freeze:6"),
        ("freeze:6+reinit:1-2", "reinit:1-2+freeze:6"),
        ("reinit:1-2 + freeze:6", "reinit:1-2+freeze:6"),
        ("freeze:3+all", "all+freeze:3"),
    ],
)
def test_texts_that_mean_the_same_have_one_spelling(written, spelt):
    """The spelling enters the trial id: it must not depend on how a study was written."""
    assert canonical(written, 12) == spelt
    assert canonical(spelt, 12) == spelt


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("reinit:1-14", "this encoder has layers 1-12. Write a range within 1-12."),
        ("freeze:13", "this encoder has layers 1-12. Write a number within 0-12"),
        ("freeze:1-3", "'1-3' is not one number. `freeze:n` means the embeddings and layers 1-n"),
        ("freeze:-1", "'-1' is not one number."),
        ("freeze", "'freeze' up to which layer? Write `freeze:6`."),
        ("freeze:", "'freeze' up to which layer? Write `freeze:6`."),
        ("reinit", "'reinit' of which layers? Write `reinit:1-2`."),
        ("reinit:", "'reinit' of which layers? Write `reinit:1-2`."),
        ("ref:1", "'ref' takes nothing after it. Write `ref`."),
        ("all:1", "'all' takes nothing after it. Write `all` or `reinit:1-2`."),
        ("reinit:1+reinit:2", "'reinit' stands twice. Write one 'reinit' with all that is meant."),
        ("ref+freeze:3", "'ref' leaves nothing for 'freeze' to do. Write one of the two."),
        ("all+reinit:1", "'all' leaves nothing for 'reinit' to do. Write one of the two."),
        ("", "a part is empty."),
        ("reinit:1+", "a part is empty."),
    ],
)
def test_a_wrong_ablation_is_told_with_how_to_mend_it(written, told):
    """The message begins with the ablation as written and says what to write."""
    with pytest.raises(AblationError) as caught:
        canonical(written, 12)
    assert str(caught.value).startswith(f'ablation = "{written}": {told}')


def test_a_misspelt_name_is_told_the_closest():
    """Unknown names come from the registry, with what is known."""
    with pytest.raises(UnknownName, match=r"'reinti'\. Did you mean 'reinit'\? Known: all, freeze"):
        canonical("reinti:1-2", 12)


def test_the_error_survives_the_trip_between_processes():
    """Taken apart as pickle does and put together, text and reason are the same."""
    kind, arguments, *_ = AblationError("reinit:9", "too high.").__reduce__()
    error = kind(*arguments)
    assert (str(error), error.what) == ('ablation = "reinit:9": too high.', "too high.")
    assert isinstance(error, ValueError)
