r"""Text of roff: escapes such as \fB and \(em become characters, and the inline macros of mdoc(7) become words.

References: groff(7), groff_char(7), mdoc(7).
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

# Escapes with an argument: a letter, two letters behind "(", or any number in brackets; or a text between two marks.
_ESCAPE = re.compile(
    r"\\(?:"
    r"(?P<comment>[\"#].*)"
    r"|(?P<string>\*(?:\((?P<two>..)|\[(?P<long>[^\]\n]{0,80})\]|(?P<one>.)))"
    r"|(?P<special>\((?P<pair>..)|\[(?P<name>[^\]\n]{0,80})\])"
    r"|(?P<dropped>[fFgkmMnVY](?:\(..|\[[^\]\n]{0,80}\]|[-+]?.)|s[-+]?(?:\(\d\d|\[[^\]\n]{0,80}\]|'[^'\n]{0,80}'|[0-3]?\d)"
    r"|[AbBCDhHlLNoRSvwXxZ](?P<mark>['\"]).{0,200}?(?P=mark))"
    r"|(?P<plain>.)"
    r"|$)"
)
_CHARACTERS = r"""
    em=— en=– hy=- mi=− bu=• aq=' cq=’ oq=‘ dq=" lq=“ rq=” Bq=„ bq=‚ Fo=« Fc=» co=© rg=® tm=™ ha=^ ti=~ rs=\ ga=` aa=´
    bv=| ba=| br=| sl=/ at=@ sh=# Do=$ Eu=€ ct=¢ Po=£ Ye=¥ <==≤ >==≥ !==≠ ->=→ <-=← ua=↑ da=↓ mu=× di=÷ +-=± de=° sc=§
    ps=¶ dg=† dd=‡ 12=½ 14=¼ 34=¾ S1=¹ S2=² S3=³ lB=[ rB=] lC={ rC=} la=⟨ ra=⟩ if=∞ ss=ß ae=æ AE=Æ oe=œ OE=Œ /o=ø /O=Ø
    oa=å oA=Å :a=ä :o=ö :u=ü :A=Ä :O=Ö :U=Ü 'e=é 'a=á `e=è `a=à ^e=ê ,c=ç ~n=ñ
"""
_CHARACTER_BY_NAME: Mapping[str, str] = MappingProxyType(dict(pair.rsplit("=", 1) for pair in _CHARACTERS.split()))
_SPECIAL_STRINGS: Mapping[str, str] = MappingProxyType({"lq": "“", "rq": "”", "R": "®", "Tm": "™", "S": ""})
_PLAIN_BY_ESCAPE: Mapping[str, str] = MappingProxyType({"-": "-", "e": "\\", "\\": "\\", "'": "'", "`": "`", ".": "."})
_SPACES = "~0 \t"
_ARGUMENT = re.compile(r'"((?:[^"]|"")*)"?|((?:\\.|[^\s\\])+)')
_MAX_STRING = 64  # characters of a string that \* puts in

_PUNCTUATION = frozenset([".", ",", ":", ";", ")", "]", "?", "!"])
_OPENING = frozenset(["(", "["])
_ARGUMENTS_ONLY = """
    Ic Cm Li Pa Ev Va Dv Er Sy Em No Tn Ad An Fa Ft Vt Sx Ms Cd Lb St Fd Xo Xc Bf Ef Eo Ec Mt Fo Fc
    %A %B %C %D %I %J %N %O %P %Q %R %T %U %V
