"""Parallel sentences in one model -> similarity of every layer and language pair."""

import json
from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from trainables.data.parallel import align
from trainables.data.sentence import Sentence
from trainables.encoders.pretrained import load_tokenizer
from trainables.materials import Materials
from trainables.model import Model
from trainables.registry import SIMILARITIES, load
from trainables.seeding import stream
from trainables.similarity.base import Measure, compare
from trainables.similarity.published import published_states
from trainables.spec import DataRef, Similarity, SimilarityRequest, State

Pooled = Float[np.ndarray, "layers n d"]
"""Mean states of the sentences of one file, in the file's own order."""


def compare_languages(
    request: SimilarityRequest,
    states: Mapping[str, Pooled],
    model: Model,
    materials: Materials,
) -> tuple[Similarity, ...]:
    """Compare each pivot with every other language, layer by layer.

    Args:
        request: Files, pivots and measures.
        states: Pooled states by `DataRef.key`.
        model: Looked at once more by measures that pool in a way of their own.
        materials: Files of the trial.

    Raises:
        DataError: the files do not hold the same sentences.
    """
    refs = {ref.language: ref for ref in request.parallel}
    order = _common_order(request, materials)
    state: State = "pretrained" if materials.spec.train is None else "fine-tuned"
    found: list[Similarity] = []
    for name in request.measures:
        measure: Measure = load("similarity measure", name, SIMILARITIES)
        if measure.pooling == "published":
            texts = {language: materials.sentences(ref).texts for language, ref in refs.items()}
            tokenizer = load_tokenizer(materials.spec.encoder)
            aligned = {
                language: published_states(
                    model.encoder, tokenizer, [texts[language][i] for i in order[language]]
                )
                for language in refs
            }
        else:
            aligned = {
                language: states[ref.key][:, order[language]] for language, ref in refs.items()
            }
        options = json.dumps(measure.options() | _taken(materials), sort_keys=True)
        found += [
            Similarity(
                state=state,
                source=row.source,
                target=row.target,
                source_key=refs[row.source].key,
                target_key=refs[row.target].key,
                layer=row.layer,
                measure=name,
                value=row.value,
                n=row.n,
                null_mean=row.null_mean,
                null_95=row.null_95,
                options=options,
            )
            for row in compare(
                aligned,
                request.pivots,
                name,
                request.null_draws,
                stream(0, "null", name),
                threads=materials.workspace.threads,
            )
        ]
    return tuple(found)


def _common_order(request: SimilarityRequest, materials: Materials) -> Mapping[str, list[int]]:
    """Where each language keeps the sentences that all have, in one order."""

    def heads(ref: DataRef) -> tuple[str, list[Sentence]]:
        corpus = materials.sentences(ref)
        named = zip(corpus.sent_ids, corpus.orig_ids, corpus.lines, strict=True)
        sentences = [
            Sentence(sent_id=sent_id, orig_id=orig_id, line=line, text="", words=())
            for sent_id, orig_id, line in named
        ]
        return ref.location, sentences

    return align({ref.language: heads(ref) for ref in request.parallel}, request.unmatched)


def _taken(materials: Materials) -> dict[str, object]:
    """How the states were taken, beside what the measure itself says (D-22)."""
    options = materials.spec.options
    return {"max_length": options.max_length, "precision": materials.spec.precision}
