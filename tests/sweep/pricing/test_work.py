"""Operations of a trial, worked by hand on tiny shapes, and what the tables know."""

import json
import tomllib
from importlib import resources

import pytest

from sweep.complaints import StudyError
from sweep.pricing.devices import Load, device, device_named, known
from sweep.pricing.sizes import Shape, Size, shape_of, size_of
from sweep.pricing.work import _LOOK_BATCH, _PARSERS, Reckoner, forward, frozen_share
from trainables.heads.biaffine import SHAPES
from trainables.model import LOOK_BUDGET
from trainables.spec import (
    DataRef,
    EncoderRef,
    HyperParameters,
    Request,
    SimilarityRequest,
    TrialOptions,
    TrialSpec,
)

SHAPE = Shape(layers=2, hidden=10, inner=40, vocabulary=1000)
"""A block of 4 x 100 + 2 x 400 = 1,200 weights."""


def ref(code="xx_toy", split="train", **changes):
    values = {"location": "", "fingerprint": f"{code}-{split}", "language": code[:2]}
    return DataRef(code=code, split=split, **values | changes)


def spec(ablation="ref", **changes):
    values = {
        "task": "upos",
        "encoder": EncoderRef(name="m", location="", fingerprint="f", n_layers=2),
        "source": "xx",
        "train": ref(),
        "dev": ref(split="dev"),
        "ablation": ablation,
        "hyper": HyperParameters(learning_rate=1e-4, batch_size=10, epochs=3),
        "seed": 1,
    }
    return TrialSpec(**values | changes)


@pytest.fixture
def reckoner(monkeypatch):
    """One encoder of `SHAPE`; files of 100 sentences of 4 words, 8 pieces each."""
    monkeypatch.setattr("sweep.pricing.work.shape_of", lambda _encoder: SHAPE)
    monkeypatch.setattr("sweep.pricing.work.size_of", lambda _ref: Size(sentences=100, words=400))
    return Reckoner()


PASS = 2 * (2 * 1200 + 8 * 10 * 8) * 800
"""Two layers, 2 operations a weight and 4 x 2 x width x length of attention, for 800 pieces."""


def test_a_pass_over_a_file_is_counted_by_hand():
    """100 sentences of 6 words are 9 + 2 pieces long at 1.5 pieces a word."""
    size = Size(sentences=100, words=400)
    assert size.pieces == 800
    assert forward(SHAPE, size) == PASS
    assert forward(SHAPE, Size(sentences=0, words=0)) == 0


def test_training_is_three_passes_an_epoch_and_a_look_at_dev(reckoner):
    """3 epochs x (3 + 1) passes, and 30 steps of the optimiser on all weights."""
    work = reckoner.work(spec(), Request(), trains=True)
    weights = 2 * 1200 + 1000 * 10
    assert work.train.operations == pytest.approx(12 * PASS + 90 * weights * 30)
    assert work.evaluate == Load()


def test_half_frozen_saves_half_of_the_backward_pass(reckoner):
    """`freeze:1` of 2 layers: 2 of 3 passes an epoch, and half of the optimiser's work."""
    work = reckoner.work(spec("freeze:1"), Request(), trains=True)
    weights = 2 * 1200 + 1000 * 10
    assert work.train.operations == pytest.approx(3 * (2 + 1) * PASS + 90 * weights * 30 / 2)


def test_what_is_no_product_is_counted_by_hand(reckoner):
    """3 epochs of 800 pieces through 2 layers of width 10, a look at as many, calls of 30 steps.

    A look is at least three batches.
    """
    work = reckoner.work(spec(), Request(targets=(ref("bb_pud", "test"),)), trains=True)
    wide = 800 * 2 * 10
    calls = 30 * 2 * 8e7 + 3 * 3 * 2 * 2.8e7
    assert work.train.elements == pytest.approx(3 * (9800 + 1700) * wide + calls)
    assert work.evaluate.elements == pytest.approx(1700 * wide + 3 * 2 * 2.8e7)
    half = reckoner.work(spec("freeze:1"), Request(), trains=True)
    learnt = 3 * ((9800 + 1700) / 2 + 1700) * wide
    calls = 30 * 2 * 8e7 * 2 / 3 + 3 * 3 * 2 * 2.8e7
    assert half.train.elements == pytest.approx(learnt + calls)


def test_a_large_encoder_takes_longer_to_load(reckoner):
    """12,400 weights take hardly more than the constant."""
    work = reckoner.work(spec(), Request(), trains=True)
    assert work.fixed_s == pytest.approx(0.05 + 2e-9 * (2 * 1200 + 1000 * 10))


