"""Languages: whether two texts are in different languages, by their scripts and most frequent words."""

import unicodedata
from collections import Counter
from functools import lru_cache

from quipu.text.words import split_words

MAX_SAMPLE_CHARS = 5_000  # the rest of a text is ignored
MIN_SHARE = 0.1  # least share of a language's frequent words among all words
KANA_SHARE = 0.05  # a text with a larger share of kana among its letters is Japanese

# For each language, the frequent words that distinguish it best from others in the same script.
_FREQUENT_WORDS = {
    language: frozenset(words.split())
    for language, words in {
        "English": "the of and to is was that for on with as by at from it are were his her not or which has this",
        "German": "der die das und von zu den mit ist war im für auf des dem ein eine sich nicht als auch wurde wird",
        "French": "le la les des et un une du est dans que pour qui par sur au avec elle était ses cette aux ce",
        "Spanish": "el los las y en que un una del por con para se su fue es al como más este entre sus desde era",
        "Italian": "il di e che un una per con del della è nel sono si alla dei gli lo da nella dal fu anche sua",
        "Portuguese": "o os as e que um uma em do da no na por com para foi se dos é ao pela mais seu sua",
        "Dutch": "de het een en van dat op te met voor zijn aan was die ze werd haar ook bij naar door hij om",
        "Polish": "w i na się z do jest że nie o był od przez oraz jako który była po jego za to są",
        "Turkish": "ve bir bu da de için ile olarak olan çok daha en gibi sonra kadar o ne oldu ise",
    }.items()
}


def languages_differ(first: str, second: str) -> bool:
    """Return whether two texts are in different languages; False if the language of one is unknown."""
    script, language = _script_and_language(first[:MAX_SAMPLE_CHARS])
    other_script, other_language = _script_and_language(second[:MAX_SAMPLE_CHARS])
    if not script or not other_script:
        return False
    return script != other_script or ("" not in (language, other_language) and language != other_language)


@lru_cache(maxsize=256)
def _script_and_language(text: str) -> tuple[str, str]:
    """Return the most frequent script of a text, and its language if the script is Latin; "" for unknown."""
    scripts = Counter(unicodedata.name(letter, "").partition(" ")[0] for letter in text if letter.isalpha())
    if not scripts:
        return "", ""
    if scripts["HIRAGANA"] + scripts["KATAKANA"] > KANA_SHARE * scripts.total():
        return "KANA", ""
    script = max(sorted(scripts), key=lambda name: scripts[name])
    return script, _latin_language(text) if script == "LATIN" else ""


def _latin_language(text: str) -> str:
    forms = split_words(text).forms
    hits = {language: sum(form in words for form in forms) for language, words in _FREQUENT_WORDS.items()}
    best = max(sorted(hits), key=lambda language: hits[language])
    is_clear = hits[best] >= MIN_SHARE * len(forms) and list(hits.values()).count(hits[best]) == 1
    return best if is_clear else ""
