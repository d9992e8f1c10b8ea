"""Heads: the words that say what a name is, and with them where it ends and which type it has."""

from quipu.ingest.local.lexicon import words

ORGANIZATION = words(
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
LOCATION = words(
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
EVENT = words(
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
CONTENT = words(
    """
    act agreement album amendment anthem article bible bill book books charter chronicle chronicles code codex
    comedy constitution convention covenant declaration decree diary directive edict edition encyclopedia epic essay
    film gazette gospel herald hymn journal law laws letters magazine manifesto manuscript memoirs memorandum
    newspaper novel ode opera pact papers patent play poem post proclamation protocol psalm quarterly regulation
    report resolution review saga scroll scrolls series show sonata song standard statute suite symphony testament
    tragedy transactions treatise treaty tribune trilogy
    """
)
CONCEPT = words(
    """
    age algorithm alphabet award awards conjecture constant doctrine dynamics dynasty effect equation equations era
    formula hypothesis inequality language law lemma matter mechanics medal method model paradox period phenomenon
    philosophy principle prize problem process program programme project relativity rule scale script syndrome
    system technique tectonics theorem theory
    """
)

# "X of Y" is one name when X ends in one of these; place words only where they are not names by themselves.
OF_HEADS = (
    (ORGANIZATION - words("church bank house yard"))
    | EVENT
    | CONTENT
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
# Of these, a longer phrase is a place of its own: "Osh Province of Kyrgyzstan" is two names.
PLACE_OF = words(
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
AND_HEADS = ORGANIZATION | words(
    """
    act bachelor encyclopedia faculty journal law master minister museum professor secretary statistics transactions
    treaty
    """
)
# A lower-case word of these ends a capitalised name: "Joseon dynasty", "Harz mountains".
TAILS = words(
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
ROYAL = words(
    """
    emperor empress king lady lord pope prince princess queen saint st sultan tsar tsarina папа хан шах
    """
)
# Offices that also begin names which are no person's: "General Motors", "Major League Baseball".
OFFICE_OR_NAME = words(
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
