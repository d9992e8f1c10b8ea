"""Lexicon: the word lists that the rules use, as files for each language and as head nouns of English names."""

from functools import cache
from importlib.resources import files


def words(text: str) -> frozenset[str]:
    """Return the words of `text` as a set."""
    return frozenset(text.split())


@cache
def word_set(name: str) -> frozenset[str]:
    """Return the casefolded words of the file lexicon/`name`.txt; a line that starts with "#" is a comment."""
    text = (files("quipu.ingest.local") / "lexicon" / f"{name}.txt").read_text("utf-8")
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return frozenset(word for line in lines for word in line.casefold().split())


@cache
def sentence_openers(language: str) -> frozenset[str]:
    """Return the words of "en" or "ru" that begin sentences but never names; function words are among them."""
    return word_set(f"{language}_function") | word_set(f"{language}_openers") | word_set(f"{language}_verbs")


@cache
def common_words(language: str) -> frozenset[str]:
    """Return the words of "en" or "ru" that name nothing on their own, even with a capital; openers are among them.

    Demonyms and roles of both languages are always included.
    """
    return sentence_openers(language) | word_set(f"{language}_common") | word_set("demonyms") | word_set("roles")


def is_cyrillic(form: str) -> bool:
    """Return whether a casefolded word begins with a Russian letter."""
    return "а" <= form[:1] <= "я" or form[:1] == "ё"


def is_function_word(form: str) -> bool:
    """Return whether a casefolded English or Russian word carries no meaning. Russian words are read on demand."""
    return form in word_set("en_function") or (is_cyrillic(form) and form in word_set("ru_function"))


def is_sentence_opener(form: str) -> bool:
    """Return whether a casefolded English or Russian word begins sentences but never names."""
    return form in sentence_openers("en") or (is_cyrillic(form) and form in sentence_openers("ru"))


def is_common_word(form: str) -> bool:
    """Return whether a casefolded English or Russian word names nothing on its own, even with a capital."""
    return form in common_words("en") or (is_cyrillic(form) and form in common_words("ru"))


# The head noun of an English name shows its entity type, and with that where the name ends.
ORGANIZATION_HEADS = words(
    """
    academy administration agency airlines airways alliance archdiocese archive archives army associates association
    authority bank bankers board brewery brigade broadcasting bros brotherhood bureau cabinet center centre chamber
    charity choir church circus club clubs co coalition collective college commission committee community company
    confederation conference congress conservancy conservatory consortium constabulary convent convention
    cooperative corp corporation corps council court crew department diocese directorate division enterprises
    entertainment faculty fc federation fleet force forces forum foundation front fund gallery gmbh government group
    guard guild holdings hospital hotels house inc industries infirmary inquisition inspectorate institute
    institution insurance knights laboratories laboratory league legion legislature library llc lodge ltd magazine
    media ministry mission monastery motors museum navy network networks newspapers office opera orchestra order
    organisation organization parish parliament partners partnership party patrol philharmonic plc police
    polytechnic press productions programme railroad railways recordings records regiment reserve resistance school
    schools secretariat seminary senate service services society solutions squad squadron staff studios symphony
    syndicate synod systems team technologies theater theatre times tribunal trust union university ventures works
    workshop yard
    """
)
LOCATION_HEADS = words(
    """
    abbey airport alley arboretum archipelago arena avenue basin bay beach borough boulevard bridge brook building
    canal canyon cape capital castle cathedral cave caves cemetery channel city cliffs coast colony condado
    continent corner country county cove crater creek dale dam desert district estate estuary falls farm fjord
    forest fort garden gardens gate glacier glen gorge grove gulf hall harbor harbour heights highlands highway hill
    hills house island islands isle isles junction kingdom lagoon lake lakes lane line lodge mall manor mansion
    marsh mesa mine mosque mount mountain mountains municipality neighborhood oasis oblast ocean palace park pass
    path peak peninsula pier plain plains plateau plaza point pond port prefecture prison province quarter ranch
    range rapids reef refuge region republic reserve reservoir ridge river road rock room ruins sanctuary sea
    seaside shire shore shrine site slope spring springs square stadium state states station steppe strait street
    suburb summit synagogue temple terrace territory tower town township trail tunnel turnpike vale valley village
    vineyard volcano wadi wall ward waterfall way wharf wilderness wood woods zoo
    """
)
EVENT_HEADS = words(
    """
    accord affair armistice assassination attack attacks battle blitz bombing bowl campaign carnival ceremony
    championship championships civil classic conclave conference congress convention coronation coup crisis crusade
    crusades cup derby disaster draft earthquake election elections epidemic eruption exhibition expedition expo
    exposition fair famine festival fire flood gala games genocide hearing holocaust hurricane inauguration incident
    insurrection invasion marathon massacre match mutiny offensive olympiad olympics open operation pandemic plague
    pogrom prix purge race raid rally rebellion referendum reformation regatta reign renaissance restoration revolt
    revolution riot riots rising season siege slam stand storm strike summit tour tournament treaty trial trials
    tsunami typhoon uprising voyage war wars wedding
    """
)
CONTENT_HEADS = words(
    """
    act agreement album amendment anthem article bible bill book books charter chronicle chronicles code codex
    comedy constitution convention covenant declaration decree diary directive edict edition encyclopedia epic essay
    film gazette gospel herald hymn journal law laws letters magazine manifesto manuscript memoirs memorandum
    newspaper novel ode opera pact papers patent play poem post proclamation protocol psalm quarterly regulation
    report resolution review saga scroll scrolls series show sonata song standard statute suite symphony testament
    tragedy transactions treatise treaty tribune trilogy
    """
)
CONCEPT_HEADS = words(
    """
    age algorithm alphabet award awards conjecture constant doctrine dynamics dynasty effect equation equations era
    formula hypothesis inequality language law lemma matter mechanics medal method model paradox period phenomenon
    philosophy principle prize problem process program programme project relativity rule scale script syndrome
    system technique tectonics theorem theory
    """
)

