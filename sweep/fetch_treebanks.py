"""Universal Dependencies on GitHub: which repository holds a treebank, and what its files are."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

LATEST = 17
"""Minor number of the newest 2.x release that a search for a missing file looks at."""

FIRST_NAMED = (2, 2)
"""From this release on files carry the treebank: `en_ewt-ud-dev.conllu`, not `en-ud-dev.conllu`."""

TREEBANKS: Mapping[str, str] = {
    "af_afribooms": "Afrikaans-AfriBooms",
    "ar_padt": "Arabic-PADT",
    "ar_pud": "Arabic-PUD",
    "bg_btb": "Bulgarian-BTB",
    "bm_crb": "Bambara-CRB",
    "bxr_bdt": "Buryat-BDT",
    "ca_ancora": "Catalan-AnCora",
    "cs_cac": "Czech-CAC",
    "cs_cltt": "Czech-CLTT",
    "cs_fictree": "Czech-FicTree",
    "cs_pdt": "Czech-PDT",
    "cs_pud": "Czech-PUD",
    "da_ddt": "Danish-DDT",
    "de_gsd": "German-GSD",
    "de_pud": "German-PUD",
    "el_gdt": "Greek-GDT",
    "en_ewt": "English-EWT",
    "en_gum": "English-GUM",
    "en_lines": "English-LinES",
    "en_partut": "English-ParTUT",
    "en_pud": "English-PUD",
    "es_ancora": "Spanish-AnCora",
    "es_gsd": "Spanish-GSD",
    "es_pud": "Spanish-PUD",
    "et_edt": "Estonian-EDT",
    "eu_bdt": "Basque-BDT",
    "fa_seraji": "Persian-Seraji",
    "fi_ftb": "Finnish-FTB",
    "fi_pud": "Finnish-PUD",
    "fi_tdt": "Finnish-TDT",
    "fo_oft": "Faroese-OFT",
    "fr_gsd": "French-GSD",
    "fr_partut": "French-ParTUT",
    "fr_pud": "French-PUD",
    "fr_sequoia": "French-Sequoia",
    "gl_pud": "Galician-PUD",
    "gsw_uzh": "Swiss_German-UZH",
    "he_htb": "Hebrew-HTB",
    "hi_hdtb": "Hindi-HDTB",
    "hi_pud": "Hindi-PUD",
    "hr_set": "Croatian-SET",
    "hu_szeged": "Hungarian-Szeged",
    "id_gsd": "Indonesian-GSD",
    "id_pud": "Indonesian-PUD",
    "is_pud": "Icelandic-PUD",
    "it_isdt": "Italian-ISDT",
    "it_partut": "Italian-ParTUT",
    "it_pud": "Italian-PUD",
    "ja_gsd": "Japanese-GSD",
    "ja_pud": "Japanese-PUD",
    "ko_gsd": "Korean-GSD",
    "ko_kaist": "Korean-Kaist",
    "ko_pud": "Korean-PUD",
    "la_proiel": "Latin-PROIEL",
    "lv_lvtb": "Latvian-LVTB",
    "mt_mudt": "Maltese-MUDT",
    "nl_alpino": "Dutch-Alpino",
    "nl_lassysmall": "Dutch-LassySmall",
    "no_bokmaal": "Norwegian-Bokmaal",
    "no_nynorsk": "Norwegian-Nynorsk",
    "olo_kkpp": "Livvi-KKPP",
    "pcm_nsc": "Naija-NSC",
    "pl_lfg": "Polish-LFG",
    "pl_pdb": "Polish-PDB",
    "pl_pud": "Polish-PUD",
    "pl_sz": "Polish-PDB",  # renamed after release 2.3; old releases moved with it
    "pt_bosque": "Portuguese-Bosque",
    "pt_gsd": "Portuguese-GSD",
    "pt_pud": "Portuguese-PUD",
    "qaf_arabizi": "Maghrebi_Arabic_French-Arabizi",
    "ro_rrt": "Romanian-RRT",
    "ru_gsd": "Russian-GSD",
    "ru_pud": "Russian-PUD",
    "ru_syntagrus": "Russian-SynTagRus",
    "ru_taiga": "Russian-Taiga",
    "sk_snk": "Slovak-SNK",
    "sl_ssj": "Slovenian-SSJ",
    "sl_sst": "Slovenian-SST",
    "sv_lines": "Swedish-LinES",
    "sv_pud": "Swedish-PUD",
    "sv_talbanken": "Swedish-Talbanken",
    "th_pud": "Thai-PUD",
    "tr_imst": "Turkish-IMST",
    "tr_pud": "Turkish-PUD",
    "ug_udt": "Uyghur-UDT",
    "uk_iu": "Ukrainian-IU",
    "wo_wtb": "Wolof-WTB",
    "zh_gsd": "Chinese-GSD",
    "zh_pud": "Chinese-PUD",
}
"""Code -> name of the repository, less its `UD_`; the name after the `-` is written as UD does."""

UNNAMED: Mapping[str, str] = {
    "ar": "ar_padt",
    "bg": "bg_btb",
    "ca": "ca_ancora",
    "cs": "cs_pdt",
    "da": "da_ddt",
    "de": "de_gsd",
    "el": "el_gdt",
    "en": "en_ewt",
    "es": "es_gsd",
    "et": "et_edt",
    "eu": "eu_bdt",
    "fa": "fa_seraji",
    "fi": "fi_tdt",
    "fr": "fr_gsd",
    "he": "he_htb",
    "hi": "hi_hdtb",
    "hr": "hr_set",
    "hu": "hu_szeged",
    "id": "id_gsd",
    "it": "it_isdt",
    "lv": "lv_lvtb",
    "nl": "nl_alpino",
    "no": "no_bokmaal",
    "pl": "pl_sz",
    "pt": "pt_bosque",
    "ro": "ro_rrt",
    "ru": "ru_gsd",
    "sk": "sk_snk",
    "sl": "sl_ssj",
    "sv": "sv_talbanken",
    "tr": "tr_imst",
    "ug": "ug_udt",
    "uk": "uk_iu",
    "zh": "zh_gsd",
}
"""Codes before release 2.2 that name no treebank (`fr@1.4`) -> what the repository became."""

LANGUAGES: Mapping[str, str] = {
    **{
        repository.partition("-")[0]: code.partition("_")[0]
        for code, repository in TREEBANKS.items()
    },
    "Akkadian": "akk",
    "Albanian": "sq",
    "Amharic": "am",
    "Ancient_Greek": "grc",
    "Armenian": "hy",
    "Assyrian": "aii",
    "Belarusian": "be",
    "Bengali": "bn",
    "Bhojpuri": "bho",
    "Breton": "br",
    "Cantonese": "yue",
    "Classical_Chinese": "lzh",
    "Coptic": "cop",
    "Erzya": "myv",
    "Galician": "gl",
    "Georgian": "ka",
    "Gothic": "got",
    "Irish": "ga",
    "Karelian": "krl",
    "Kazakh": "kk",
    "Komi_Zyrian": "kpv",
    "Kurmanji": "kmr",
    "Kyrgyz": "ky",
    "Lithuanian": "lt",
    "Manx": "gv",
    "Marathi": "mr",
    "Moksha": "mdf",
    "North_Sami": "sme",
    "Old_Church_Slavonic": "cu",
    "Old_French": "fro",
    "Sanskrit": "sa",
    "Scottish_Gaelic": "gd",
    "Serbian": "sr",
    "Tagalog": "tl",
    "Tamil": "ta",
    "Telugu": "te",
    "Upper_Sorbian": "hsb",
    "Urdu": "ur",
    "Vietnamese": "vi",
    "Warlpiri": "wbp",
    "Welsh": "cy",
    "Yoruba": "yo",
}
"""Language as repositories spell it -> its code in file names."""

_REPOSITORY = re.compile(r"UD_(?P<language>[A-Z][A-Za-z_]*)-(?P<treebank>[A-Za-z0-9]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Treebank:
    """One treebank of Universal Dependencies.

    Attributes:
        code: As its files are named: `en_ewt`; `fr` before release 2.2.
        repository: `UD_English-EWT`.
    """

    code: str
    repository: str

    @property
    def splits(self) -> tuple[str, ...]:
        """Splits that it is known to have: the parallel treebanks have a test set only."""
        return ("test",) if self.repository.endswith("-PUD") else ("train", "dev", "test")

    def file(self, split: str) -> str:
        """Name of one of its files."""
        return f"{self.code}-ud-{split}.conllu"


def treebank(name: str) -> Treebank | None:
    """What a code or the name of a repository stands for; None where that is not known."""
    if name in TREEBANKS:
        return Treebank(code=name, repository=f"UD_{TREEBANKS[name]}")
    if name in UNNAMED:
        return Treebank(code=name, repository=f"UD_{TREEBANKS[UNNAMED[name]]}")
    match = _REPOSITORY.fullmatch(name)
    if match is None or match["language"] not in LANGUAGES:
        return None
    code = f"{LANGUAGES[match['language']]}_{match['treebank'].lower()}"
    return Treebank(code=code, repository=name)


def nearby(release: str) -> Iterator[str]:
    """Other releases, the nearest first: where a file may be that this one lacks."""
    known = [f"1.{minor}" for minor in range(5)] + [f"2.{minor}" for minor in range(LATEST + 1)]
    at = known.index(release) if release in known else len(known)
    yield from sorted(
        (other for other in known if other != release),
        key=lambda other: (abs(known.index(other) - at), known.index(other) < at),
    )
