"""Codes as people read them: languages, ablations, tasks, metrics; and the order of tables."""

import re

LANGUAGES = {
    "af": "Afrikaans", "akk": "Akkadian", "am": "Amharic", "ar": "Arabic", "be": "Belarusian",
    "bg": "Bulgarian", "bho": "Bhojpuri", "bm": "Bambara", "bn": "Bengali", "br": "Breton",
    "bxr": "Buryat", "bxu": "Buryat (China)", "ca": "Catalan", "ckb": "Central Kurdish",
    "cop": "Coptic", "cs": "Czech", "cu": "Old Church Slavonic", "cy": "Welsh", "da": "Danish",
    "de": "German", "el": "Greek", "en": "English", "es": "Spanish", "et": "Estonian",
    "eu": "Basque", "fa": "Persian", "fao": "Faroese", "fi": "Finnish", "fo": "Faroese",
    "fr": "French", "fro": "Old French", "ga": "Irish", "gd": "Scottish Gaelic", "gl": "Galician",
    "got": "Gothic", "grc": "Ancient Greek", "gsw": "Swiss German", "gun": "Mbya Guarani",
    "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hsb": "Upper Sorbian", "hu": "Hungarian",
    "hy": "Armenian", "id": "Indonesian", "is": "Icelandic", "it": "Italian", "ja": "Japanese",
    "jv": "Javanese", "ka": "Georgian", "kk": "Kazakh", "kmr": "Kurmanji", "ko": "Korean",
    "kpv": "Komi-Zyrian", "krl": "Karelian", "la": "Latin", "lt": "Lithuanian", "lv": "Latvian",
    "lzh": "Classical Chinese", "mhr": "Meadow Mari", "ml": "Malayalam", "mlt": "Maltese",
    "mr": "Marathi", "ms": "Malay", "mt": "Maltese", "my": "Burmese", "myv": "Erzya",
    "nl": "Dutch", "no": "Norwegian", "nrz": "Narom", "olo": "Livvi", "orv": "Old East Slavic",
    "pcm": "Naija", "pl": "Polish", "pt": "Portuguese", "qhe": "Hindi-English", "ro": "Romanian",
    "ru": "Russian", "sa": "Sanskrit", "sd": "Sindhi", "sk": "Slovak", "sl": "Slovenian",
    "sme": "North Sami", "so": "Somali", "sq": "Albanian", "sr": "Serbian", "sv": "Swedish",
    "sw": "Swahili", "swl": "Swedish Sign Language", "ta": "Tamil", "te": "Telugu", "th": "Thai",
    "tl": "Tagalog", "tr": "Turkish", "ug": "Uyghur", "uk": "Ukrainian", "ur": "Urdu",
    "vi": "Vietnamese", "wbp": "Warlpiri", "wo": "Wolof", "xmf": "Mingrelian", "yo": "Yoruba",
    "yue": "Cantonese", "zh": "Chinese",
}  # fmt: skip
"""Language code, as UD writes it -> English name."""

TASKS = {
    "upos": "POS tagging",
    "parsing": "Dependency parsing",
    "ner": "Named entities",
    "xnli": "XNLI",
    "pawsx": "PAWS-X",
    "topic": "Document topic",
    "langid": "Language identification",
    "probe": "Pretrained encoder",
}
METRICS = {
    "accuracy": "accuracy",
    "las": "LAS",
    "uas": "UAS",
    "las_full": "LAS of whole labels",
    "las_no_punct": "LAS without punctuation",
    "uas_no_punct": "UAS without punctuation",
    "f1": "F1",
    "f1_lenient": "span F1",
    "f1_strict": "span F1, strict",
    "f1_macro": "macro F1",
    "f1_micro": "micro F1",
    "pos_f1_xtreme": "POS F1 as in XTREME",
}
MEASURES = {
    "linear-cka": "linear CKA",
    "debiased-cka": "debiased CKA",
    "rbf-cka": "RBF CKA",
    "rbf-published": "RBF CKA, as published",
    "uncentred-cka": "uncentred CKA",
    "cosine": "cosine",
}

REFERENCE = "ref"
"""The ablation that changes nothing."""

_VERBS = {
    "reinit": "re-initialising",
    "freeze": "freezing",
    "fuse": "fusing",
    "features": "using frozen features",
    "adapt": "adapting to",
    "translit": "transliterating to",
    "gold-pos": "feeding gold tags",
}


def language(code: str) -> str:
    """English name; the code itself where we know none."""
    return LANGUAGES.get(code, code)


def task(name: str) -> str:
    """The task as a heading."""
    return TASKS.get(name, name)


def metric(name: str) -> str:
    """The metric, with the capitals of prose."""
    return METRICS.get(name, name)


def measure(name: str) -> str:
    """The similarity measure, as prose."""
    return MEASURES.get(name, name)


def ablation_column(text: str) -> str:
    """Head of a table's column: the paper's `1-2` for `reinit:1-2`, else the ablation itself."""
    if text == REFERENCE:
        return "REF"
    kind, _, layers = text.partition(":")
    return layers if kind == "reinit" and "+" not in text else text


def ablation_phrase(text: str) -> str:
    """What an ablation does, to open a sentence's middle: `re-initialising layers 1-2`."""
    if text == REFERENCE:
        return "changing nothing"
    return " and ".join(_part_phrase(part) for part in text.split("+"))


def _part_phrase(part: str) -> str:
    kind, _, rest = part.partition(":")
    if kind == "all":
        return "training from random weights"
    verb = _VERBS.get(kind, f"ablation {kind}")
    if not rest:
        return verb
    if not re.fullmatch(r"[\d,\-]+", rest):
        return f"{verb} {rest}"
    noun = "layer" if rest.isdigit() else "layers"
    return f"{verb} {noun} {rest.replace(',', ', ')}"


def ablation_order(text: str) -> tuple[int, str, tuple[tuple[int, ...], ...], str]:
    """Sort key: the reference, then `all`, then by kind, number of layers and first layer.

    So the pairs 1-2 ... 11-12 stand together in their order, after the single layers.
    """
    kind, _, rest = text.partition(":")
    first = {REFERENCE: 0, "all": 1}.get(text, 2)
    spans = tuple(
        tuple(map(int, span)) for span in re.findall(r"(\d+)(?:-(\d+))?", rest) if span[1]
    )
    width = sum(b - a + 1 for a, b in spans) if spans else len(re.findall(r"\d+", rest))
    layers = tuple(int(number) for number in re.findall(r"\d+", rest))
    return first, kind, ((width,), layers), text
