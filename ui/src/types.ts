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
}

export interface Chunk {
  id: string;
  document_id: string;
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

export interface Answer {
  text: string;
  generator: string;
  citations: Citation[];
  is_supported: boolean;
  context: string;
  prompt: string;
  statements: Statement[];
  highlights: [number, number][];
  notes: string[];
  usage: UsageRow[];
  trace: {
    strategy: string;
    revision: number;
    evidence: Evidence;
    dropped: { section: string; budget: number; ids: string[] }[];
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
  workspaces: string[];
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
