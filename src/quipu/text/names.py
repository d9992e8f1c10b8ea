"""Names in normal form: the one rule by which two spellings are the same entity."""

import re
import unicodedata
from functools import lru_cache

from quipu.text.scripts import MARKS, UNSPACED

MAX_KEY_LENGTH = 200
MAX_ACRONYM_LENGTH = 6

_DOTTED_ACRONYM = re.compile(r"(?:[^\W\d_]\.){2,}[^\W\d_]?\.?")
_POSSESSIVE = re.compile(r"(?<=\w)['’ʼ]s(?!\w)|(?<=s)['’ʼ](?!\w)", re.IGNORECASE)
_APOSTROPHE = re.compile(r"(?<=\w)['’ʼ`]+(?=\w)")
_AMPERSAND = re.compile(r"(?<=\s)&(?=\s)")
_PUNCTUATION = re.compile(rf"(?:(?![{MARKS}{UNSPACED}])[^\w+#&]|_)+")
_OUTER_PUNCTUATION = re.compile(r"^[^\w]+|[^\w.]+$")
_ARTICLES = re.compile(r"(?:(?:the|an|a(?= \S\S)) )+(?=\S)")  # not the first of two initials, as in "a b foo"
_ARTICLE_AS_WRITTEN = re.compile(r"(?:[Tt]he|[Aa]n?)\s+(?=\S)")
_SPACE_IN_UNSPACED = re.compile(rf"(?<=[{UNSPACED}]) (?=[{UNSPACED}])")


@lru_cache(maxsize=65_536)
def entity_key(name: str) -> str:
    """Return the normal form under which a name is one entity; "" where nothing of a name is left.

    NFKC, casefolded, articles and possessives stripped, punctuation and spaces folded, in any script. An all-capitals
    acronym keeps its capitals ("WHO"), so that it never meets a common word ("who"); dots in it are dropped ("U.S.").
    The key of a key is that key.
    """
    text = _POSSESSIVE.sub("", unicodedata.normalize("NFKC", name).strip())
    if acronym := _acronym(text):
        return acronym
    text = unicodedata.normalize("NFKC", _APOSTROPHE.sub("", text).casefold())
    text = _AMPERSAND.sub("and", _PUNCTUATION.sub(" ", text)).strip()
    if articles := _ARTICLES.match(text):
        text = text[articles.end() :]
    return _SPACE_IN_UNSPACED.sub("", text)[:MAX_KEY_LENGTH].strip()


def is_acronym(word: str) -> bool:
    """Say whether one word is an acronym: two to six characters, capitals and digits, starting with a capital."""
    return 2 <= len(word) <= MAX_ACRONYM_LENGTH and word.isalnum() and word.isupper() and word[0].isupper()


def _acronym(text: str) -> str:
    """Return the acronym a name is, without dots, an article before it or punctuation around it; "" if it is none."""
    article = _ARTICLE_AS_WRITTEN.match(text)
    bare = _OUTER_PUNCTUATION.sub("", text[article.end() :] if article else text)
    bare = bare.replace(".", "") if _DOTTED_ACRONYM.fullmatch(bare) else bare
    return bare if is_acronym(bare) else ""