def test_a_parser_is_paid_by_the_word_and_not_by_the_encoder(reckoner):
    """Projections of 700, a form of 500 x 500 for arcs and one of 200 x 200 for each of 40 labels.

    A label is scored for the right arc while the parser learns, else for all 5 heads of a word.
    """
    wanted = Request(targets=(ref("bb_pud", "test"),))
    plain, parsing = (
        reckoner.work(spec(task=task), wanted, trains=True) for task in ("upos", "parsing")
    )
    each = 4 * 10 * 700 + 2 * 1.3 * 500**2
    label = 2 * 40 * 200**2
    learnt = (each + label + 2 * 5 * 500) * 400
    looked = (each + 1.3 * label + 2 * 5 * (500 + 40 * 200)) * 400
    weights = 2 * 10 * 700 + 500**2 + 40 * 200**2
    more = parsing.train.operations - plain.train.operations
    assert more == pytest.approx(3 * (3 * learnt + looked) + 30 * 90 * weights)
    assert parsing.evaluate.operations - plain.evaluate.operations == pytest.approx(looked)
    touched = parsing.train.elements - plain.train.elements
    assert touched == pytest.approx(0.4 * label * 400 * 3 * (3 + 1.3))


def test_two_shapes_of_a_parser_are_two_kinds_of_work(reckoner):
    """One store may hold trials of both papers."""
    works = [
        reckoner.work(
            spec(task="parsing", options=TrialOptions(parser=parser)), Request(), trains=True
        )
        for parser in ("first-align", "beto")
    ]
    assert works[0].train.operations > 1.2 * works[1].train.operations


def test_states_alone_are_not_parsed(reckoner):
    """Sentences that are compared and not predicted cost the encoder's pass."""
    en, fr = ref("en_pud", "test"), ref("fr_pud", "test")
    compared = Request(similarity=SimilarityRequest(parallel=(en, fr), pivots=("en",)))
    work = reckoner.work(spec(task="parsing"), compared, trains=False)
    assert work.evaluate.operations == 2 * PASS


def test_widths_of_parsers_are_those_of_the_heads():
    """The tables here are copies, as prices are made without torch."""
    assert LOOK_BUDGET["cpu"] == _LOOK_BATCH
    assert {name: (shape.arc, shape.label) for name, shape in SHAPES.items()} == _PARSERS


@pytest.mark.parametrize(
    ("ablation", "share"),
    [("ref", 0), ("freeze:0", 0), ("freeze:1", 0.5), ("reinit:2+freeze:2", 1), ("freeze:9", 1)],
)
def test_the_frozen_share_is_read_from_the_name(ablation, share):
    """Alone or composed; never above one."""
    assert frozen_share(ablation, SHAPE) == share


def test_each_file_is_looked_at_once(reckoner):
    """A target that is also compared costs one pass, its comparison comes on top."""
    en, fr = ref("en_pud", "test"), ref("fr_pud", "test")
    both = Request(
        targets=(en, fr), similarity=SimilarityRequest(parallel=(en, fr), pivots=("en",))
    )
    plain = reckoner.work(spec(), Request(targets=(en, fr)), trains=False)
    compared = reckoner.work(spec(), both, trains=False)
    assert plain.evaluate == compared.evaluate
    assert plain.evaluate.operations == 2 * PASS
    assert compared.fixed_s > plain.fixed_s
    assert plain.train == Load()


def test_parts_of_a_file_cost_their_part(tmp_path):
    """Three sentences of 2, 1 and 3 words; ranges and empty nodes are no words."""
    rows = ["1\ta\n2\tb", "1-2\tab\n1\ta\n1.1\tx", "# c\n1\ta\n2\tb\n3\tc"]
    file = tmp_path / "xx_toy-ud-test.conllu"
    file.write_text("".join(row + "\n\n" for row in rows))
    here = {"location": str(file)}
    assert size_of(ref(**here)) == Size(sentences=3, words=6, is_counted=True)
    assert size_of(ref(limit=2, **here)) == Size(sentences=2, words=3, is_counted=True)
    assert size_of(ref(limit=2, skip=2, **here)) == Size(sentences=1, words=3, is_counted=True)
    assert size_of(ref(limit=2, skip=9, **here)) == Size(sentences=0, words=0, is_counted=True)


def test_other_layouts_are_counted_by_lines(tmp_path):
    """A word a line with blank lines between sentences, or an example a line."""
    words, examples = tmp_path / "train", tmp_path / "x.tsv"
    words.write_text("en:a\tO\nen:b\tO\n\nen:c\tO\n\n")
    examples.write_text("one two\tthree\t1\nfour\tfive\t0\n")
    assert size_of(ref(location=str(words))) == Size(sentences=2, words=3, is_counted=True)
    assert size_of(ref(location=str(examples))) == Size(sentences=2, words=7, is_counted=True)


