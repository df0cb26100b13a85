import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainables.ablations.layers import AblationError, parse_layers, spell_layers


@pytest.mark.parametrize(
    ("written", "layers", "spelt"),
    [
        ("3", (3,), "3"),
        ("1-2", (1, 2), "1-2"),
        ("1,2", (1, 2), "1-2"),
        ("5,1,2", (1, 2, 5), "1-2,5"),
        ("1-3,5-6", (1, 2, 3, 5, 6), "1-3,5-6"),
        ("3-3", (3,), "3"),
        (" 1 , 12", (1, 12), "1,12"),
        ("1-12", tuple(range(1, 13)), "1-12"),
        ("01-02", (1, 2), "1-2"),
    ],
)
def test_a_set_is_read_and_spelt(written, layers, spelt):
    """Each way to write a set gives the set, and each set has one spelling."""
    assert parse_layers(written, 12, "reinit:x") == layers
    assert spell_layers(layers) == spelt


@given(st.sets(st.integers(min_value=1, max_value=24), min_size=1))
def test_spelling_and_reading_are_inverse(layers):
    """Any set of layers survives being written down."""
    assert set(parse_layers(spell_layers(layers), 24, "x")) == layers


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("1-14", "this encoder has layers 1-12. Write a range within 1-12."),
        ("13", "this encoder has layers 1-12. Write a range within 1-12."),
        ("0", "this encoder has layers 1-12. Write a range within 1-12."),
        ("0-3", "this encoder has layers 1-12. Write a range within 1-12."),
        ("1,1", "layer 1 is named twice. Name it once."),
        ("1-3,2-4", "layer 2 is named twice. Name it once."),
        ("4-2", "the range 4-2 is empty. Write 2-4."),
        ("", "'' is no set of layers. Write 3, a range 1-2, or a list 1,2,5."),
        ("1,", "'1,' is no set of layers. Write 3, a range 1-2, or a list 1,2,5."),
        ("-1", "'-1' is no set of layers. Write 3, a range 1-2, or a list 1,2,5."),
        ("one", "'one' is no set of layers. Write 3, a range 1-2, or a list 1,2,5."),
        ("1..3", "'1..3' is no set of layers. Write 3, a range 1-2, or a list 1,2,5."),
        ("²", "'²' is no set of layers. Write 3, a range 1-2, or a list 1,2,5."),
    ],
)
def test_a_wrong_set_is_told_with_how_to_mend_it(written, told):
    """The message shows the whole ablation, what is wrong, and what to write."""
    with pytest.raises(AblationError) as caught:
        parse_layers(written, 12, f"reinit:{written}")
    assert str(caught.value) == f'ablation = "reinit:{written}": {told}'
    assert caught.value.what == told
