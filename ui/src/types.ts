// Types: the parts of the server's replies that the page reads. `/api/v1/openapi.json` describes them whole.

export type Status = "queued" | "parsing" | "extracting" | "ready" | "partial" | "failed" | "removing";

export interface Document {
  id: string;
  title: string;
  source: string;
  media_type: string;
  status: Status;
  error: string;
  n_chunks: number;
  n_failed_chunks: number;
  metadata: Record<string, unknown>;
  added_at: string;
  updated_at: string;
  text_hash: string;
  original_hash: string;
  holds_from: string;
  holds_until: string;
}

export interface Chunk {
  id: string;
  document_id: string;
  title: string;
  start: number;
  end: number;
  ordinal: number;
  text: string;
  headings: string[];
  page: number | null;
}

export interface Citation {
  number: number;
  document_id: string;
  title: string;
  chunk_id: string;
  start: number;
  end: number;
  quote: string;
  page: number | null;
  headings: string[];
  source: string;
  date?: string; // the one that its document states; an answer that was saved earlier has none
  also_in?: string[]; // other documents with the same text; an answer that was saved earlier does not name them
}

export interface Statement {
  text: string;
  start: number;
  end: number;
  citations: Citation[];
  is_supported: boolean;
}

export interface Hit {
  id: string;
  score: number;
  reason: string;
}

export interface Seed {
  text: string;
  kind: string;
  matches: { id: string; score: number }[];
}

export interface Evidence {
  chunks: Hit[];
  entities: Hit[];
  relations: Hit[];
  claims: Hit[];
  reports: Hit[];
  seeds: Seed[];
  notes: string[];
  omissions: string[];
}

export interface UsageRow {
  day: string;
  stage: string;
  model: string;
  subject: string;
  n_calls: number;
  cost: number;
  currency: string;
  tokens: { input: number; output: number };
  [other: string]: unknown;
}

/** What did not fit a budget of tokens. */
export interface DroppedHits {
  section: string;
  budget: number;
  ids: string[];
}

export interface Answer {
  text: string;
  generator: string;
  citations: Citation[];
  is_supported: boolean;
  context: string;
  prompt: string;
  statements: Statement[];
  highlights: [number, number][];
  citation_marks: [number, number][];
  notes: string[];
  usage: UsageRow[];
  trace: {
    strategy: string;
    revision: number;
    evidence: Evidence;
    dropped: DroppedHits[];
    timings: { stage: string; ms: number }[];
    stale: string[];
    notes: string[];
    n_calls: number;
  };
}

export interface Passage {
  chunk: Chunk;
  document: Document;
  score: number;
  reason: string;
}

export interface QuestionOption {
  field: string;
  description: string;
  default: string | number | boolean;
  minimum: number | null;
  maximum: number | null;
  choices: string[];
}

export interface Strategy {
  name: string;
  summary: string;
  after: string;
  when: string;
  needs: string[];
  options: QuestionOption[];
}

export interface Session {
  name: string;
  permission: "read" | "write" | "admin";
  opens: string[]; // the workspaces there are for it
  expires: string;
}

export interface Entity {
  key: string;
  name: string;
  type: string;
  description: string;
  aliases: string[];
  n_mentions: number;
  n_chunks: number;
  degree: number;
}

export interface Relation {
  id: string;
  source: string;
  target: string;
  source_name: string;
  target_name: string;
  description: string;
  keywords: string[];
  weight: number;
  n_mentions: number;
  n_chunks: number;
}

export interface Job {
  id: string;
  kind: "add" | "refresh";
  status: "waiting" | "running" | "stopped" | "finished" | "cancelled";
  created_at: string;
  finished_at: string;
  n_subjects: number;
  subjects: string[];
  documents: Partial<Record<Status, number>>;
  failed: [string, string][];
  stage: string;
  n_done: number;
  n_total: number;
  tokens: number;
  cost: number;
  seconds_left: number | null;
  stopped: string;
}

