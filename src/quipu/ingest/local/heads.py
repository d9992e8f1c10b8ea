"""Heads: the words that say what a name is, and with them where it ends and which type it has."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ORGANIZATION = _words(
    """
    academy administration agency airlines airways alliance archive archives army association associates authority bank
    bankers board bros brewery brigade broadcasting brotherhood bureau cabinet centre center chamber charity choir church
    circus club clubs co coalition college collective commission committee community company confederation conference
    congress conservancy conservatory consortium constabulary convention convent cooperative corp corporation corps
    council court crew department diocese archdiocese directorate division enterprises entertainment faculty federation
    fc fleet force forces forum foundation front fund gallery gmbh government group guard guild holdings hospital hotels
    house inc industries infirmary inquisition institute institution insurance inspectorate knights laboratories
    laboratory league legion legislature library llc lodge ltd magazine media ministry mission monastery motors museum
    navy network networks newspapers office opera orchestra order organisation organization parish parliament partners
    partnership party patrol philharmonic plc police polytechnic press productions programme railroad railways recordings
    records regiment reserve resistance school schools secretariat seminary senate service services seminary society solutions
    squad squadron staff studios symphony syndicate synod systems team technologies theatre theater times trust tribunal
    union university ventures workshop works yard
    """
)
LOCATION = _words(
    """
    abbey airport alley arboretum archipelago arena avenue basin bay beach boulevard borough bridge brook building
    canal canyon cape capital castle cathedral cave caves cemetery channel city cliffs coast colony condado continent corner cove county country crater creek dale dam desert district
    estate estuary falls farm fjord forest fort garden gardens gate glacier glen gorge grove gulf hall harbor harbour heights highlands highway
    hill hills house island islands isle isles junction kingdom lagoon lake lakes lane line lodge mall manor mansion marsh mesa mine mosque mount mountain mountains
    municipality neighborhood oblast ocean oasis palace park pass path peak peninsula pier plain plains plateau plaza point pond port prefecture prison province quarter range
    ranch rapids reef refuge region republic reserve reservoir ridge river road rock room ruins sanctuary sea seaside shire shore shrine site slope spring springs square
    stadium state states station steppe strait street suburb summit synagogue temple territory terrace tower town township trail tunnel turnpike university vale
    valley village vineyard volcano wadi wall ward waterfall way wharf wilderness wood woods zoo
    """
)
EVENT = _words(
    """
    accord affair armistice assassination attack attacks battle blitz bombing bowl campaign carnival ceremony championship championships civil
    classic conclave conference congress convention coronation coup crisis crusade crusades cup derby disaster draft earthquake election
    elections epidemic eruption expedition exhibition expo exposition fair famine festival fire flood games genocide gala hearing
    holocaust hurricane incident inauguration insurrection invasion massacre marathon match mutiny offensive olympics olympiad open operation
    pandemic plague pogrom prix purge raid rally race rebellion referendum regatta reformation reign renaissance restoration revolt revolution riot riots
    rising season siege slam stand storm strike summit tour tournament treaty trial trials tsunami typhoon uprising voyage war wars wedding
    """
)
CONTENT = _words(
    """
    act agreement album amendment anthem article bible bill book books charter chronicle chronicles code codex comedy constitution
    convention covenant declaration decree diary directive edict edition encyclopedia epic essay film gazette gospel herald hymn
    journal law laws letters magazine manifesto manuscript memoirs memorandum newspaper novel ode opera pact papers patent play poem post
    proclamation protocol psalm quarterly regulation report resolution review saga scroll scrolls series show song sonata
    standard statute suite symphony testament tragedy transactions treatise treaty trilogy tribune
    """
)
CONCEPT = _words(
    """
    algorithm conjecture constant doctrine dynamics effect equation equations era age formula hypothesis inequality language law lemma
    matter mechanics method model paradox period phenomenon philosophy principle problem process program programme project relativity rule
    scale syndrome system technique tectonics theorem theory alphabet script award awards medal prize dynasty
    """
)

# "X of Y" is one name when X ends in one of these; place words only where they are not names by themselves.
OF_HEADS = (
    (ORGANIZATION - _words("church bank house yard"))
    | EVENT
    | CONTENT
    | _words(
        """
        abbot age ambassador apostles archbishop archduchy archduke art arts attorney bachelor bank baron bay bishop board book cape captain castle cathedral
        chancellor chief child children chronicles church city commonwealth commander companion confessions council count county court cross crown crusade dean
        death department director district doctor dominion duchy duchess duke earl electorate emirate emperor empire empress faculty fall father federation field
        fort free gate general god governor grandduchy gulf hall head heart history house isle isles judge khanate king kingdom lady land law legend
        life line lord lords lordship margrave marquess mass master medal minister ministers mission mother mount mountains museum name night officer
        parish pass patriarch people peoples plain port president prime prince princes princess principality province provinces queen realm rector region register
        representatives republic rise river road rock sea secretary see senate sheriff shroud sign society son sons song speaker spirit
        stadium star state states statue stone straits strait sultan sultanate temple territory theatre theory throne tomb tower town treasure tree
        union university valley viceroy village virgin voice wall way wheel wings world year years
        """
    )
)
# Of these, a longer phrase is a place of its own: "Osh Province of Kyrgyzstan" is two names.
PLACE_OF = _words("district province provinces county river state states city town village parish region territory bay island pass road")
FOR_HEADS = ORGANIZATION | _words("prize award awards medal minister secretary campaign program project initiative act officer")
IN_HEADS = _words("prize award awards medal degree bachelor master doctor diploma")
AND_HEADS = ORGANIZATION | _words("minister secretary journal bachelor master faculty professor transactions treaty law act statistics encyclopedia museum")
# A lower-case word of these ends a capitalised name: "Joseon dynasty", "Harz mountains".
TAILS = _words(
    """
    dynasty mountains valley peninsula basin plateau desert coast river island islands empire era period theorem conjecture equation
    equations effect boson syndrome disease algorithm region district county province metropolitan family clan tribe language alphabet
    room clinic hospital museum church palace bridge airport station park lake volcano massacre uprising rebellion
    """
)
EPITHETS = _words(
    "great conqueror terrible wise bold fair good elder younger lionheart confessor magnificent apostle baptist evangelist navigator "
    "impaler pious cruel fat bald short tall black red white martyr hun just unready"
)
ROYAL = _words("king queen emperor empress pope prince princess saint st lord lady tsar tsarina sultan шах хан папа")
# Offices that also begin names which are no person's: "General Motors", "Major League Baseball".
OFFICE_OR_NAME = _words(
    "general major private chief prime vice justice judge count cardinal brother father sister author writer former then deputy coach "
    "director manager chair representative attorney captain secretary marshal king's"
)
MONTHS = _words(
    """
    january february march april may june july august september october november december
    jan feb mar apr jun jul aug sep sept oct nov dec
    января февраля марта апреля мая июня июля августа сентября октября ноября декабря
    """
)
DAYS = _words("monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun")