# A name of two or more words that ends in one of these is complete.
NAME_ENDS = ORGANIZATION_HEADS | LOCATION_HEADS | EVENT_HEADS | CONTENT_HEADS | CONCEPT_HEADS

# "X of Y" is one name if X ends in one of these. Words for places are included only if X alone is not a name.
OF_HEADS = (
    (ORGANIZATION_HEADS - words("church bank house yard"))
    | EVENT_HEADS
    | CONTENT_HEADS
    | words(
        """
    abbot age ambassador apostles archbishop archduchy archduke art arts attorney bachelor bank baron bay bishop
    board book cape captain castle cathedral chancellor chief child children chronicles church city commander
    commonwealth companion confessions council count county court cross crown crusade dean death department director
    district doctor dominion duchess duchy duke earl electorate emirate emperor empire empress faculty fall father
    federation field fort free gate general god governor grandduchy gulf hall head heart history house isle isles
    judge khanate king kingdom lady land law legend life line lord lords lordship margrave marquess mass master
    medal minister ministers mission mother mount mountains museum name night officer parish pass patriarch people
    peoples plain port president prime prince princes princess principality province provinces queen realm rector
    region register representatives republic rise river road rock sea secretary see senate sheriff shroud sign
    society son song sons speaker spirit stadium star state states statue stone strait straits sultan sultanate
    temple territory theatre theory throne tomb tower town treasure tree union university valley viceroy village
    virgin voice wall way wheel wings world year years
    """
    )
)
# But an X of several words that ends in one of these is a place by itself: "Osh Province of Kyrgyzstan" is two names.
PLACE_OF_HEADS = words(
    """
    bay city county district island parish pass province provinces region river road state states territory town
    village
    """
)
FOR_HEADS = words(
    """
    academy act agency alliance association authority award awards board bureau campaign center centre coalition
    commission committee council court department directorate federation foundation fund group initiative institute
    medal minister ministry mission movement museum network office officer organisation organization prize program
    programme project school secretary society task trust union
    """
)
IN_HEADS = words("prize award awards medal degree bachelor master doctor diploma")
AND_HEADS = ORGANIZATION_HEADS | words(
    """
    act bachelor encyclopedia faculty journal law master minister museum professor secretary statistics transactions
    treaty
    """
)
# These lower-case words can end a capitalised name: "Joseon dynasty", "Harz mountains".
LOWER_CASE_HEADS = words(
    """
    airport algorithm alphabet basin boson bridge church clan clinic coast conjecture county desert disease district
    dynasty effect empire equation equations era family hospital island islands lake language massacre metropolitan
    mountains museum palace park peninsula period plateau province rebellion region river room station syndrome
    theorem tribe uprising valley volcano
    """
)
EPITHETS = words(
    """
    apostle bald baptist black bold confessor conqueror cruel elder evangelist fair fat good great hun impaler just
    lionheart magnificent martyr navigator pious red short tall terrible unready white wise younger
    """
)
ROYAL_TITLES = words(
    """
    emperor empress king lady lord pope prince princess queen saint st sultan tsar tsarina папа хан шах
    """
)
# Offices that can also begin names other than persons: "General Motors", "Major League Baseball".
AMBIGUOUS_OFFICES = words(
    """
    attorney author brother captain cardinal chair chief coach count deputy director father former general judge
    justice king's major manager marshal prime private representative secretary sister then vice writer
    """
)
MONTHS = words(
    """
    apr april aug august dec december feb february jan january jul july jun june mar march may nov november oct
    october sep sept september августа апреля декабря июля июня марта мая ноября октября сентября февраля января
    """
)
DAYS = words("monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun")
