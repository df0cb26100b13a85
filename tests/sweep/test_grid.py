"""The grid: how many trials, which, in which order, and what is asked of them."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweep.grid import PROBE, planned
from sweep.identity import cell_id, trial_id
from sweep.resolve import Resolved
from sweep.study import StudyError, build_study
from trainables.spec import DataRef, EncoderRef

ENCODER = EncoderRef(name="e", location="/e", fingerprint="sha256:e", n_layers=12)


def study_of(**changes):
    """A study of 1 task, 2 sources, 3 ablations, 2 seeds; dotted keys change it."""
    table = {
        "name": "tiny",
        "encoder": {"model": "e"},
        "data": {"sources": {"en": "en_ewt", "ru": "ru_gsd", "ar": "ar_padt"}},
        "grid": {
            "task": ["upos"],
            "source": ["en", "ru"],
            "ablation": ["reinit:1-2", "ref", "freeze:3"],
        },
        "hyper": {"learning_rate": 1e-4, "batch_size": 8, "epochs": 1},
        "seeds": {"report": [5, 3]},
        "evaluate": {"targets": ["en", "fr"], "naming": "{lang}_pud"},
        "similarity": {},
    }
    for key, value in changes.items():
        section, _, name = key.partition("__")
        if name:
            table[section] = {**table[section], name: value}
        else:
            table[section] = value
    return build_study(table)


def ref_of(code, split, limit=None):
    """A file that is pinned by its name."""
    return DataRef(
        code=code,
        language=code[:2],
        split=split,
        location=f"/d/{code}-{split}",
        fingerprint=f"sha256:{code}-{split}",
        limit=limit,
    )


def resolved_of(study):
    """What `resolve` would find if all files were there."""
    cells = [(task, source) for task in study.grid.task for source in study.grid.source]
    return Resolved(
        encoder=ENCODER,
        train={cell: ref_of(study.source_code(*cell), "train") for cell in cells},
        dev={cell: ref_of(study.source_code(*cell), "dev") for cell in cells},
        targets={
            task: tuple(ref_of(code, "test") for code in study.target_codes(task))
            for task in study.grid.task
        },
        parallel=tuple(ref_of(f"{lang}_pud", "test") for lang in study.parallel_languages()),
    )


def plan_of(study):
    return planned(study, resolved_of(study))


def test_the_grid_is_the_product_of_its_axes_and_one_probe():
    """2 sources x 3 ablations x 2 seeds are 12 trials, and a probe."""
    trials = plan_of(study_of())
    assert len(trials) == 13
    assert len({trial.trial_id for trial in trials}) == 13
    assert len({trial.cell_id for trial in trials}) == 2 * 3 + 1


@given(
    sources=st.lists(st.sampled_from(["en", "ru", "ar"]), min_size=1, unique=True),
    layers=st.lists(st.integers(1, 12), max_size=5, unique=True),
    seeds=st.lists(st.integers(0, 99), min_size=1, max_size=4, unique=True),
)
def test_grid_size(sources, layers, seeds):
    """The number of trials is the product of the lengths, whatever they are."""
    names = ["ref", *(f"reinit:{layer}" for layer in layers)]
    study = study_of(
        grid={"task": "upos", "source": sources, "ablation": names},
        seeds={"report": seeds},
        similarity__states=[],
    )
    trials = plan_of(study)
    assert len(trials) == math.prod([len(sources), len(names), len(seeds)])
    assert len({trial.trial_id for trial in trials}) == len(trials)


def test_order_is_probe_then_seeds_then_reference_then_sources():
    """The first complete table comes from the first seed, and its reference comes first."""
    specs = [trial.spec for trial in plan_of(study_of())]
    assert specs[0].task == PROBE
    assert [(spec.seed, spec.ablation, spec.source) for spec in specs[1:]] == [
        (seed, ablation, source)
        for seed in (5, 3)
        for ablation in ("ref", "reinit:1-2", "freeze:3")
        for source in ("en", "ru")
    ]


def test_ids_are_those_of_the_specs():
    """A planned trial carries the ids of its own spec."""
    for trial in plan_of(study_of()):
        assert trial.trial_id == trial_id(trial.spec)
        assert trial.cell_id == cell_id(trial.spec)


def test_a_probe_trains_nothing_and_compares_all_sources():
    """The probe holds no data, no seed and no task; its pivots are all sources."""
    probe = plan_of(study_of())[0]
    assert (probe.spec.train, probe.spec.dev, probe.spec.ablation) == (None, None, "ref")
    assert (probe.spec.source, probe.spec.seed, probe.spec.hyper.epochs) == ("", 0, 0)
    assert probe.request.targets == ()
    assert probe.request.similarity.pivots == ("en", "ru")
    assert [ref.language for ref in probe.request.similarity.parallel] == ["en", "ru", "fr"]


def test_a_trial_compares_its_source_on_the_same_sentences_as_the_probe():
    """Every trial reads the probe's parallel files, so that both hold the same sentences."""
    probe, *trials = plan_of(study_of())
    for trial in trials:
        assert trial.request.similarity.pivots == (trial.spec.source,)
        assert trial.request.similarity.parallel == probe.request.similarity.parallel
        assert [ref.code for ref in trial.request.targets] == ["en_pud", "fr_pud"]


