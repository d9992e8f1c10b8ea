"""Names in normal form: the one rule by which two spellings are the same entity."""

import re
import unicodedata

from quipu.text.scripts import UNSPACED

MAX_KEY_LENGTH = 200
MAX_ACRONYM_LENGTH = 6

_DOTTED_ACRONYM = re.compile(r"(?:[^\W\d_]\.){2,}[^\W\d_]?\.?")
_POSSESSIVE = re.compile(r"(?<=\w)['’ʼ]s(?!\w)|(?<=s)['’ʼ](?!\w)", re.IGNORECASE)
_APOSTROPHE = re.compile(r"(?<=\w)['’ʼ`](?=\w)")
_AMPERSAND = re.compile(r"(?<=\s)&(?=\s)")
_PUNCTUATION = re.compile(r"[^\w+#&]+|_+")
_ARTICLE = re.compile(r"(?:the|an|a) (?=\S)")
_SPACE_IN_UNSPACED = re.compile(rf"(?<=[{UNSPACED}]) (?=[{UNSPACED}])")


def entity_key(name: str) -> str:
    """Return the normal form under which a name is one entity; "" where nothing of a name is left.

    NFKC, casefolded, articles and possessives stripped, punctuation and spaces folded, in any script. An all-capitals
    acronym keeps its capitals ("WHO"), so that it never meets a common word ("who"); dots in it are dropped ("U.S.").
    """
    text = unicodedata.normalize("NFKC", name).strip()
    acronym = text.replace(".", "") if _DOTTED_ACRONYM.fullmatch(text) else text
    if is_acronym(acronym):
        return acronym
    text = _POSSESSIVE.sub("", text)
    text = _APOSTROPHE.sub("", text)
    text = _AMPERSAND.sub("and", text)
    text = _PUNCTUATION.sub(" ", text.casefold()).strip()
    text = _ARTICLE.sub("", text, count=1) if _ARTICLE.match(text) else text
    return _SPACE_IN_UNSPACED.sub("", text)[:MAX_KEY_LENGTH].strip()


def is_acronym(word: str) -> bool:
    """Say whether one word is an acronym: two to six characters, capitals and digits, starting with a capital."""
    return 2 <= len(word) <= MAX_ACRONYM_LENGTH and word.isalnum() and word.isupper() and word[0].isupper()
