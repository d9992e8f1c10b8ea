-- An index at schema 18, frozen: what an old version left behind. Never changed; a new schema gets a file of its own.
CREATE TABLE alias_mention (
	chunk INTEGER NOT NULL, 
	ordinal INTEGER NOT NULL, 
	entity INTEGER NOT NULL, 
	alias TEXT NOT NULL, 
	surface TEXT NOT NULL, 
	checksum INTEGER DEFAULT '0' NOT NULL, 
	PRIMARY KEY (chunk, ordinal)
)
 WITHOUT ROWID

;
INSERT INTO "alias_mention" VALUES(1,0,2,'WHO','WHO',2417241183);
CREATE TABLE change (
	revision INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	"row" INTEGER NOT NULL, 
	PRIMARY KEY (revision, kind, "row")
)
 WITHOUT ROWID

;
INSERT INTO "change" VALUES(1,'c',1);
INSERT INTO "change" VALUES(1,'c',2);
INSERT INTO "change" VALUES(1,'c',3);
INSERT INTO "change" VALUES(1,'e',1);
INSERT INTO "change" VALUES(1,'e',2);
INSERT INTO "change" VALUES(1,'e',3);
INSERT INTO "change" VALUES(1,'s',193793547);
INSERT INTO "change" VALUES(2,'s',238907419);
INSERT INTO "change" VALUES(3,'s',335455919);
CREATE TABLE chunk (
	rid INTEGER NOT NULL, 
	id TEXT NOT NULL, 
	document INTEGER NOT NULL, 
	ordinal INTEGER NOT NULL, 
	text TEXT NOT NULL, 
	start_char INTEGER NOT NULL, 
	end_char INTEGER NOT NULL, 
	page INTEGER, 
	headings TEXT NOT NULL, 
	header TEXT DEFAULT '' NOT NULL, 
	n_tokens INTEGER NOT NULL, 
	text_hash TEXT NOT NULL, 
	input_hash TEXT NOT NULL, 
	vector_hash TEXT NOT NULL, 
	error TEXT NOT NULL, 
	checksum INTEGER DEFAULT '0' NOT NULL, 
	PRIMARY KEY (rid), 
	UNIQUE (id)
);
INSERT INTO "chunk" VALUES(1,'67757cc53b042b6d',1,0,'The World Health Organization (WHO) met in Geneva.',0,50,NULL,'[]','',13,'0c7042c4f62f0fa8137766c2e76e8ffb','a9db3fc4a5d08b270e97eba52e237aa8','0f0f801de83074ba5ff39d044a85af4a','',1773592702);
INSERT INTO "chunk" VALUES(2,'697115059439a530',1,1,'Geneva is old.',52,66,NULL,'["Towns"]','',4,'4ecbe81046a354eb0405cd49c8ff5427','08cecd74e74e77543ee48439f86b1016','5d43b65849a9b0e76dd0c41bdad98bdf','',4216702998);
INSERT INTO "chunk" VALUES(3,'9baed0f207a58ffe',2,0,'WHO said 长城? Geneva did.',0,24,NULL,'[]','',7,'43af2c2e340897a4fca209c95cc7b09f','c1a3e232bb22733d1edff0ef4fe02664','26afdd7a791ede20948751201448521b','',4165594852);
CREATE TABLE claim_mention (
	chunk INTEGER NOT NULL, 
	ordinal INTEGER NOT NULL, 
	entity INTEGER NOT NULL, 
	object INTEGER, 
	type TEXT NOT NULL, 
	status TEXT NOT NULL, 
	dates TEXT NOT NULL, 
	description TEXT NOT NULL, 
	checksum INTEGER DEFAULT '0' NOT NULL, 
	PRIMARY KEY (chunk, ordinal)
)
 WITHOUT ROWID

