"""Two small tokenizers, built here: WordPiece as in BERT, Unigram with `▁` as in XLM-R."""

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

WORDPIECE = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "sat", "##s", "on", "a", "mat", "."]
UNIGRAM = ["<s>", "<pad>", "</s>", "<unk>", "▁", "▁the", "▁cat", "s", "の", "猫", "a", "▁a"]


@pytest.fixture(scope="session")
def wordpiece():
    vocabulary = {piece: i for i, piece in enumerate(WORDPIECE)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
    )


@pytest.fixture(scope="session")
def unigram():
    scores = [(piece, -1.0 - 0.01 * i) for i, piece in enumerate(UNIGRAM)]
    tokenizer = Tokenizer(models.Unigram(scores, unk_id=3, byte_fallback=False))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="</s>",
    )
