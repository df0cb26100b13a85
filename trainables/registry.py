"""All that a study may name, on one screen: name -> "module:object", loaded on use.

Nothing registers itself by being imported, so a study can be checked without torch.
"""

import difflib
import importlib
from collections.abc import Mapping
from typing import Any

TASKS: Mapping[str, str] = {
    "upos": "trainables.tasks.upos:Upos",
    "ner": "trainables.tasks.ner:Ner",
    "parsing": "trainables.tasks.parsing:Parsing",
    "xnli": "trainables.tasks.classification:Xnli",
    "pawsx": "trainables.tasks.classification:PawsX",
    "topic": "trainables.tasks.classification:Topic",
    "langid": "trainables.tasks.langid:LanguageIdentification",
}

FINE_TUNING = "trainables.finetuning:fine_tune"
"""How tasks are learnt that `LEARNERS` does not name."""

LEARNERS: Mapping[str, str] = {
    "langid": "trainables.probing:probe_layers",
}

ENCODERS: Mapping[str, str] = {
    "pretrained": "trainables.encoders.pretrained:load_encoder",
}

SHIPPED_ENCODERS: Mapping[str, str] = {
    "toy": "toy/encoder",
}
"""Encoders that come with this package: name -> folder in it. A folder of one's own that is called
like one of them is written `./toy`."""

SHIPPED_DATA: Mapping[str, str] = {
    "toy": "trainables.toy.corpus:cached_toy",
}
"""Data that this package makes: name, as `data.root` -> what writes them below a cache folder."""

ABLATIONS: Mapping[str, str] = {
    "ref": "trainables.ablations.reference:Reference",
    "all": "trainables.ablations.random_init:FromScratch",
    "reinit": "trainables.ablations.random_init:RandomInit",
    "freeze": "trainables.ablations.freeze:Freeze",
    "gold-pos": "trainables.ablations.gold_pos:GoldPos",
}

SIMILARITIES: Mapping[str, str] = {
    "linear-cka": "trainables.similarity.cka:LINEAR",
    "debiased-cka": "trainables.similarity.cka:DEBIASED",
    "rbf-cka": "trainables.similarity.cka:RBF",
    "rbf-published": "trainables.similarity.published:RBF_PUBLISHED",
    "uncentred-cka": "trainables.similarity.cka:UNCENTRED",
    "cosine": "trainables.similarity.cosine:COSINE",
}

LAYOUTS: Mapping[str, str] = {
    "conllu": "trainables.data.conllu:read_conllu",
    "wikiann": "trainables.data.bio:read_wikiann",
    "panx": "trainables.data.bio:read_panx",
    "masakhaner": "trainables.data.bio:read_masakhaner",
    "conll": "trainables.data.bio:read_conll",
    "uner": "trainables.data.bio:read_uner",
    "udpos": "trainables.data.bio:read_udpos",
    "xnli": "trainables.data.tsv:read_xnli",
    "kornli": "trainables.data.tsv:read_kornli",
    "americasnli": "trainables.data.tsv:read_americasnli",
    "pawsx": "trainables.data.tsv:read_pawsx",
    "pawsx-final": "trainables.data.tsv:read_pawsx_final",
    "sib200": "trainables.data.tsv:read_sib200",
    "masakhanews": "trainables.data.tsv:read_masakhanews",
    "mldoc": "trainables.data.tsv:read_mldoc",
    "wili": "trainables.data.tsv:read_wili",
}

TEXT_LAYOUTS = frozenset(
    {
        "xnli",
        "kornli",
        "americasnli",
        "pawsx",
        "pawsx-final",
        "sib200",
        "masakhanews",
        "mldoc",
        "wili",
    }
)
"""Layouts of texts with a class each; the others are of sentences of words."""


class UnknownName(LookupError):  # noqa: N818 - the name a researcher reads; not an "Error" of ours
    """A study names something that no table holds; the message lists what there is."""


def check_name(kind: str, name: str, table: Mapping[str, str]) -> None:
    """Refuse a name that `table` does not hold, with the closest one that it does.

    Raises:
        UnknownName: `name` is not in `table`.
    """
    if name in table:
        return
    close = difflib.get_close_matches(name, table, n=1)
    hint = f" Did you mean '{close[0]}'?" if close else ""
    raise UnknownName(f"unknown {kind} '{name}'.{hint} Known: {', '.join(sorted(table))}.")


def load(kind: str, name: str, table: Mapping[str, str]) -> Any:  # noqa: ANN401 - any object
    """Import what `name` stands for.

    Raises:
        UnknownName: `name` is not in `table`.
    """
    check_name(kind, name, table)
    module, _, attribute = table[name].partition(":")
    return getattr(importlib.import_module(module), attribute)