;
CREATE TABLE cluster (
	rid INTEGER NOT NULL, 
	id TEXT NOT NULL, 
	hierarchy TEXT NOT NULL, 
	level INTEGER NOT NULL, 
	parent INTEGER, 
	n_entities INTEGER NOT NULL, 
	inputs_hash TEXT NOT NULL, 
	PRIMARY KEY (rid), 
	UNIQUE (id)
);
CREATE TABLE cluster_relation (
	rid INTEGER NOT NULL, 
	source INTEGER NOT NULL, 
	target INTEGER NOT NULL, 
	level INTEGER NOT NULL, 
	description TEXT NOT NULL, 
	weight INTEGER NOT NULL, 
	n INTEGER NOT NULL, 
	inputs_hash TEXT NOT NULL, 
	model TEXT NOT NULL, 
	PRIMARY KEY (rid), 
	UNIQUE (source, target)
);
CREATE TABLE content_part (
	hash TEXT NOT NULL, 
	ordinal INTEGER NOT NULL, 
	data BLOB NOT NULL, 
	PRIMARY KEY (hash, ordinal)
);
CREATE TABLE conversation (
	rid INTEGER NOT NULL, 
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	title TEXT NOT NULL, 
	created_at TEXT NOT NULL, 
	updated_at TEXT NOT NULL, 
	PRIMARY KEY (rid), 
	UNIQUE (id)
);
CREATE TABLE derivation (
	name TEXT NOT NULL, 
	identity TEXT NOT NULL, 
	revision INTEGER NOT NULL, 
	PRIMARY KEY (name)
);
CREATE TABLE document (
	rid INTEGER NOT NULL, 
	id TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	title TEXT NOT NULL, 
	status TEXT NOT NULL, 
	source TEXT NOT NULL, 
	media_type TEXT NOT NULL, 
	metadata TEXT NOT NULL, 
	content_hash TEXT NOT NULL, 
	added_at TEXT NOT NULL, 
	updated_at TEXT NOT NULL, 
	stands_since INTEGER DEFAULT '0' NOT NULL, 
	since TEXT DEFAULT '' NOT NULL, 
	holds_from TEXT DEFAULT '' NOT NULL, 
	holds_until TEXT DEFAULT '' NOT NULL, 
	checksum INTEGER DEFAULT '0' NOT NULL, 
	PRIMARY KEY (rid), 
	UNIQUE (id)
);
INSERT INTO "document" VALUES(1,'a.md',1,'Geneva','ready','a.md.txt','text/plain','{"tags":["health","towns"],"year":1948}','e57b6d84abb96c578ab0104247f088af','2026-11-29T09:39:34+00:00','2026-11-29T09:39:34+00:00',1,'2026-11-29T09:39:34.476889+00:00','2026-11-29T09:39:34.476889+00:00','',3798840715);
INSERT INTO "document" VALUES(2,'b.md',1,'长城','ready','b.md.txt','text/plain','{"region":"Asia"}','5716f743375212205dc1a2c566ea55b2','2026-11-29T09:39:34+00:00','2026-11-29T09:39:34+00:00',1,'2026-11-29T09:39:34.476889+00:00','2026-11-29T09:39:34.476889+00:00','',2984730618);
CREATE TABLE document_content (
	document INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	hash TEXT NOT NULL, 
	PRIMARY KEY (document, kind)
)
 WITHOUT ROWID

;
CREATE TABLE earlier_version (
	rid INTEGER NOT NULL, 
	document TEXT NOT NULL, 
	title TEXT NOT NULL, 
	since TEXT NOT NULL, 
	ended_at TEXT NOT NULL, 
	starts TEXT NOT NULL, 
	ends TEXT NOT NULL, 
	is_removed INTEGER NOT NULL, 
	n_chunks INTEGER NOT NULL, 
	payload BLOB NOT NULL, 
	PRIMARY KEY (rid)
);
CREATE TABLE edit (
	rid INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	payload TEXT NOT NULL, 
	made_at TEXT NOT NULL, 
	undone_at TEXT DEFAULT '' NOT NULL, 
	checksum INTEGER DEFAULT '0' NOT NULL, 
	PRIMARY KEY (rid)
);
CREATE TABLE edit_key (
	"key" TEXT NOT NULL, 
	edit INTEGER NOT NULL, 
	PRIMARY KEY ("key", edit)
)
 WITHOUT ROWID

;
CREATE TABLE edited_chunk (
	chunk INTEGER NOT NULL, 
	edit INTEGER NOT NULL, 
	PRIMARY KEY (chunk, edit)
)
 WITHOUT ROWID

