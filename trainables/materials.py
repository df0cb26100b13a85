"""What a trial works with: its device and its files, cut into pieces and windows."""

import os
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import torch

from trainables.ablations.gold_pos import is_told
from trainables.data.batching import Units, Words, make_windows
from trainables.data.subwords import Corpus, Vocabulary, load_corpus, vocabulary
from trainables.data.texts import TextCorpus, Texts, load_texts
from trainables.data.truncation import truncated
from trainables.encoders.pretrained import load_tokenizer
from trainables.heads.gold_tags import numbers
from trainables.memory import cap, restart_peak
from trainables.pace import Pace
from trainables.registry import TEXT_LAYOUTS
from trainables.spec import DataRef, EncoderRef, TrialOptions, TrialSpec, Workspace

_AHEAD = 56
"""Most files that are read ahead; those of training and texts in the cache come on top."""


@dataclass(frozen=True)
class Materials:
    """The device, the special pieces and the files of one trial.

    `max_positions` is the longest input the encoder takes, special pieces included. `pace` times
    the machine beside the trial. Corpora and windows stay loaded in the process, so the next trial
    of a warm worker finds them.
    """

    spec: TrialSpec
    workspace: Workspace
    max_positions: int
    device: torch.device = field(init=False)
    special: Vocabulary = field(init=False)
    pace: Pace = field(init=False, compare=False)

    def __post_init__(self) -> None:
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        torch.set_num_threads(self.workspace.threads)
        device = torch.device(self.workspace.device)
        cap(device, self.workspace.memory_fraction)
        restart_peak(device)
        object.__setattr__(self, "device", device)
        object.__setattr__(self, "pace", Pace(device))
        object.__setattr__(self, "special", vocabulary(load_tokenizer(self.spec.encoder)))

    @property
    def cache(self) -> str:
        """Folder of tokenised data."""
        return str(Path(self.workspace.cache).expanduser().absolute())

    @property
    def longest(self) -> int:
        """Most pieces of a window, special ones included."""
        return min(self.spec.options.max_length, self.max_positions)

    def corpus(self, ref: DataRef) -> Corpus | TextCorpus:
        """What a file holds, in pieces: sentences of words, or texts."""
        if ref.layout in TEXT_LAYOUTS:
            return load_texts(ref, self.spec.encoder, self.cache, self.longest)
        return self.sentences(ref)

    def sentences(self, ref: DataRef) -> Corpus:
        """The sentences of a file of words, in pieces."""
        return self._words(ref).corpus

    def units(self, ref: DataRef) -> Units:
        """What a file holds, in windows that the encoder can take: long texts cut, no word lost."""
        encoder = self.spec.encoder
        if ref.layout in TEXT_LAYOUTS:
            return Texts(load_texts(ref, encoder, self.cache, self.longest), self.special.pad)
        words = self._words(ref)
        if not is_told(self.spec.ablation):
            return words
        return replace(words, tags=numbers(words.corpus.upos))

    def get_ready(self, *refs: DataRef) -> None:
        """Read files that this process has not read yet, so that nothing later waits for them.

        More files than a process keeps are left for later, or each would be read twice.
        """
        if len(refs) > _AHEAD:
            return
        for ref in refs:
            if ref.layout in TEXT_LAYOUTS:
                self.corpus(ref)
            else:
                self._words(ref)

    def _words(self, ref: DataRef) -> Words:
        options = replace(self.spec.options, max_length=self.longest)
        return _words(ref, self.spec.encoder, self.cache, options)


@lru_cache(maxsize=128)
def _words(ref: DataRef, encoder: EncoderRef, cache: str, options: TrialOptions) -> Words:
    special = vocabulary(load_tokenizer(encoder))
    capacity = options.max_length - special.n_special
    corpus = load_corpus(ref, encoder, cache)
    if options.denominator == "legacy":
        corpus = truncated(corpus, capacity)
    overlap = min(options.overlap, capacity // 2)
    windows = make_windows(corpus, capacity=capacity, overlap=overlap)
    return Words(corpus, windows, special)
