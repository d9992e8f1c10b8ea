"""Texts for property tests: pieces that the rules for words and names look at."""

from hypothesis import strategies as st

_PIECES = (
    *(" ", "  ", "\n", " \n ", "-", " - ", "·", "・", "&", " & ", ".", ". ", "'", "’s", ", ", "/", "+", "#", "\u200d"),
    *(
        "A",
        "a",
        "B",
        "WHO",
        "who",
        "Who",
        "St",
        "x1",
        "9",
        "1984",
        "C++",
        "C#",
        "O'Brien",
        "İ",
        "ß",
        "é",
        "e\u0301",
        "⑴",
    ),
    *("长", "城", "股", "票", "ン", "ス", "서", "울", "ก", "รุ", "राम", "री", "Ж", "ж", "ΐ", "Ἀθ", "ﷺ", "Ⅳ"),
)
TEXTS = st.lists(st.sampled_from(_PIECES), min_size=1, max_size=14).map("".join)
NAMES = st.lists(st.sampled_from(_PIECES), min_size=1, max_size=5).map("".join)