;
CREATE TABLE entity (
	rid INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	name TEXT NOT NULL, 
	type TEXT NOT NULL, 
	description TEXT NOT NULL, 
	n_mentions INTEGER NOT NULL, 
	n_chunks INTEGER NOT NULL, 
	degree INTEGER NOT NULL, 
	vector_hash TEXT NOT NULL, 
	described_by INTEGER DEFAULT '0' NOT NULL, 
	PRIMARY KEY (rid), 
	UNIQUE ("key")
);
INSERT INTO "entity" VALUES(1,'geneva','Geneva','Location','It is old.
A town.',3,3,1,'9d089772930819e330bfbc2a8cc6c6d9',0);
INSERT INTO "entity" VALUES(2,'world health organization','World Health Organization','Organization','An agency.',1,1,1,'9431e215d9742733bde00a2077a08ce9',0);
INSERT INTO "entity" VALUES(3,'长城','长城','Artifact','',1,1,0,'d4b5a55ff0178c66d313d85e6bf2c652',0);
CREATE TABLE entity_mention (
	chunk INTEGER NOT NULL, 
	ordinal INTEGER NOT NULL, 
	entity INTEGER NOT NULL, 
	surface TEXT NOT NULL, 
	type TEXT NOT NULL, 
	description TEXT NOT NULL, 
	description_order BIGINT NOT NULL, 
	is_definition INTEGER NOT NULL, 
	start_char INTEGER NOT NULL, 
	end_char INTEGER NOT NULL, 
	checksum INTEGER DEFAULT '0' NOT NULL, 
	PRIMARY KEY (chunk, ordinal)
)
 WITHOUT ROWID

;
INSERT INTO "entity_mention" VALUES(1,0,2,'World Health Organization','Organization','An agency.',374757275996133010,1,4,29,1565165389);
INSERT INTO "entity_mention" VALUES(1,1,1,'Geneva','Location','A town.',3178006334087765818,0,43,49,2016127390);
INSERT INTO "entity_mention" VALUES(2,0,1,'Geneva','Location','It is old.',2910042435878595289,0,0,6,3880807105);
INSERT INTO "entity_mention" VALUES(3,0,3,'长城','Artifact','',-1,0,9,11,2025951219);
INSERT INTO "entity_mention" VALUES(3,1,1,'geneva','Other','',-1,0,0,0,1833223004);
CREATE TABLE entity_name (
	rid INTEGER NOT NULL, 
	vector_hash TEXT NOT NULL, 
	revision INTEGER NOT NULL, 
	is_compared INTEGER NOT NULL, 
	PRIMARY KEY (rid)
);
CREATE TABLE entity_surface (
	entity INTEGER NOT NULL, 
	surface TEXT NOT NULL, 
	n INTEGER NOT NULL, 
	PRIMARY KEY (entity, surface)
)
 WITHOUT ROWID

;
INSERT INTO "entity_surface" VALUES(1,'Geneva',2);
INSERT INTO "entity_surface" VALUES(1,'geneva',1);
INSERT INTO "entity_surface" VALUES(2,'World Health Organization',1);
INSERT INTO "entity_surface" VALUES(3,'长城',1);
CREATE TABLE entity_type (
	entity INTEGER NOT NULL, 
	type TEXT NOT NULL, 
	n INTEGER NOT NULL, 
	PRIMARY KEY (entity, type)
)
 WITHOUT ROWID

;
INSERT INTO "entity_type" VALUES(1,'Location',2);
INSERT INTO "entity_type" VALUES(1,'Other',1);
INSERT INTO "entity_type" VALUES(2,'Organization',1);
INSERT INTO "entity_type" VALUES(3,'Artifact',1);
CREATE TABLE exchange (
	rid INTEGER NOT NULL, 
	conversation INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	question TEXT NOT NULL, 
	asked_at TEXT NOT NULL, 
	answer TEXT, 
	PRIMARY KEY (rid), 
	UNIQUE (conversation, number)
);
CREATE TABLE exchange_document (
	exchange INTEGER NOT NULL, 
	document INTEGER NOT NULL, 
	PRIMARY KEY (exchange, document)
)
 WITHOUT ROWID

;
CREATE TABLE job (
	rid INTEGER NOT NULL, 
	document TEXT NOT NULL, 
	status TEXT NOT NULL, 
	title TEXT NOT NULL, 
	source TEXT NOT NULL, 
	media_type TEXT NOT NULL, 
	metadata TEXT NOT NULL, 
	chunking TEXT DEFAULT '' NOT NULL, 
	data BLOB, 
	error TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	lease_until FLOAT NOT NULL, 
	added_at TEXT NOT NULL, 
	PRIMARY KEY (rid), 
	UNIQUE (document)
);
INSERT INTO "job" VALUES(1,'c.md','queued','Later','','text/plain','{"n":1}','',X'57616974696E672E','','',0.0,'2026-11-29T09:39:34+00:00');
CREATE TABLE link (
	name INTEGER NOT NULL, 
	chunk INTEGER NOT NULL, 
	n INTEGER NOT NULL, 
	PRIMARY KEY (name, chunk)
)
 WITHOUT ROWID

;
INSERT INTO "link" VALUES(1,1,1);
INSERT INTO "link" VALUES(1,3,1);
INSERT INTO "link" VALUES(2,1,1);
INSERT INTO "link" VALUES(2,2,1);
INSERT INTO "link" VALUES(2,3,1);
INSERT INTO "link" VALUES(3,1,1);
INSERT INTO "link" VALUES(4,3,1);
CREATE TABLE membership (
	entity INTEGER NOT NULL, 
	cluster INTEGER NOT NULL, 
	PRIMARY KEY (entity, cluster)
)
 WITHOUT ROWID

;
CREATE TABLE meta (
	"key" TEXT NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "meta" VALUES('schema','18');
INSERT INTO "meta" VALUES('tokenizer','quipu-words/3');
INSERT INTO "meta" VALUES('identity','af116c1266de4630ad675307c1d2be64');
INSERT INTO "meta" VALUES('revision','3');
INSERT INTO "meta" VALUES('entities','1');
INSERT INTO "meta" VALUES('facts','1');
INSERT INTO "meta" VALUES('vector_row','7');
INSERT INTO "meta" VALUES('job_row','2');
CREATE TABLE metadata_value (
	document INTEGER NOT NULL, 
	field TEXT NOT NULL, 
	ordinal INTEGER NOT NULL, 
	text TEXT NOT NULL, 
	number FLOAT, 
	PRIMARY KEY (document, field, ordinal)
)
 WITHOUT ROWID

;
INSERT INTO "metadata_value" VALUES(1,'tags',0,'health',NULL);
INSERT INTO "metadata_value" VALUES(1,'tags',1,'towns',NULL);
INSERT INTO "metadata_value" VALUES(1,'year',0,'1948',1948.0);
INSERT INTO "metadata_value" VALUES(2,'region',0,'asia',NULL);
CREATE TABLE model (
	rid INTEGER NOT NULL, 
	identity TEXT NOT NULL, 
	dimension INTEGER NOT NULL, 
	state TEXT NOT NULL, 
	PRIMARY KEY (rid), 
	UNIQUE (identity)
);
INSERT INTO "model" VALUES(1,'tests/words',4,'live');
CREATE TABLE name (
	rid INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	words TEXT DEFAULT '' NOT NULL, 
	n INTEGER NOT NULL, 
	PRIMARY KEY (rid), 
	UNIQUE ("key")
);
INSERT INTO "name" VALUES(1,'WHO','who',1);
INSERT INTO "name" VALUES(2,'geneva','geneva',1);
INSERT INTO "name" VALUES(3,'world health organization','world health organization',1);
INSERT INTO "name" VALUES(4,'长城','长 城',1);
CREATE TABLE posting (
	segment INTEGER NOT NULL, 
	term TEXT NOT NULL, 
	slots BLOB NOT NULL, 
	counts BLOB NOT NULL, 
	positions BLOB NOT NULL, 
	PRIMARY KEY (segment, term)
)
 WITHOUT ROWID

;
INSERT INTO "posting" VALUES(1,'^/7d9d055209553d10',X'0000',X'00',X'');
INSERT INTO "posting" VALUES(1,'^/a780fab2ccb3dee8',X'0200',X'00',X'');
INSERT INTO "posting" VALUES(1,'^0who',X'00000200',X'0000',X'');
INSERT INTO "posting" VALUES(1,'^=geneva',X'0000',X'00',X'');
INSERT INTO "posting" VALUES(1,'^=长城',X'0200',X'00',X'');
INSERT INTO "posting" VALUES(1,'^geneva',X'000001000200',X'000000',X'');
INSERT INTO "posting" VALUES(1,'^health',X'0000',X'00',X'');
INSERT INTO "posting" VALUES(1,'^organization',X'0000',X'00',X'');
INSERT INTO "posting" VALUES(1,'^the',X'0000',X'00',X'');
INSERT INTO "posting" VALUES(1,'^world',X'0000',X'00',X'');
INSERT INTO "posting" VALUES(1,'^城',X'0200',X'00',X'');
INSERT INTO "posting" VALUES(1,'^长',X'0200',X'00',X'');
INSERT INTO "posting" VALUES(1,'b',X'0200',X'01',X'0200');
INSERT INTO "posting" VALUES(1,'did',X'0200',X'01',X'0800');
INSERT INTO "posting" VALUES(1,'geneva',X'000001000200',X'020201',X'00000800000001000700');
INSERT INTO "posting" VALUES(1,'health',X'0000',X'01',X'0300');
INSERT INTO "posting" VALUES(1,'in',X'0000',X'01',X'0700');
INSERT INTO "posting" VALUES(1,'is',X'0100',X'01',X'0200');
INSERT INTO "posting" VALUES(1,'met',X'0000',X'01',X'0600');
INSERT INTO "posting" VALUES(1,'old',X'0100',X'01',X'0300');
INSERT INTO "posting" VALUES(1,'organization',X'0000',X'01',X'0400');
INSERT INTO "posting" VALUES(1,'said',X'0200',X'01',X'0400');
INSERT INTO "posting" VALUES(1,'the',X'0000',X'01',X'0100');
INSERT INTO "posting" VALUES(1,'who',X'00000200',X'0101',X'05000300');
INSERT INTO "posting" VALUES(1,'world',X'0000',X'01',X'0200');
INSERT INTO "posting" VALUES(1,'城',X'0200',X'02',X'01000600');
INSERT INTO "posting" VALUES(1,'长城',X'0200',X'02',X'00000500');
CREATE TABLE question (
	rid INTEGER NOT NULL, 
	chunk INTEGER NOT NULL, 
	ordinal INTEGER NOT NULL, 
	start_char INTEGER NOT NULL, 
	end_char INTEGER NOT NULL, 
	vector_hash TEXT NOT NULL, 
	PRIMARY KEY (rid), 
	UNIQUE (chunk, ordinal)
);
CREATE TABLE relation (
	rid INTEGER NOT NULL, 
	source INTEGER NOT NULL, 
	target INTEGER NOT NULL, 
	keywords TEXT NOT NULL, 
	description TEXT NOT NULL, 
	weight INTEGER NOT NULL, 
	n_mentions INTEGER NOT NULL, 
	n_chunks INTEGER NOT NULL, 
	vector_hash TEXT NOT NULL, 
	described_by INTEGER DEFAULT '0' NOT NULL, 
	PRIMARY KEY (rid), 
	UNIQUE (source, target)
);
INSERT INTO "relation" VALUES(1,1,2,'["meeting","town"]','They met.',1500,1,1,'6b079a0c34cbd72c4697178454cab226',0);
CREATE TABLE relation_keyword (
	relation INTEGER NOT NULL, 
	keyword TEXT NOT NULL, 
	n INTEGER NOT NULL, 
	PRIMARY KEY (relation, keyword)
)
 WITHOUT ROWID

;
INSERT INTO "relation_keyword" VALUES(1,'meeting',1);
INSERT INTO "relation_keyword" VALUES(1,'town',1);
CREATE TABLE relation_mention (
	chunk INTEGER NOT NULL, 
	ordinal INTEGER NOT NULL, 
	relation INTEGER NOT NULL, 
	is_reversed INTEGER NOT NULL, 
	keywords TEXT NOT NULL, 
	description TEXT NOT NULL, 
	description_order BIGINT NOT NULL, 
	weight INTEGER NOT NULL, 
	checksum INTEGER DEFAULT '0' NOT NULL, 
	PRIMARY KEY (chunk, ordinal)
)
 WITHOUT ROWID

;
INSERT INTO "relation_mention" VALUES(1,0,1,1,'["meeting","town"]','They met.',2378673140497695825,1500,3490139730);
CREATE TABLE reply (
	input_hash TEXT NOT NULL, 
	payload BLOB NOT NULL, 
	lifetime TEXT DEFAULT 'documents' NOT NULL, 
	PRIMARY KEY (input_hash)
);
INSERT INTO "reply" VALUES('hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh',X'789CABAE0500017500F9','documents');
CREATE TABLE reply_document (
	document TEXT NOT NULL, 
	input_hash TEXT NOT NULL, 
	version INTEGER DEFAULT '0' NOT NULL, 
	PRIMARY KEY (document, input_hash)
)
 WITHOUT ROWID

;
INSERT INTO "reply_document" VALUES('a.md','08cecd74e74e77543ee48439f86b1016',0);
INSERT INTO "reply_document" VALUES('a.md','a9db3fc4a5d08b270e97eba52e237aa8',0);
INSERT INTO "reply_document" VALUES('a.md','hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh',1);
INSERT INTO "reply_document" VALUES('b.md','c1a3e232bb22733d1edff0ef4fe02664',0);
CREATE TABLE reply_source (
	input_hash TEXT NOT NULL, 
	source TEXT NOT NULL, 
	PRIMARY KEY (input_hash, source)
)
 WITHOUT ROWID

;
CREATE TABLE report (
	rid INTEGER NOT NULL, 
	title TEXT NOT NULL, 
	summary TEXT NOT NULL, 
	findings TEXT NOT NULL, 
	rating FLOAT NOT NULL, 
	chunks TEXT NOT NULL, 
	inputs_hash TEXT NOT NULL, 
	model TEXT NOT NULL, 
	vector_hash TEXT NOT NULL, 
	checksum INTEGER DEFAULT '0' NOT NULL, 
	PRIMARY KEY (rid)
);
CREATE TABLE segment (
	rid INTEGER NOT NULL, 
	n_chunks INTEGER NOT NULL, 
	n_terms INTEGER NOT NULL, 
	first INTEGER NOT NULL, 
	last INTEGER NOT NULL, 
	chunks BLOB NOT NULL, 
	lengths BLOB NOT NULL, 
	PRIMARY KEY (rid)
);
INSERT INTO "segment" VALUES(1,3,22,1,3,X'010000000000000002000000000000000300000000000000',X'090000000400000009000000');
CREATE TABLE sentence (
	rid INTEGER NOT NULL, 
	chunk INTEGER NOT NULL, 
	ordinal INTEGER NOT NULL, 
	start_char INTEGER NOT NULL, 
	end_char INTEGER NOT NULL, 
	vector_hash TEXT NOT NULL, 
	checksum INTEGER DEFAULT '0' NOT NULL, 
	PRIMARY KEY (rid), 
	UNIQUE (chunk, ordinal)
);
CREATE TABLE spelling (
	spelling TEXT NOT NULL, 
	name INTEGER NOT NULL, 
	PRIMARY KEY (spelling, name)
)
 WITHOUT ROWID

;
INSERT INTO "spelling" VALUES('geneva',2);
INSERT INTO "spelling" VALUES('vorldhealthorganization',3);
INSERT INTO "spelling" VALUES('zhangcheng',4);
CREATE TABLE summary (
	kind TEXT NOT NULL, 
	owner INTEGER NOT NULL, 
	inputs_hash TEXT NOT NULL, 
	text TEXT NOT NULL, 
	model TEXT NOT NULL, 
	checksum INTEGER DEFAULT '0' NOT NULL, 
	PRIMARY KEY (kind, owner)
);
CREATE TABLE synonym (
	first INTEGER NOT NULL, 
	second INTEGER NOT NULL, 
	similarity INTEGER NOT NULL, 
	PRIMARY KEY (first, second)
)
 WITHOUT ROWID

;
CREATE TABLE unedited (
	chunk INTEGER NOT NULL, 
	payload BLOB NOT NULL, 
	PRIMARY KEY (chunk)
);
CREATE TABLE usage (
	day TEXT NOT NULL, 
	stage TEXT NOT NULL, 
	model TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	n_calls INTEGER NOT NULL, 
	input_tokens BIGINT NOT NULL, 
	cached_tokens BIGINT NOT NULL, 
	output_tokens BIGINT NOT NULL, 
	cost BIGINT NOT NULL, 
	n_unpriced INTEGER NOT NULL, 
	n_interrupted INTEGER NOT NULL, 
	interrupted_input_tokens BIGINT NOT NULL, 
	interrupted_cached_tokens BIGINT NOT NULL, 
	interrupted_output_tokens BIGINT NOT NULL, 
	interrupted_cost BIGINT NOT NULL, 
	PRIMARY KEY (day, stage, model, subject)
)
 WITHOUT ROWID

;
CREATE TABLE vector (
	rid INTEGER NOT NULL, 
	model INTEGER NOT NULL, 
	space TEXT NOT NULL, 
	text_hash TEXT NOT NULL, 
	data BLOB NOT NULL, 
	checksum INTEGER DEFAULT '0' NOT NULL, 
	PRIMARY KEY (rid), 
	UNIQUE (text_hash, model)
);
INSERT INTO "vector" VALUES(0,1,'c','0f0f801de83074ba5ff39d044a85af4a',X'203AA0390032002C',312548170);
INSERT INTO "vector" VALUES(1,1,'c','26afdd7a791ede20948751201448521b',X'001CE035D838583A',2733686967);
INSERT INTO "vector" VALUES(2,1,'c','5d43b65849a9b0e76dd0c41bdad98bdf',X'E035803B30350029',1033678156);
INSERT INTO "vector" VALUES(3,1,'e','9431e215d9742733bde00a2077a08ce9',X'802D68395039C033',854738816);
INSERT INTO "vector" VALUES(4,1,'e','9d089772930819e330bfbc2a8cc6c6d9',X'783BF83AC032283A',3023000398);
INSERT INTO "vector" VALUES(5,1,'e','d4b5a55ff0178c66d313d85e6bf2c652',X'48387034C83A7039',938678924);
INSERT INTO "vector" VALUES(6,1,'r','6b079a0c34cbd72c4697178454cab226',X'E036303450380029',1876130830);
CREATE TABLE vector_gone (
	rid INTEGER NOT NULL, 
	model INTEGER NOT NULL, 
	space TEXT NOT NULL, 
	revision INTEGER NOT NULL, 
	PRIMARY KEY (rid)
);
CREATE TABLE vector_todo (
	model INTEGER NOT NULL, 
	text_hash TEXT NOT NULL, 
	space TEXT NOT NULL, 
	PRIMARY KEY (model, text_hash)
)
 WITHOUT ROWID

;
CREATE INDEX metadata_value_field ON metadata_value (field, text);
CREATE INDEX chunk_document ON chunk (document, ordinal);
CREATE INDEX chunk_vector ON chunk (vector_hash);
CREATE INDEX entity_mention_entity ON entity_mention (entity, description_order);
CREATE INDEX relation_mention_relation ON relation_mention (relation, description_order);
CREATE INDEX alias_mention_entity ON alias_mention (entity);
CREATE INDEX alias_mention_alias ON alias_mention (alias);
CREATE INDEX claim_mention_entity ON claim_mention (entity);
CREATE INDEX document_content_hash ON document_content (hash);
CREATE INDEX reply_revision ON reply (lifetime) WHERE lifetime = 'revision';
CREATE INDEX reply_document_input ON reply_document (input_hash);
CREATE INDEX reply_source_source ON reply_source (source);
CREATE INDEX entity_vector ON entity (vector_hash);
CREATE INDEX entity_unsummarised ON entity (described_by) WHERE described_by = 1;
CREATE INDEX relation_target ON relation (target);
CREATE INDEX relation_unsummarised ON relation (described_by) WHERE described_by = 1;
CREATE INDEX relation_vector ON relation (vector_hash);
CREATE INDEX name_words ON name (words);
CREATE INDEX link_chunk ON link (chunk);
CREATE INDEX vector_space ON vector (model, space);
CREATE INDEX vector_gone_revision ON vector_gone (model, space, revision);
CREATE INDEX job_status ON job (status, rid);
CREATE INDEX cluster_hierarchy ON cluster (hierarchy, level);
CREATE INDEX cluster_parent ON cluster (parent);
CREATE INDEX membership_cluster ON membership (cluster);
CREATE INDEX report_vector ON report (vector_hash);
CREATE INDEX cluster_relation_target ON cluster_relation (target);
CREATE INDEX cluster_relation_model ON cluster_relation (model);
CREATE INDEX synonym_second ON synonym (second);
CREATE INDEX entity_name_new ON entity_name (is_compared) WHERE is_compared = 0;
CREATE INDEX entity_name_vector ON entity_name (vector_hash);
CREATE INDEX sentence_vector ON sentence (vector_hash);
CREATE INDEX question_vector ON question (vector_hash);
CREATE INDEX conversation_owner ON conversation (owner, updated_at);
CREATE INDEX conversation_updated_at ON conversation (updated_at);
CREATE INDEX exchange_document_document ON exchange_document (document);
CREATE INDEX edited_chunk_edit ON edited_chunk (edit);
CREATE INDEX earlier_version_document ON earlier_version (document, since);
