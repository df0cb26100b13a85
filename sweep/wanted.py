"""What a request asks for, as keys of measurements, and what of it is still absent; pure."""

from collections.abc import Set as AbstractSet
from dataclasses import replace

from trainables.spec import Request, SimilarityRequest

Pair = tuple[str, str, str, str]
"""A comparison without its trial: state, the two data keys in sorted order, measure."""

Key = str | Pair
"""A measurement without its trial: `DataRef.key` of what was scored, or a comparison."""

_REQUESTS = 1000  # requests whose keys are remembered; the trials of a grid share few


class Wants:
    """Keys of requests, remembered: a plan asks about one request for thousands of trials."""

    def __init__(self) -> None:
        self._keys: dict[tuple[int, bool], tuple[Request, frozenset[Key]]] = {}

    def rest(self, request: Request, have: AbstractSet[Key], *, is_probe: bool) -> Request | None:
        """What of a request is not among the keys in hand.

        Args:
            request: What is to be measured.
            have: What was measured on this trial.
            is_probe: Whether states are those of the pretrained encoder.

        Returns:
            None when nothing is left; else the targets without scores and the least similarity
            request that holds all absent comparisons.
        """
        if self.keys(request, is_probe=is_probe) <= have:
            return None
        targets = tuple(target for target in request.targets if target.key not in have)
        similarity = request.similarity and _rest(request.similarity, have, is_probe=is_probe)
        return replace(request, targets=targets, similarity=similarity)

    def keys(self, request: Request, *, is_probe: bool) -> frozenset[Key]:
        """Keys of all that a request asks for."""
        name = (id(request), is_probe)
        if name not in self._keys:
            if len(self._keys) >= _REQUESTS:
                self._keys.clear()
            targets = {target.key for target in request.targets}
            pairs = _pairs(request.similarity, is_probe=is_probe) if request.similarity else {}
            # The request itself is held too, so that its id stays its own.
            self._keys[name] = (request, frozenset({*targets, *pairs}))
        return self._keys[name][1]


def pair(state: str, one: str, other: str, measure: str) -> Pair:
    """All our measures are symmetric, so that a comparison counts in either direction."""
    return (state, *sorted((one, other)), measure)  # type: ignore[return-value]  # sorted keeps two


def _pairs(request: SimilarityRequest, *, is_probe: bool) -> dict[Pair, tuple[str, str]]:
    """Keys of all comparisons asked for -> the pivot and the language compared with it."""
    state = "pretrained" if is_probe else "fine-tuned"
    keys = {ref.language: ref.key for ref in request.parallel}
    return {
        pair(state, keys[pivot], keys[language], measure): (pivot, language)
        for measure in request.measures
        for pivot in request.pivots
        for language in keys
        if language != pivot
    }


def _rest(
    request: SimilarityRequest, have: AbstractSet[Key], *, is_probe: bool
) -> SimilarityRequest | None:
    """The least request that holds every absent comparison.

    It may hold some that are known, when measures and languages were added at once; the rows
    that were there first stay. Where sentences that some language lacks are dropped, all
    languages stay, because together they decide which sentences are compared.
    """
    absent = {
        key: pair for key, pair in _pairs(request, is_probe=is_probe).items() if key not in have
    }
    if not absent:
        return None
    measures = {measure for *_, measure in absent}
    pivots = {pivot for pivot, _ in absent.values()}
    languages = pivots | {language for _, language in absent.values()}
    if request.unmatched == "drop":
        languages |= {ref.language for ref in request.parallel}
    return replace(
        request,
        parallel=tuple(ref for ref in request.parallel if ref.language in languages),
        pivots=tuple(pivot for pivot in request.pivots if pivot in pivots),
        measures=tuple(measure for measure in request.measures if measure in measures),
    )