def test_all_pairs_makes_every_language_a_pivot():
    """With pairs = "all", probe and trials compare every language with every other."""
    for trial in plan_of(study_of(similarity__pairs="all")):
        assert trial.request.similarity.pivots == ("en", "ru", "fr")


@pytest.mark.parametrize(
    ("states", "n_probes", "trials_compare"),
    [
        (["pretrained"], 1, False),
        (["fine-tuned"], 0, True),
        (["pretrained", "fine-tuned"], 1, True),
        ([], 0, False),
    ],
)
def test_states_decide_who_measures_similarity(states, n_probes, trials_compare):
    """Probes measure the pretrained state, trials the fine-tuned one, and only if asked."""
    trials = plan_of(study_of(similarity__states=states))
    tuned = [trial for trial in trials if trial.spec.task != PROBE]
    assert len(trials) - len(tuned) == n_probes
    assert {trial.request.similarity is not None for trial in tuned} == {trials_compare}


def test_what_is_kept_and_measured_does_not_change_the_trials():
    """Other targets, similarity or keeping of weights leave every trial id as it is."""
    one = plan_of(study_of(similarity__states=["fine-tuned"]))
    two = plan_of(
        study_of(evaluate__targets=["de_gsd"], similarity__states=["fine-tuned"], keep="best")
    )
    assert [trial.trial_id for trial in one] == [trial.trial_id for trial in two]
    assert all(trial.request.keep == "best" for trial in two)


def test_more_seeds_and_ablations_keep_the_old_trials():
    """A wider grid holds every trial of the narrower one."""
    old = {trial.trial_id for trial in plan_of(study_of())}
    new = {
        trial.trial_id
        for trial in plan_of(
            study_of(
                seeds={"report": [1, 3, 5]},
                grid__ablation=["ref", "all", "freeze:3", "reinit:1-2"],
            )
        )
    }
    assert old < new


def test_ablations_are_spelt_in_one_way():
    """`reinit:2,1` and `reinit:1-2` are one trial."""
    one = plan_of(study_of(grid__ablation=["reinit:2,1"]))
    two = plan_of(study_of(grid__ablation=["reinit:1-2"]))
    assert [trial.trial_id for trial in one] == [trial.trial_id for trial in two]
    assert one[1].spec.ablation == "reinit:1-2"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["reinit:1-2", "reinit:1,2"], "the same as 'reinit:1-2'. Name it once."),
        (["reinit:1-14"], 'grid.ablation = "reinit:1-14": this encoder has layers 1-12.'),
        (["reinits:1"], "Did you mean 'reinit'?"),
        ([""], 'grid.ablation = "": '),
    ],
)
def test_wrong_ablations_are_refused(names, message):
    """An ablation that is unknown, beyond the encoder or named twice is refused by its name."""
    study = study_of(grid__ablation=names)
    with pytest.raises(StudyError) as caught:
        plan_of(study)
    assert str(caught.value).startswith("study: ")
    assert message in str(caught.value)


def test_a_smaller_encoder_has_fewer_layers_to_name():
    """Layers that one encoder has may be beyond another one."""
    study = study_of(grid__ablation=["reinit:11-12"])
    small = replace(resolved_of(study), encoder=replace(ENCODER, n_layers=6))
    with pytest.raises(StudyError, match="reinit:11-12"):
        planned(study, small)
