"""Formulas of Office documents (OMML) and web pages (MathML) as LaTeX, to be read, quoted and searched."""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

from quipu.parse.xml import attribute, child, children, descendants, local

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_OPERATORS = {"∑": r"\sum", "∏": r"\prod", "∫": r"\int", "∬": r"\iint", "∭": r"\iiint", "⋃": r"\bigcup"}
_ACCENTS = {"̂": r"\hat", "̃": r"\tilde", "̅": r"\bar", "⃗": r"\vec", "̇": r"\dot", "̈": r"\ddot"}
_FUNCTIONS = frozenset(
    (
        *("arccos", "arcsin", "arctan", "cos", "cosh", "cot", "det", "exp", "inf", "lim"),
        *("ln", "log", "max", "min", "sin", "sinh", "sup", "tan", "tanh"),
    )
)
# The LaTeX of elements of MathML with so many parts; all others show their parts in a row.
_MATHML = {
    "mfrac": (r"\frac{{{}}}{{{}}}", 2),
    "msup": ("{{{}}}^{{{}}}", 2),
    "msub": ("{{{}}}_{{{}}}", 2),
    "msubsup": ("{{{}}}_{{{}}}^{{{}}}", 3),
    "munder": ("{{{}}}_{{{}}}", 2),
    "mover": ("{{{}}}^{{{}}}", 2),
    "munderover": ("{{{}}}_{{{}}}^{{{}}}", 3),
    "mroot": (r"\sqrt[{1}]{{{0}}}", 2),
    "msqrt": (r"\sqrt{{{}}}", 1),
}
_INVISIBLE = re.compile("[\u2061-\u2064\u200b]")  # "function application" and the like
_APPLIED = re.compile("(?<![a-z])([a-z]+)\u2061\\s*")  # each run of letters is tried once, however long
_SPECIAL = re.compile(r"[%$#&_{}]")
_ROW_END = r" \\ "
_SPACES = re.compile(r"\s+")
_DOLLAR = re.compile(r"(?<!\\)((?:\\\\)*)\$")
MAX_FORMULA_DEPTH = 100  # nested elements; a deeper formula is shown as its letters


def inline_formula(latex: str) -> str:
    """Return LaTeX between dollar signs, with other dollar signs escaped; "" for an empty formula."""
    latex = " ".join(latex.split())
    while len(latex) > 1 and latex[0] == latex[-1] == "$":
        latex = latex[1:-1].strip()
    latex = _DOLLAR.sub(r"\1\\$", latex)
    is_open = (len(latex) - len(latex.rstrip("\\"))) % 2  # the last sign would escape the dollar sign
    return f"${latex}{' ' * is_open}$" if latex else ""


def office_formula(element: Element) -> str:
    """Return the LaTeX of an `oMath` element, without dollar signs; elements without a rule show what they contain."""
    latex = "".join(map(_node, descendants(element, "t"))) if _is_too_deep(element) else _content(element)
    return _SPACES.sub(" ", latex).strip()


def web_formula(math: "LexborNode") -> str:
    """Return the LaTeX of a `math` element: as the page states it, otherwise made from its MathML."""
    stated = math.css_first('annotation[encoding="application/x-tex"]')
    return (stated.text() if stated is not None else "") or math.attributes.get("alttext") or _mathml(math)


def _mathml(node: "LexborNode", depth: int = 0) -> str:
    parts: list[str] = []
    if depth < MAX_FORMULA_DEPTH:
        elements = (part for part in node.iter(include_text=False) if part.tag not in ("annotation", "annotation-xml"))
        parts = [_mathml(part, depth + 1) for part in elements]
    if not parts:
        return " ".join((node.text() or "").split()) if node.tag != "mspace" else " "
    pattern, n_parts = _MATHML.get(node.tag or "", ("", 0))
    return pattern.format(*parts) if n_parts == len(parts) else "".join(parts)


def _is_too_deep(element: Element) -> bool:
    level = [element]
    for _ in range(MAX_FORMULA_DEPTH):
        level = [node for parent in level for node in parent]
    return bool(level)