"""  # macros whose text is that of their arguments
_ENCLOSED: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "Op": ("[", "]"), "Bq": ("[", "]"), "Pq": ("(", ")"), "Brq": ("{", "}"), "Aq": ("<", ">"),
        "Dq": ("“", "”"), "Qq": ('"', '"'), "Sq": ("‘", "’"), "Ql": ("‘", "’"),
    }
)  # fmt: skip
_JOIN = "\0"  # stands for a place where no space may be
_BEFORE: Mapping[str, str] = MappingProxyType(  # what a macro puts before its arguments
    {
        "Oo": "[" + _JOIN, "Bo": "[" + _JOIN, "Po": "(" + _JOIN, "Bro": "{" + _JOIN, "Ao": "<" + _JOIN,
        "Oc": _JOIN + "]", "Bc": _JOIN + "]", "Pc": _JOIN + ")", "Brc": _JOIN + "}", "Ac": _JOIN + ">",
        "Do": "“" + _JOIN, "Qo": '"' + _JOIN, "So": "‘" + _JOIN,
        "Dc": _JOIN + "”", "Qc": _JOIN + '"', "Sc": _JOIN + "’",
        "Fx": "FreeBSD", "Nx": "NetBSD", "Ox": "OpenBSD", "Dx": "DragonFly", "Bx": "BSD",
        "Ux": "UNIX", "At": "AT&T UNIX",
        "Nd": "—", "Ta": "|", "Ns": _JOIN, "Ap": _JOIN + "'" + _JOIN,
    }
)  # fmt: skip


def plain_text(line: str, strings: Mapping[str, str]) -> str:
    """Return a line without escapes; `strings` are those that the page defines."""

    def replacement(match: re.Match[str]) -> str:
        if match["string"]:
            name = match["two"] or match["long"] or match["one"] or ""
            return (strings.get(name) or _SPECIAL_STRINGS.get(name, ""))[:_MAX_STRING]
        if match["special"]:
            return _special(match["pair"] or match["name"] or "")
        if plain := match["plain"]:
            return " " if plain in _SPACES else _PLAIN_BY_ESCAPE.get(plain, "")
        return ""

    return _ESCAPE.sub(replacement, line) if "\\" in line else line


def _special(name: str) -> str:
    if re.fullmatch(r"u[0-9A-F]{4,5}", name):
        code = int(name[1:], 16)
        return "" if 0xD800 <= code < 0xE000 else chr(code)
    return _CHARACTER_BY_NAME.get(name, "")


def split_arguments(text: str, strings: Mapping[str, str]) -> list[str]:
    r"""Return the arguments of a request as plain text; quotes hold one together, and \" begins a comment."""
    text = text.partition('\\"')[0]
    return [plain_text(bare or quoted.replace('""', '"'), strings) for quoted, bare in _ARGUMENT.findall(text)]


class MacroText:
    """Renders the inline macros of mdoc as words; it remembers the name of the page."""

    def __init__(self) -> None:
        self._name = ""

    def knows(self, macro: str) -> bool:
        """Return whether a macro is one that has text."""
        return macro in _INLINE

    def render(self, arguments: Sequence[str]) -> str:
        """Return the text of macros and their arguments on one line."""
        text = " ".join(self._pieces(arguments))
        text = re.sub(rf" ?{_JOIN} ?", "", text)
        return " ".join(text.split())

    def _pieces(self, words: Sequence[str]) -> Iterator[str]:
        """Yield words and marks; `_JOIN` takes away the spaces around it."""
        position = 0
        while position < len(words):
            macro = words[position]
            position += 1
            if macro in _ENCLOSED:
                inner, rest = _without_last_marks(words[position:])
                opening, closing = _ENCLOSED[macro]
                yield from (opening + _JOIN, *self._pieces(inner), _JOIN + closing, *rest)
                return
            if not self.knows(macro):
                yield _attached(macro)
                continue
            end = position
            while end < len(words) and not self.knows(words[end]):
                end += 1
            own, marks = _without_last_marks(words[position:end])
            position = end
            yield from self._macro(macro, own, is_before_flag=end < len(words) and words[end] == "Fl")
            yield from marks

    def _macro(self, macro: str, words: Sequence[str], *, is_before_flag: bool) -> Sequence[str]:
        """Return the text of one macro with its own arguments."""
        if macro in _BEFORE:
            return (_BEFORE[macro], *words)
        if macro in _TEXT_BY_MACRO:
            return _TEXT_BY_MACRO[macro](words)
        if macro == "Fl":
            return [f"-{word}" for word in words] or ["-" + _JOIN if is_before_flag else "-"]
        if macro == "Nm":
            self._name = self._name or " ".join(words)
            return words or [self._name]
        return words


_TEXT_BY_MACRO: Mapping[str, Callable[[Sequence[str]], Sequence[str]]] = MappingProxyType(
    {
        "Ar": lambda words: words or ["file ..."],
        "Xr": lambda words: [f"{words[0]}({words[1]})"] if len(words) > 1 else words,
        "Fn": lambda words: [f"{''.join(words[:1])}({', '.join(words[1:])})"],
        "Pf": lambda words: ["".join(words[:1]) + _JOIN, *words[1:]],
        "Lk": lambda words: [*words[1:], f"<{words[0]}>"] if words else [],
        "In": lambda words: [f"#include <{''.join(words)}>"],
        "Tg": lambda _: [],
    }
)
_INLINE = {*_ARGUMENTS_ONLY.split(), "Fl", "Nm"} | _ENCLOSED.keys() | _BEFORE.keys() | _TEXT_BY_MACRO.keys()


def _attached(word: str) -> str:
    if word in _PUNCTUATION:
        return _JOIN + word
    return word + _JOIN if word in _OPENING else word


def _without_last_marks(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words before the punctuation at the end, and that punctuation, attached."""
    end = len(words)
    while end and words[end - 1] in _PUNCTUATION:
        end -= 1
    return list(words[:end]), [_JOIN + word for word in words[end:]]
