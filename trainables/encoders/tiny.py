"""Tiny seeded encoders of five architectures with real tokenizers, for tests and demos; no network.

Their weights are random: they stand in for a pretrained encoder in shape, not in knowledge.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from trainables.encoders.pretrained import quiet

SCRIPTS = (
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    ".,;:!?'\"()-_/%&@#*+=<>$[]{}|~^`\\"
    "äöüßéèêàâçñáíóúåøæąęłńśźżčšžřěığşİ¿¡«»“”\u2019\u2013…"
    "абвгдеёжзийклмнопрстуфхцчшщъыьэюяАБВГДЕЖЗИКЛМНОПРСТУФХЦЧШЭЮЯ"
    "ابتثجحخدذرزسشصضطظعغفقكلمنهويىءآأإئؤة،؟"
    "अआइईउऊएऐओऔकखगघचछजझटठडढणतथदधनपफबभमयरलवशषसहािीुूेैोौं्।"
    "的一是不了人在有我他这中大来上国个到说们年和地出道也时要就下。\uff0c、"
    "あいうえおかきくけこさしすせそたちつてとなにぬねのはひふへほまみむめもやゆよらりるれろわをん"
    "가나다라마바사아자차카타파하는은이을를의에고한"
)
"""Characters that every tiny vocabulary has a piece for."""


@dataclass(frozen=True)
class Kind:
    """What one architecture is made of.

    Attributes:
        config: Name of its transformers config class.
        tokenizer: Builds its tokenizer from whole-word pieces.
        special: (padding, start, end, unknown).
        settings: Sizes and switches of its config for (layers, hidden size).
    """

    config: str
    tokenizer: Callable[[Sequence[str], tuple[str, str, str, str]], Any]
    special: tuple[str, str, str, str]
    settings: Callable[[int, int], Mapping[str, Any]]


def tiny_encoder(
    folder: Path,
    *,
    architecture: str = "bert",
    n_layers: int = 4,
    hidden: int = 32,
    vocabulary: Sequence[str] | None = None,
    seed: int = 0,
) -> Path:
    """Write a tiny encoder and its tokenizer as `save_pretrained` would.

    Args:
        folder: Made if need be.
        architecture: `bert`, `distilbert` (WordPiece), `xlm-roberta`, `deberta-v2` (Unigram;
            some words begin with a bare word-start mark) or `modernbert` (byte-level).
        n_layers: Number of blocks.
        hidden: Width; a multiple of 16.
        vocabulary: Whole words that get a piece of their own, beside one for each character.
        seed: Of the weights; equal seeds give equal bytes.

    Returns:
        The folder.

    Raises:
        ValueError: unknown architecture, or a width that is no multiple of 16.
    """
    if architecture not in KINDS:
        raise ValueError(f"unknown architecture '{architecture}'. Known: {', '.join(KINDS)}.")
    if hidden % 16:
        raise ValueError(f"hidden = {hidden}: not a multiple of 16 (the size of a head).")
    import transformers

    kind = KINDS[architecture]
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = kind.tokenizer(tuple(dict.fromkeys(vocabulary or ())), kind.special)
    padding, start, end, unknown = kind.special
    tokenizer.save(str(folder / "tokenizer.json"))
    about = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": padding,
        "cls_token": start,
        "sep_token": end,
        "unk_token": unknown,
        "model_max_length": MAX_POSITIONS,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(about, indent=1), encoding="utf-8")
    config = getattr(transformers, kind.config)(
        vocab_size=tokenizer.get_vocab_size(),
        pad_token_id=tokenizer.token_to_id(padding),
        bos_token_id=tokenizer.token_to_id(start),
        eos_token_id=tokenizer.token_to_id(end),
        cls_token_id=tokenizer.token_to_id(start),
        sep_token_id=tokenizer.token_to_id(end),
        initializer_range=0.1,  # at this width 0.02 lets hardly any signal through
        **kind.settings(n_layers, hidden),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = transformers.AutoModel.from_config(config)
    if getattr(model, "pooler", None) is not None:
        model.pooler = None
    with quiet():
        model.save_pretrained(folder)
    return folder


MAX_POSITIONS = 128
"""Longest input of a tiny encoder, special pieces included."""


def _bert(n_layers: int, hidden: int) -> Mapping[str, Any]:
    return {
        "hidden_size": hidden,
        "num_hidden_layers": n_layers,
        "num_attention_heads": hidden // 16,
        "intermediate_size": 2 * hidden,
        "max_position_embeddings": MAX_POSITIONS,
    }


def _xlmr(n_layers: int, hidden: int) -> Mapping[str, Any]:
    # Positions are counted from after the padding index, 1.
    return {**_bert(n_layers, hidden), "max_position_embeddings": MAX_POSITIONS + 2}


def _distilbert(n_layers: int, hidden: int) -> Mapping[str, Any]:
    return {
        "dim": hidden,
        "n_layers": n_layers,
        "n_heads": hidden // 16,
        "hidden_dim": 2 * hidden,
        "max_position_embeddings": MAX_POSITIONS,
    }


def _deberta(n_layers: int, hidden: int) -> Mapping[str, Any]:
    # As mDeBERTa-v3: relative positions only, one table of them for all layers.
    return {
        **_bert(n_layers, hidden),
        "relative_attention": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_buckets": 16,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
        "position_biased_input": False,
        "type_vocab_size": 0,
    }


def _modernbert(n_layers: int, hidden: int) -> Mapping[str, Any]:
    return {**_bert(n_layers, hidden), "local_attention": 16}


def _around(tokenizer: Any, start: str, end: str) -> None:  # noqa: ANN401 - tokenizers ships no types
    """Put the special pieces around every text."""
    from tokenizers.processors import TemplateProcessing

    ids = [(token, tokenizer.token_to_id(token)) for token in (start, end)]
    tokenizer.post_processor = TemplateProcessing(
        single=f"{start} $A {end}", pair=f"{start} $A {end} $B:1 {end}:1", special_tokens=ids
    )


def _wordpiece(words: Sequence[str], special: tuple[str, str, str, str]) -> Any:  # noqa: ANN401 - as above
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    padding, start, end, unknown = special
    chars = list(dict.fromkeys(SCRIPTS))
    pieces = [padding, unknown, start, end, "[MASK]", *chars, *(f"##{c}" for c in chars), *words]
    vocab = {piece: i for i, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token=unknown, max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens([*special, "[MASK]"])
    _around(tokenizer, start, end)
    return tokenizer


def _unigram(words: Sequence[str], special: tuple[str, str, str, str]) -> Any:  # noqa: ANN401 - as above
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    padding, start, end, unknown = special
    chars = list(dict.fromkeys(SCRIPTS))
    # As in XLM-R: Latin letters begin a word with its mark, other scripts after a bare one.
    marked = [f"▁{c}" for c in chars if c.isascii() and c.isalnum()]
    scored = {start: 0.0, padding: 0.0, end: 0.0, unknown: 0.0, "▁": -4.0}
    scored |= dict.fromkeys(chars, -6.0) | dict.fromkeys(marked, -7.0)
    scored |= {f"▁{word}": -5.0 for word in words}
    tokenizer = Tokenizer(models.Unigram(list(scored.items()), unk_id=3, byte_fallback=False))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.add_special_tokens(list(special))
    _around(tokenizer, start, end)
    return tokenizer


def _byte_level(words: Sequence[str], special: tuple[str, str, str, str]) -> Any:  # noqa: ANN401 - as above
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    split = pre_tokenizers.ByteLevel(add_prefix_space=False)
    padding, start, end, unknown = special
    vocab = [padding, start, end, unknown, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    merges: list[tuple[str, str]] = []
    for word in words:
        text = split.pre_tokenize_str(f" {word}")[0][0]
        for n in range(1, len(text)):
            merges.append((text[:n], text[n]))
            vocab.append(text[: n + 1])
    model = models.BPE(
        {piece: i for i, piece in enumerate(dict.fromkeys(vocab))}, list(dict.fromkeys(merges))
    )
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = split
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(special))
    _around(tokenizer, start, end)
    return tokenizer


_BERT_SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[UNK]")
_XLMR_SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")

KINDS: Mapping[str, Kind] = {
    "bert": Kind("BertConfig", _wordpiece, _BERT_SPECIAL, _bert),
    "distilbert": Kind("DistilBertConfig", _wordpiece, _BERT_SPECIAL, _distilbert),
    "xlm-roberta": Kind("XLMRobertaConfig", _unigram, _XLMR_SPECIAL, _xlmr),
    "deberta-v2": Kind("DebertaV2Config", _unigram, _BERT_SPECIAL, _deberta),
    "modernbert": Kind("ModernBertConfig", _byte_level, _BERT_SPECIAL, _modernbert),
}
"""Architecture -> what it is made of."""