/** What the server did with documents that were sent to it. */
export interface Added {
  job: Job | null;
  added: string[];
  updated: string[];
  unchanged: string[];
  unreadable: [string, string][];
}

export interface DocumentPage {
  documents: Document[];
  cursor: string;
}

export interface Edit {
  kind: string;
  entities: string[];
  key: string;
  name: string;
  type: string;
  description: string;
  keywords: string[];
  author: string;
  reason: string;
}

export interface RecordedEdit {
  id: number;
  edit: Edit;
  made_at: string;
  undone_at: string;
  has_effect: boolean;
}

export interface RemovalPreview {
  documents: string[];
  n_chunks: number;
  n_claims: number;
  n_entities: number;
  n_entities_changed: number;
  n_relations: number;
  n_relations_changed: number;
  n_reports: number;
  n_replies: number;
  n_answers: number;
  entities: Entity[];
  edits_lost: RecordedEdit[];
  edits_changed: RecordedEdit[];
}

export interface Range {
  low: number;
  likely: number;
  high: number;
}

export interface Estimate {
  n_documents: number;
  n_unchanged: number;
  n_unreadable: number;
  n_chunks: number;
  n_cached: number;
  model: string;
  basis: string;
  calls: Range;
  input_tokens: Range;
  output_tokens: Range;
  seconds: Range;
  cost: Range | null;
  embedding_cost: Range | null;
  n_pictures: number;
  picture_cost: Range | null;
}

export interface IndexStatus {
  revision: number;
  n_documents: number;
  n_chunks: number;
  n_entities: number;
  n_relations: number;
  n_vectors: number;
  n_bytes: number;
  jobs: [Status, number][];
  extractor: string;
  embedder: string;
  other_embedder: string;
  models: [string, string][];
  derivations: Derivation[];
  currency: string;
}

export interface Derivation {
  name: string;
  freshness: "fresh" | "stale" | "missing";
  contents: string;
  n_items: number;
  n_stale: number;
  n_bytes: number;
  cost: { n_calls: number; input_tokens: number; output_tokens: number; n_texts: number; money: number | null; currency: string };
  is_rebuild: boolean;
  unavailable_reason: string;
}

export interface Setting {
  name: string;
  group: string;
  value: unknown;
  origin: string;
  description: string;
  default: unknown;
  allowed: string;
}

export interface ConversationSummary {
  id: string;
  title: string;
  updated_at: string;
  n_exchanges: number;
}

/** What is kept of an answer: what was shown. */
export interface SavedAnswer extends Pick<Answer, "text" | "generator" | "citations" | "is_supported" | "statements" | "highlights" | "citation_marks" | "notes"> {
  strategy: string;
}

/** A question and its answer; the answer is null once a document that it may quote was removed. */
export interface Exchange {
  number: number;
  question: string;
  asked_at: string;
  answer: SavedAnswer | null;
}

export interface RankedChunk {
  id: string;
  document_id: string;
  title: string;
  score: number;
  reason: string;
}

export interface StrategyResult {
  strategy: string;
  answer: Answer | null;
  error: string;
  chunks: RankedChunk[];
  n_chunks: number;
  n_context_tokens: number;
  n_calls: number;
  ms: number;
}

export interface Chain {
  seed: string;
  kind: string;
  start: string;
  steps: { source: string; relation: string; target: string; description: string }[];
}

export interface ExplainedChunk {
  id: string;
  document_id: string;
  title: string;
  text: string;
  rank: number;
  score: number;
  reason: string;
  supporting_hits: { kind: string; id: string; name: string; rank: number; reason: string; connection: string }[];
  chains: Chain[];
}

export interface Explanation {
  strategy: string;
  n_chunks: number;
  ranks_passages: boolean;
  seeds: Seed[];
  chunks: ExplainedChunk[];
  dropped: DroppedHits[];
  notes: string[];
}
