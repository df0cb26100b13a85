"""Language codes: data sets write `eng`, `swa`, `zho_Hans` where UD writes `en`, `sw`, `zh`."""

import re

_LONG = """
    afr af  amh am  ara ar  arb ar  asm as  aze az  azj az  bam bm  bel be  ben bn  bod bo  bos bs
    bul bg  cat ca  ces cs  cmn zh  cym cy  dan da  deu de  ell el  eng en  epo eo  esp es  est et
    eus eu  ewe ee  fao fo  fas fa  fin fi  fra fr  ful ff  gle ga  glg gl  grn gn  guj gu  hat ht
    hau ha  hbs sh  heb he  hin hi  hrv hr  hun hu  hye hy  ibo ig  ind id  isl is  ita it  jav jv
    jpn ja  kan kn  kat ka  kaz kk  khm km  kin rw  kir ky  kor ko  lao lo  lat la  lav lv  lin ln
    lit lt  ltz lb  lug lg  lvs lv  mal ml  mar mr  mkd mk  mlg mg  mlt mt  mon mn  mri mi  msa ms
    mya my  nde nd  ned nl  nep ne  nld nl  nob nb  nor no  nya ny  ori or  orm om  pan pa  pes fa
    pol pl  por pt  pus ps  ron ro  run rn  rus ru  san sa  sin si  slk sk  slv sl  sna sn  snd sd
    som so  sot st  spa es  sqi sq  srp sr  ssw ss  sun su  swa sw  swe sv  swh sw  tam ta  tat tt
    tel te  tgk tg  tgl tl  tha th  tir ti  tsn tn  tso ts  tuk tk  tur tr  twi tw  uig ug  ukr uk
    urd ur  uzb uz  uzn uz  ven ve  vie vi  wol wo  xho xh  yor yo  zho zh  zsm ms  zul zu
"""

UD_CODES = dict(zip(_LONG.split()[::2], _LONG.split()[1::2], strict=True))
"""Code of three letters (ISO 639-2 or 639-3; `esp` and `ned` are CoNLL 2002's) -> UD's."""

SHAPE = re.compile(r"[a-z]{2,3}(?=[-_.]|$)")
"""How a code begins."""


def ud_code(text: str) -> str | None:
    """The language at the start of a name, as UD writes it: `en` of `en_ewt`, `eng_Latn`, `eng`.

    Returns:
        None where the name does not begin with two or three small letters.
    """
    match = SHAPE.match(text)
    return None if match is None else UD_CODES.get(match[0], match[0])
