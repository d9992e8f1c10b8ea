"""Question kind: what a question asks for, and the parts in which it is answered (English, Russian, Chinese).

The first pattern that matches decides. A pattern also names the subject: the term to define, the sides to compare, the
topic of an overview. Words of a pattern ("difference between", "что такое") describe the question and are not searched
for in sentences.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from quipu.text.questions import AnswerType, asks_for_overview, expected_answer_type
from quipu.text.references import NUMBERED_SECTION, SectionNumber, section_number
from quipu.text.unicode import is_unspaced
from quipu.text.words import content_terms_of

MAX_TERM_WORDS = 6  # a longer phrase after "what is" is a description, not a term to define
MAX_PARTS = 3
MAX_TERMS_OF_ELLIPSIS = 1  # content words of a clause that needs the words of the one before


class QuestionKind(StrEnum):
    """What a question asks for. FACT is the rest: who, when, where, which value, and everything not recognised."""

    FACT = "fact"
    DEFINITION = "definition"
    HOW_TO = "how-to"
    VALUE = "value"
    COMPARISON = "comparison"
    LIST = "list"
    YES_NO = "yes or no"
    OVERVIEW = "overview"
    SMALL_TALK = "small talk"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionPart:
    """What one quote must answer: `words` are searched for in sentences, `term` is the term to define or ""."""

    words: str
    term: str = ""
    answer_type: AnswerType = AnswerType.OTHER


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysedQuestion:
    """A question with its kind and its parts: one, or one for each side or clause.

    `section` is the number of the section that an overview is about, if it names one.
    """

    text: str
    kind: QuestionKind
    parts: tuple[QuestionPart, ...]
    section: SectionNumber | None = None


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_SMALL_TALK = _any_of(
    r"(?:hi|hello|hey)(?: there| quipu)?",
    r"good (?:morning|afternoon|evening|day)",
    r"(?:many )?thanks?(?: you)?(?: (?:very|so) much| a lot)?",
    r"(?:good ?)?bye|see you",
    r"how are you(?: doing)?|how do you do|who are you|what are you|what can you do|nice to meet you",
    r"привет(?:ик|ствую)?|здравствуй(?:те)?|добр(?:ый|ое|ой) (?:день|вечер|утро)",
    r"(?:большое )?спасибо(?: большое)?|благодарю|пока|до свидания|как дела|кто ты|что ты умеешь",
    r"你好(?:吗|啊|呀)?|您好|嗨|早上好|下午好|晚上好|谢谢(?:你|您)?|多谢|再见|拜拜|你是谁|你能做什么",
)
_OVERVIEW_WORDS = _any_of(
    r"\b(?:what|does|do|did|is|are|was|were|about|deal with|cover|discuss|talk about|treat)\b",
    r"\b(?:happens|happened|goes on|covered|described|discussed|explained|told)\b",
    r"\b(?:происходит|произошло|случилось|описан\w+|описыва\w+|рассказ\w+)\b",
    r"\b(?:please|give|write|show|me)\b",
    r"\b(?:summari[sz]e|summary|overview|outline|tl;?dr|main|central|key|major|themes?|topics?|ideas?|points?)\b",
    r"\b(?:these|this|all|documents?|files?|texts?|collection|corpus|index|article|book|chapter|section|page|short|brief)\b",
    r"\b(?:о|об|ч[её]м|эт[иоа]\w*|перескажи|обобщи|кратк\w+|содержани\w+|основн\w+|главн\w+|тем[ыа]|документ\w*|текст\w*|файл\w*|глав[аеуы]|раздел\w?)\b",
    "主要|大概|大致|讲|介绍|什么|内容|总结|概括|概述|摘要|大意|主旨|主题|关于|这些|文档|文件|发生|描?写|了|的",
)
_COMPARISON = _any_of(
    r"\bdifferences? (?:between|of)\b|\bdiffer(?:s|ent)?\b|\bcompared? (?:to|with)\b|\bcompare\b|\bversus\b|\bvs\b",
    r"\bотлича\w+|\bразниц\w+|\bразличи\w+|\bсравн\w+",
    "区别|不同|差别|差异|相比|比较",
)
_CHOICE = _any_of(
    r"\b(?:which|who|better|best|more|less|fewer|faster|slower|larger|bigger|smaller|older|younger|earlier|later)\b"
    r".*\b(?:or)\b",
    r"\b(?:or)\b.*\b(?:better|more|less|fewer|faster|slower|larger|bigger|smaller|older|younger|earlier|later|first)\b",
    r"\b(?:что|кто|как(?:ой|ая|ое|ие)|где|лучше|больше|меньше|быстрее|раньше|позже|старше)\b.*\bили\b",
    "还是",
)
_VALUE = _any_of(
    r"\bdefaults?\b|\bhow (?:much|many|long|often|far|old|big|large|high|deep|fast)\b",
    r"\bwhat (?:is|are|was) the (?:value|limit|size|version|number|port|price|rate|maximum|minimum)\b",
    r"\bпо умолчанию\b|\bсколько\b|\bчерез сколько\b|\bкак(?:ой|ая|ое|ова|ово) (?:значени|порт|верси|предел|размер)\w*",
    "默认|缺省|多少|几[个天次年]|多[大长高远久重]",
)
_HOW_TO = _any_of(
    r"\bhow (?:do|can|could|should|would|must|might) \w+|\bhow to\b",
    r"\b(?:which|what) (?:\w+ )?(?:commands?|options?|flags?|switch(?:es)?|functions?|methods?)\b",
    r"\bwhat (?:should|must|do) (?:i|you|we|one) (?:do|use|run|type)\b",
    r"\b(?:как|каким образом) (?:\w+ )?\w+(?:ть|ться|ти|тись|чь|чься)\b",
    r"\bкак(?:ой|ая|ую|ою) (?:команд[аоуы]|опци|ключ(?!ев)|функци)\w*",
    "怎么|怎样|如何|用?(?:什么|哪个|哪条)命令",
)
_LIST = _any_of(
    r"^(?:please )?(?:list|name|enumerate)\b",
    r"^(?:what|which) (?:are|were)\b(?! (?:you|they|we)\b)",
    r"^(?:(?:in|for|on|to|by|with|from) )?(?:what|which) (?:(?!do|did|is|was|has|can)[\w-]+ ){0,2}?"
    r"(?!does|has)\w{2,}[^\Wsui]s\b(?! (?:is|was|part|for|to|the|an?|up|in|on)\b)",
    r"^(?:what|which) [\w-]*[^\Wsui]s (?:for|to|of|in|on|that) .*\b(?:do|does|did|are|were|can|have)\b",
    r"\b(?:what|which) (?:\w+ )?(?:kinds|types|sorts|ways|parts|steps|modes|forms|ones) (?:of|to|does|do|are|in)\b",
    r"^(?:назов|перечисл)\w+|\bкак(?:ие|их|им|ими)\b|\bиз (?:чего|каких)\b",
    "哪些|哪几|哪[两二三四五六七八]|列出|列举|几[种类部]|由什么组成",
)
_YES_NO = _any_of(
    r"^(?:is|are|was|were|do|does|did|can|could|has|have|had|will|would|should|may|must)\b",
    r"^\w+ ли\b|\bправда ли\b|\bможно ли\b|\bесть ли\b",
    "吗$|是否|能否|可否|[能可会有]不[能可会有]|有没有",
)

# The term to define is the group "term"; the rest of the pattern says how its definition was asked for.
_TERM = r"(?:an? |the )?(?P<term>.+?)"
_DEFINITIONS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"^what (?:does|do|did) {_TERM} (?:mean|stand for|refer to|do)(?P<rest> (?:in|on|for|with) .+)?$",
        rf"^what(?: is|'s| are) meant by {_TERM}$",
        rf"^what(?: is|'s| are) {_TERM} (?:used |good )?for$",
        rf"^(?:please )?(?:define|explain)(?: the term)? {_TERM}$",
        rf"^what(?:'s| is| are| was| were) (?:the )?(?:meaning|definition|purpose) of {_TERM}$",
        rf"^(?:so )?(?:what|who)(?:'s| is| are| was| were) {_TERM}(?P<rest> (?:in|on|for|according to) .+)?$",
        r"^(?:что|кто) так(?:ое|ой|ая|ие) (?P<term>.+?)(?P<rest> (?:в|во|на|для) .+)?$",
        r"^что (?:значит|означает|понимают под|понимается под) (?P<term>.+?)(?P<rest> (?:в|во|на) .+)?$",
        r"^(?:дай(?:те)? )?определени\w+ (?P<term>.+)$|^для чего (?:нужен|нужна|нужно|нужны) (?P<purpose>.+)$",
        r"^(?:什么是|什么叫|何谓|何为|谁是)(?:做)?(?P<term>.+)$",
        r"^(?P<term>.+?)(?:是|指的?是?|表示)(?:个)?(?:什么|啥)(?:意思|东西|概念)?$|^(?P<name>.+?)是谁$",
        r"^(?P<term>.+?)(?:的(?:含义|定义|意思|作用)是什么|有什么用)$",
    )
)
_NO_TERM = re.compile(
    r"\b(?:of|that|which|when|where|between|from|than|used|called|do|to)\b|的|\bназыва|\bкотор|[,;，；]", re.IGNORECASE
)

# Two names that are joined: each side is asked for without the other.
_JOINED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\bbetween (?P<first>.+?) and (?P<second>[^,?]+?)(?= in | of the | for |$)",
        r"\bhow (?:do|does|did|is|are) (?P<first>.+?) (?:differ(?:ent)? from|compare (?:to|with)) (?P<second>[^,?]+)",
        r"\bhow (?:do|are) (?P<first>.+?) and (?P<second>.+?)(?= differ| different| compare)",
        r"\bcompare (?P<first>.+?) (?:and|with|to) (?P<second>[^,?]+)",
        r"(?:,|:|\bdid\b|\bdoes\b|\bdo\b|\bis\b|\bare\b|\bwas\b|\bhas\b) (?P<first>[^,:]+?) or (?P<second>[^,?]+?)"
        r"(?= (?:have|had|has|do|get|make|better|more|faster|larger|older|first|come|came)\b|$)",
        r"\bчем (?P<first>.+?) отлича\w+ от (?P<second>[^,?]+)",
        r"\b(?:между|сравни\w*) (?P<first>.+?) (?:и|с|со) (?P<second>[^,?]+)",
        r"(?P<first>[^\s，]+?)(?:和|与|跟|同|还是)(?P<second>[^\s，]+?)(?=之间|有什么|有何|的(?:区别|不同|差别|差异)|哪个|谁|$)",
    )
)
_CLAUSE = re.compile(
    r"[?？]\s*"
    r"|,?\s+(?:and|but) (?=(?:(?:on|in|at|by|for|to|of|with|from) )?(?:what|which|who|whom|whose|when|where|how)\b)"
    r"|,\s+(?:а|и) (?=(?:\w+ )?(?:как|кто|что|где|когда|сколько|чей|чья)\w*)"
    r"|[，,；;](?=.*(?:什么|哪|多少|几|谁|怎))",
    re.IGNORECASE,
)
_PAIR = re.compile(
    r"\b(?P<before>in|on|for|of|by|в|во|на|у|для) (?P<first>\S+) (?:and|и) (?P=before) (?P<second>\S+)", re.I
)
_ASKING_WORDS = re.compile(
    r"\b(?:differences?|differ(?:ent)?|compared?|comparison|better|commands?|"
    r"kinds?|types?|sorts?|main|purpose|meaning|mean|stands? for|there|exist|exactly|"
    r"отлича\w+|разниц\w+|различи\w+|сравн\w+|команд(?:[аеуы]|о[йю]|ам|ами|ах)?|(?:вид|тип)(?:[аеуы]|о[вм]|ам|ами|ах)?|"
    r"существу\w+)\b|区别|不同|差别|差异|几种|哪几种|什么命令",
    re.IGNORECASE,
)
_ASKING_FOR_TERM = re.compile(
    r"^(?:что|кто) так\w+|^что (?:значит|означает)|^(?:什么是|什么叫|何谓|谁是)|是(?:什么|谁)\w*$", re.IGNORECASE
)
_END = re.compile(r"[\s?？!！.。…]+$")


def analyse_question(text: str) -> AnalysedQuestion:
    """Return the kind of a question and its parts."""
    question = _END.sub("", " ".join(text.split()))
    if _SMALL_TALK.fullmatch(re.sub(r"[,，!！.。]", "", question)):
        return AnalysedQuestion(text=text, kind=QuestionKind.SMALL_TALK, parts=())
    if asks_for_overview(question):
        topic = _OVERVIEW_WORDS.sub(" ", NUMBERED_SECTION.sub(" ", question))
        section = section_number(question)
        return AnalysedQuestion(text=text, kind=QuestionKind.OVERVIEW, parts=(_part(topic),), section=section)
    if sides := _sides(question):
        return AnalysedQuestion(text=text, kind=QuestionKind.COMPARISON, parts=sides)
    clauses = [clause for clause in _CLAUSE.split(question) if clause.strip()]
    if len(clauses) > 1:
        whole = [clauses[0], *(_completed(clause, clauses[0]) for clause in clauses[1:MAX_PARTS])]
        parts = tuple(part for clause in whole for part in analyse_question(clause).parts[:1])
        return AnalysedQuestion(text=text, kind=_kind_of(clauses[0]), parts=parts)
    if term := _term_to_define(question):
        part = _part(_ASKING_FOR_TERM.sub(" ", question), term=term)
        return AnalysedQuestion(text=text, kind=QuestionKind.DEFINITION, parts=(part,))
    return AnalysedQuestion(text=text, kind=_kind_of(question), parts=tuple(_pair_or_whole(question)))


def _completed(clause: str, first: str) -> str:
    """Return a clause that says almost nothing alone ("and on what is Flask's?") with the words of the first one.

    Names of the first clause are left out: the second asks about another.
    """
    if len(content_terms_of(clause)) > MAX_TERMS_OF_ELLIPSIS:
        return clause
    return f"{clause} {' '.join(word for word in first.split()[1:] if not word[:1].isupper())}"


def _part(words: str, term: str = "") -> QuestionPart:
    searched = _ASKING_WORDS.sub(" ", words)
    return QuestionPart(
        words=searched if searched.strip() else words, term=term, answer_type=expected_answer_type(words)
    )


def _kind_of(question: str) -> QuestionKind:
    """Return the kind of a question that is no overview, comparison of two names or definition."""
    patterns = (
        (QuestionKind.COMPARISON, _COMPARISON),
        (QuestionKind.VALUE, _VALUE),
        (QuestionKind.HOW_TO, _HOW_TO),
        (QuestionKind.LIST, _LIST),
        (QuestionKind.YES_NO, _YES_NO),
    )
    return next((kind for kind, pattern in patterns if pattern.search(question)), QuestionKind.FACT)


def _term_to_define(question: str) -> str:
    """Return the term whose definition is asked for; "" if none is."""
    if _VALUE.search(question):
        return ""
    for pattern in _DEFINITIONS:
        if match := pattern.match(question):
            groups = match.groupdict()
            term = (groups.get("term") or groups.get("purpose") or groups.get("name") or "").strip(" \"'«»“”「」`")
            is_short = len(term.split()) <= MAX_TERM_WORDS
            return term if is_short and not _NO_TERM.search(term) else ""
    return ""


def _sides(question: str) -> tuple[QuestionPart, ...]:
    """Return a part for each of two names that are compared; none if there are not two."""
    if not (_COMPARISON.search(question) or _CHOICE.search(question)):
        return ()
    for pattern in _JOINED:
        if match := pattern.search(question):
            first, second = match["first"].strip(), match["second"].strip()
            head = second.split()
            if len(first.split()) == 1 and len(head) == 2 and first.islower():  # "local and global search"
                first = f"{first} {head[-1]}"
            before, after = question[: match.start()], question[match.end() :]
            return tuple(_part(f"{before} {side} {after}", term=side) for side in (first, second))
    return ()


def _pair_or_whole(question: str) -> Iterator[QuestionPart]:
    """Yield the question once for each of two places it asks about, as "in Flask and in Django"; else the whole."""
    match = _PAIR.search(question)
    if match is None:
        yield _part(question)
        return
    for side in (match["first"], match["second"]):
        yield _part(f"{question[: match.start()]} {match['before']} {side} {question[match.end() :]}")


# What a term is, said beside it: "the -a option", "exit code 23".
_NOUNS = (
    r"(?:options?|flags?|switch|commands?|subcommand|parameters?|settings?|directives?|keywords?|variables?|functions?"
    r"|methods?|programs?|daemons?|exit|code|status|signals?|errors?|опци[яи]|параметр|ключ|команда|настройка|код"
    r"|директива|функция|переменная|сигнал|ошибка|选项|参数|命令|指令|函数|变量|信号|错误)"
)
_NOUN = re.compile(_NOUNS, re.IGNORECASE)
_BEFORE_TERM = (
    r"[\s\W]*(?:in \w+(?: \w+){0,2},\s+)?(?:(?:the|an?|in|this|so-called|concept of|term|термин|понятие)\s+)*"
    r"[*_`\"'«“「:]*"
)
_LIGHT_WORDS = frozenset(
    content_terms_of(
        "use used contain include included consist have belong make made get got give given take work find need needed "
        "want exist happen possible way ways thing kind type sort avoid "
        "используется использует содержит включает нужно нужен можно нельзя делать сделать существует находится"
    )
)
_LIGHT_CHARACTERS = re.compile("[不没应该使需要可以里候时请您你我他它]")
OFFER_STRENGTH = 0.7  # of a definition that only says what something offers: "X provides …"
_DEFINES = (
    r"(?:\s*[(（][^)）]{1,80}[)）])?[*_`'\"»”」]*\s*"
    r"(?:(?:,[^,.]{1,60},\s*)?(?:(?:is|was) (?:an?|the|one|any|used|what|where|when|how|short|simply)"
    r"|are|means?|stands? for|refers? to|represents?|describes?|denotes?|consists? of"
    r"|(?P<offers>provides?|lets?|allows?|enables?|helps?|aims? to))\b|(?:is|are):(?:\n|$)"
    r"|[—–:：]|-[ \t]+(?=\S+[ \t]+\S)|\|\s*[^\W\d_]{2}|(?:\w+ )?(?:—|–|это\b|является|называ\w+|означает|представляет)"
    r"|[，,]?(?:是|指|即|表示|为|就是|主要))"
)
_CALLED = (
    r"(?:(?:\bcalled|\bknown as|\breferred to as|\bназыва\w+)\s+(?:an? |the )?|(?:称为|叫做|叫作|称作|简称))"
    r"[*_`\"'«“「]*"
)
_ACTS = (  # "The cleanup(8) daemon processes"; no plural: "Redirect directives"
    rf"(?:\s*\(\d\w?\))?(?:\s+{_NOUNS}\s+|\s+(?!{_NOUNS}\b))(?:also |always |only )?[a-z]{{3,}}s\b"
)
_ASKS_FOR_EFFECT = re.compile(r"what (?:does|do|did)\b", re.IGNORECASE)


class TermDefinition:
    """What defines the term of a part of a question: a sentence that begins so, or an entry below lines with its terms.

    A text about its first words need only define the last one: "mask" of "systemctl mask".
    """

    def __init__(self, part: QuestionPart) -> None:
        bare = _without_nouns(part.term)
        *scope, name = bare.split() or [""]
        self._patterns = [_definition_pattern(part, term) for term in dict.fromkeys((part.term, bare)) if term]
        self._scope = frozenset(content_terms_of(" ".join(scope)))
        self._pattern_in_scope = _definition_pattern(part, name) if self._scope else None

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def strength(self, text: str, about: str) -> float:
        """Return 1 for a text that begins with a definition, 0 for any other.

        If it only says what the term offers, it is `OFFER_STRENGTH`. `about` are the title and the headings above it.
        """
        match = next(filter(None, (pattern.match(text) for pattern in self._patterns)), None)
        if not match and self._pattern_in_scope and self._scope <= {*content_terms_of(about)}:
            match = self._pattern_in_scope.match(text)
        return (OFFER_STRENGTH if match["offers"] else 1.0) if match else 0.0

    def is_in(self, text: str, about: str) -> bool:
        """Return whether a paragraph of a text begins with a definition."""
        return any(self.strength(paragraph, about) for paragraph in text.split("\n\n"))


def _definition_pattern(part: QuestionPart, term: str) -> re.Pattern[str]:
    words = [
        re.escape(word[: max(4, len(word) - 2)]) + r"\w*" if re.fullmatch("[а-яё]{5,}", word, re.I) else re.escape(word)
        for word in term.split()
    ]
    name = r"[\s*`_-]*".join(words)
    defines = rf"(?:{_DEFINES}|{_ACTS})" if _ASKS_FOR_EFFECT.match(part.words) else _DEFINES
    case = "-i" if term.startswith("-") else "i"  # the options -a and -A are two
    terms = r"(?:[^\n]{1,60}\n){0,2}(?:[^\s,]+(?:[ =][^\s,]+)?,\s)*"
    entry = rf"{terms}(?{case}:{name})(?![\w-])[^\n]{{0,60}}(?:\.\.\.|(?<![.:;,]))\n\s*(?-i:[^\W_a-zа-яё])"
    return re.compile(
        rf"{entry}|{_BEFORE_TERM}(?{case}:{name})s?{defines}|[^\n]*{_CALLED}{name}s?(?!\w)", re.IGNORECASE
    )


def _without_nouns(term: str) -> str:
    """Return a term without nouns that say what it is: "rsync 23" of "rsync exit code 23"."""
    return " ".join(word for word in term.split() if not _NOUN.fullmatch(word)) or term


def is_light(term: str) -> bool:
    """Return whether a content term asks more than it names: a text may answer without it."""
    return term in _LIGHT_WORDS or (is_unspaced(term[0]) and _LIGHT_CHARACTERS.search(term) is not None)
