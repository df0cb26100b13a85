"""The invented languages as files: treebanks, names, parallel sentences, as anybody publishes them.

FOLDER/UD_Aren-Toy/qaa_toy-ud-{train,dev,test}.conllu     other sentences in each language
FOLDER/UD_Aren-Parallel/qaa_par-ud-test.conllu            the same ones, with the same ids
FOLDER/UNER_Aren-Toy/qaa_toy-ud-{train,dev,test}.iob2     the names in those treebanks
FOLDER/UNER_Aren-Parallel/qaa_par-ud-test.iob2
FOLDER/toy.json                                           version, and the hash of each file
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from filelock import FileLock

from trainables.data.sentence import Sentence
from trainables.toy.grammar import sentences
from trainables.toy.languages import LANGUAGES, VERSION
from trainables.toy.rendering import render

SIZES = {"train": 500, "dev": 100, "test": 100}
"""Sentences of each part of a treebank."""

N_PARALLEL = 200
"""Sentences that all languages share."""

MANIFEST = "toy.json"


def treebank(code: str, split: str) -> list[Sentence]:
    """The sentences of one part of a language's own treebank; no other language has them."""
    trees = sentences(f"{code}-{split}", SIZES[split])
    return [render(tree, code, f"{code}-{split}-{k}") for k, tree in enumerate(trees, 1)]


def parallel(code: str) -> list[Sentence]:
    """The sentences that are the same in all languages, in one of them."""
    trees = sentences("parallel", N_PARALLEL)
    return [render(tree, code, f"par-{k}") for k, tree in enumerate(trees, 1)]


def write_toy(folder: Path) -> Path:
    """Write all files of all languages below a folder; equal bytes whenever and wherever it is run.

    Args:
        folder: Made if need be; files that are there are written anew.

    Returns:
        The folder.
    """
    hashes = {}
    for name, text in _files():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        hashes[name] = hashlib.sha256(text.encode()).hexdigest()
    about = {"version": VERSION, "sha256": hashes}
    (folder / MANIFEST).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    return folder


def cached_toy(cache: Path) -> Path:
    """The folder of the files below a cache, written on first use and whole whenever it is seen.

    Args:
        cache: Folder of what can be made again.
    """
    folder = cache / f"toy-{VERSION}"
    if (folder / MANIFEST).is_file():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / f"toy-{VERSION}.lock"):
        if not (folder / MANIFEST).is_file():
            shutil.rmtree(folder, ignore_errors=True)  # left by a kill
            aside = Path(tempfile.mkdtemp(dir=cache, prefix=".toy-"))
            os.replace(write_toy(aside), folder)  # noqa: PTH105 - atomic
    return folder


def conllu(found: Sequence[Sentence]) -> str:
    """Sentences in CoNLL-U."""
    return "".join(_conllu_sentence(sentence) for sentence in found)


def iob2(found: Sequence[Sentence]) -> str:
    """The names of sentences, as Universal NER writes them."""
    return "".join(_iob2_sentence(sentence) for sentence in found)


def _files() -> Iterator[tuple[str, str]]:
    for code, language in LANGUAGES.items():
        for split in SIZES:
            own = treebank(code, split)
            yield f"UD_{language.name}-Toy/{code}_toy-ud-{split}.conllu", conllu(own)
            yield f"UNER_{language.name}-Toy/{code}_toy-ud-{split}.iob2", iob2(own)
        common = parallel(code)
        yield f"UD_{language.name}-Parallel/{code}_par-ud-test.conllu", conllu(common)
        yield f"UNER_{language.name}-Parallel/{code}_par-ud-test.iob2", iob2(common)


def _conllu_sentence(sentence: Sentence) -> str:
    rows = zip(sentence.words, sentence.upos, sentence.heads, sentence.deprels, strict=True)
    lines = [f"# sent_id = {sentence.sent_id}", f"# text = {sentence.text}"]
    for number, (word, upos, head, deprel) in enumerate(rows, 1):
        is_glued = number < len(sentence.words) and sentence.upos[number] == "PUNCT"
        misc = "SpaceAfter=No" if is_glued else "_"
        lines.append(f"{number}\t{word}\t_\t{upos}\t_\t_\t{head}\t{deprel}\t_\t{misc}")
    return "\n".join(lines) + "\n\n"


def _iob2_sentence(sentence: Sentence) -> str:
    lines = [f"# sent_id = {sentence.sent_id}", f"# text = {sentence.text}"]
    for number, (word, tag) in enumerate(zip(sentence.words, sentence.tags, strict=True), 1):
        lines.append(f"{number}\t{word}\t{tag}\t-\ttoy")
    return "\n".join(lines) + "\n\n"