def _content(element: Element | None) -> str:
    return "" if element is None else "".join(map(_node, element))


def _node(element: Element) -> str:
    name = local(element)
    if name == "t":
        text = _SPECIAL.sub(r"\\\g<0>", element.text or "")
        return _INVISIBLE.sub("", _APPLIED.sub(lambda applied: f"{_known(applied[1])} ", text))
    rule = _RULES.get(name)
    if rule is not None:
        return rule(element)
    return "" if name.endswith("Pr") or name in ("del", "instrText") else _content(element)


def _group(element: Element, name: str) -> str:
    return f"{{{_content(child(element, name)).strip()}}}"


def _base(element: Element) -> str:
    text = _known(_content(child(element, "e")).strip())
    return text if len(text) == 1 or text.isdecimal() or text.startswith("\\") else f"{{{text}}}"


def _known(text: str) -> str:
    """Return the command of LaTeX for the name of a function, otherwise `text`."""
    return f"\\{text}" if text in _FUNCTIONS else text


def _fraction(element: Element) -> str:
    return rf"\frac{_group(element, 'num')}{_group(element, 'den')}"


def _script(element: Element) -> str:
    """Return a base with what stands below and above it."""
    lower = f"_{_group(element, 'sub')}" if child(element, "sub") is not None else ""
    upper = f"^{_group(element, 'sup')}" if child(element, "sup") is not None else ""
    return f"{_base(element)}{lower}{upper}"


def _root(element: Element) -> str:
    degree = _content(child(element, "deg")).strip()
    index = f"[{degree}]" if degree else ""
    return rf"\sqrt{index}{_group(element, 'e')}"


def _operator(element: Element) -> str:
    """Return a sum, product or integral with its limits; the sign of an integral is the default."""
    sign = attribute(child(element, "naryPr", "chr"), "val") or "∫"
    lower, upper = (_content(child(element, name)).strip() for name in ("sub", "sup"))
    limits = (f"_{{{lower}}}" if lower else "") + (f"^{{{upper}}}" if upper else "")
    return f"{_OPERATORS.get(sign, sign)}{limits} {_content(child(element, 'e'))}"


def _delimited(element: Element) -> str:
    """Return what stands in brackets; a sign that is present but empty shows nothing."""
    signs = []
    for name, default in (("begChr", "("), ("sepChr", "|"), ("endChr", ")")):
        sign = child(element, "dPr", name)
        signs.append(default if sign is None else attribute(sign, "val"))
    begin, separator, end = ({"{": r"\{", "}": r"\}"}.get(sign, sign) for sign in signs)
    return begin + separator.join(map(_content, children(element, "e"))) + end


def _function(element: Element) -> str:
    name = _content(child(element, "fName")).strip()
    return f"{_known(name)}{_group(element, 'e')}"


def _accent(element: Element) -> str:
    accent = _ACCENTS.get(attribute(child(element, "accPr", "chr"), "val"), r"\hat")
    return f"{accent}{_group(element, 'e')}"


def _limit(element: Element) -> str:
    mark = "_" if local(element) == "limLow" else "^"
    base = _content(child(element, "e")).strip()
    return f"{_known(base)}{mark}{_group(element, 'lim')}"


def _matrix(element: Element) -> str:
    rows = [" & ".join(map(_content, children(row, "e"))) for row in children(element, "mr")]
    return rf"\begin{{matrix}}{_ROW_END.join(rows)}\end{{matrix}}"


def _lines(element: Element) -> str:
    return _ROW_END.join(map(_content, children(element, "e")))


_RULES: Mapping[str, Callable[[Element], str]] = MappingProxyType(
    {
        "f": _fraction,
        "sSup": _script,
        "sSub": _script,
        "sSubSup": _script,
        "rad": _root,
        "nary": _operator,
        "d": _delimited,
        "func": _function,
        "acc": _accent,
        "bar": lambda element: rf"\overline{_group(element, 'e')}",
        "limLow": _limit,
        "limUpp": _limit,
        "m": _matrix,
        "eqArr": _lines,
    }
)