@pytest.mark.parametrize(
    ("code", "split", "sentences"),
    [
        ("en_ewt", "train", 12544),
        ("en_ewt@2.4", "train", 12544),
        ("cs_pud", "test", 1000),
        ("wikiann-ru", "dev", 10000),
        ("xnli:xnli/dev-en.tsv[:2000]", "test", 2000),
        ("qq_unheard", "dev", 1500),
    ],
)
def test_files_that_are_not_here_have_a_listed_size(code, split, sentences):
    """By name, by ending, by family, else a middling treebank; not counted as counted."""
    size = size_of(ref(code, split))
    assert (size.sentences, size.is_counted) == (sentences, False)
    assert size_of(ref(code, split, limit=7)).sentences == 7


def test_an_encoder_says_its_shape_or_is_listed(tmp_path):
    """`config.json` goes first; then the list of names; then a base-size encoder, and doubt."""
    config = {"hidden_size": 384, "intermediate_size": 1536, "vocab_size": 99}
    (tmp_path / "config.json").write_text(json.dumps(config))
    folder = EncoderRef(name="x", location=str(tmp_path), fingerprint="f", n_layers=12)
    listed = EncoderRef(
        name="FacebookAI/xlm-roberta-large", location="", fingerprint="", n_layers=1
    )
    unknown = EncoderRef(name="me/mine", location="", fingerprint="f", n_layers=1)
    shipped = EncoderRef(name="toy", location="toy", fingerprint="f", n_layers=12)
    assert shape_of(shipped).hidden == 64
    assert shape_of(folder) == Shape(layers=12, hidden=384, inner=1536, vocabulary=99)
    assert (shape_of(listed).layers, shape_of(listed).hidden) == (24, 1024)
    assert not shape_of(unknown).is_known


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("Tesla T4", "T4"),
        ("NVIDIA A10G", "A10G"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("NVIDIA H200", "H100"),
        ("cpu", "cpu"),
    ],
)
def test_drivers_names_are_understood(told, name):
    """What `torch.cuda.get_device_name` gives leads to the table."""
    assert device(told).name == name


def test_an_unknown_device_is_refused_with_those_known():
    """Never guessed."""
    assert device_named("Abacus 3000") is None
    with pytest.raises(StudyError, match=r"unknown device 'T44'\. Did you mean 'T4'"):
        device("T44")


@pytest.mark.parametrize("name", [name for name in known() if name != "cpu"])
def test_more_trials_on_a_card_are_slower_each_and_faster_together(name):
    """Four trials at a quarter do more than one alone, and less than four."""
    card = device(name)
    assert card.rate("fp32") < 4 * card.rate("fp32", 0.25) < 4 * card.rate("fp32")
    assert card.rate("bf16") > card.rate("fp32")


@pytest.mark.parametrize(("at_once", "train_s"), [(1, 7.4), (2, 7.6), (4, 7.0), (8, 8.7)])
def test_small_batches_wait_for_the_core_and_not_for_the_card(monkeypatch, at_once, train_s):
    """What `bench.packing` measured on an H100: eight trials at a time are hardly slower each."""
    mbert = Shape(layers=12, hidden=768, inner=3072, vocabulary=119_547)
    monkeypatch.setattr("sweep.pricing.work.shape_of", lambda _encoder: mbert)
    sizes = {"train": Size(sentences=1000, words=15_000), "dev": Size(sentences=125, words=1_875)}
    monkeypatch.setattr("sweep.pricing.work.size_of", lambda ref: sizes[ref.split])
    hyper = HyperParameters(learning_rate=5e-5, batch_size=16, epochs=2)
    work = Reckoner().work(spec(hyper=hyper), Request(), trains=True)
    told = device("H100").seconds(work.train, "bf16", 1 / at_once)
    assert told == pytest.approx(train_s, rel=0.25)
    cpu = device("cpu")
    assert cpu.seconds(work.train, "fp32") == pytest.approx(
        (work.train.operations + work.train.elements) / cpu.rate("fp32")
    )


def test_what_the_core_does_is_counted_by_hand(reckoner):
    """30 steps through 2 blocks and 3 looks at 100 sentences; half of the backward pass frozen."""
    work = reckoner.work(spec(), Request(targets=(ref("bb_pud", "test"),)), trains=True)
    assert work.train.queue_s == pytest.approx(30 * 2 * 4.5e-3 + 300 * 3e-4)
    assert work.evaluate.queue_s == pytest.approx(100 * 3e-4)
    frozen = reckoner.work(spec("freeze:1"), Request(), trains=True)
    assert frozen.train.queue_s == pytest.approx(30 * 2 * 4.5e-3 * 2 / 3 + 300 * 3e-4)


def test_a_spot_machine_costs_less_than_its_list_price():
    """Every line of the table, between a tenth and nine tenths: a slip of the pen would show."""
    table = tomllib.loads(resources.files("sweep.pricing").joinpath("instances.toml").read_text())
    lines = [*table["instances"].values(), *table["attached"].values()]
    assert len(lines) > 30
    assert all(0.1 < line["spot"] / line["usd"] < 0.9 for line in lines)
    assert {line["gpu"] for line in lines if "gpu" in line} <= {*known()}
