"""Function words: those that hold a sentence or a question together and name nothing (English, Russian, Chinese)."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ENGLISH = _words(
    """
    a about above after again against all also am an and any are as at be because been before being below between both
    but by can could did do does doing down during each either else few for from further had has have having he her
    here hers him his how i if in into is it its itself just may me might more most much many must my no nor not now of
    off on once only or other our out over own please same shall she should so some such than that the their them then
    there these they this those through to too under until up upon us very was we were what when where whether which
    while who whom whose why will with without would yes you your call called name named tell
    """
)
_RUSSIAN = _words(
    """
    а без бы был была были было быть в вам вас весь во вот все всё всего всех вы где да для до его ее её ей ему если
    есть еще ещё же за зачем и из или им их к каждый как каков какова каковы какая какие каким каких какого какое какой
    какому каком какую кем ко когда кого который которая которое которые которого которой которую которых которым
    котором кому ком кто куда ли либо мне много мы на над назвать назови называется назывался наш не него нее неё нет
    ни них но ну о об обо однако он она они оно от откуда по под почему при про с сам свой своей своего свою себя
    сколько со так также такой там те тем то тогда того тоже той только том ту ты у уже чего чей чем чему что чтобы чье
    чьё чья чьи эта эти это этого этой этом этот
    """
)
# Chinese is indexed by pairs of characters: the words, and the pairs that question words make with their neighbours.
_CHINESE = _words(
    """
    的 了 是 在 和 与 有 被 于 这 那 几 谁 吗 呢 哪 何 什么 甚么 多少 哪里 哪儿 哪个 哪位 哪些 哪年 哪一 哪国 何时 何地
    何人 几个 几年 为什 怎么 怎样 如何 是谁 谁是 谁在 的是 是什 是在 在哪 了什 的什 了哪 是哪 时候 么时 么人 么地
    """
)

FUNCTION_WORDS = _ENGLISH | _RUSSIAN | _CHINESE
