// Document: its whole text with the cited span marked, its facts, and its original.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, send, workspaceUrl } from "../api";
import { Markdown, codePoints, type Span } from "../markdown";
import { Await, Facts, Tabs, useLoaded } from "../parts";
import { route } from "../route";
import { moment, number, t } from "../words";
import type { Chunk, Document } from "../types";

const MAX_FORMATTED = 300_000; // characters; a longer text opens as plain text, which a browser draws piece by piece
const SECTION = 4_000; // characters of plain text that are drawn together

interface Loaded {
  document: Document;
  chunks: Chunk[];
  text: string;
}

export function DocumentView() {
  const { subject, workspace } = route.value;
  const loaded = useLoaded<Loaded>(async (abort) => {
    const id = encodeURIComponent(subject).replaceAll("%2F", "/");
    const [details, text] = await Promise.all([
      get<{ document: Document; chunks: Chunk[] }>(`/documents/${id}`, {}, abort),
      send("GET", workspaceUrl(`/texts/${id}`), undefined, { signal: abort }).then((response) => response.text()),
    ]);
    return { ...details, text };
  }, `${workspace} ${subject}`);
  return <Await from={loaded}>{(value) => <DocumentText {...value} />}</Await>;
}

function DocumentText({ document, chunks, text }: Loaded) {
  const { params } = route.value;
  const isMarkdown = document.media_type === "text/markdown";
  const [tab, setTab] = useState<"formatted" | "text">(isMarkdown && text.length <= MAX_FORMATTED ? "formatted" : "text");
  const element = useRef<HTMLDivElement>(null);
  const offset = useMemo(() => codePoints(text), [text]);
  const span = useMemo(() => citedSpan(params, offset, text.length), [params.toString(), offset]);
  useEffect(() => {
    element.current?.querySelector("mark")?.scrollIntoView({ block: "center" });
  }, [span, tab]);
  const file = `${workspaceUrl("/originals/")}${encodeURIComponent(document.id).replaceAll("%2F", "/")}`;
  return (
    <div class="document">
      <header>
        <h1 dir="auto">{document.title || document.id}</h1>
        <Facts
          rows={[
            [t("document.id"), document.id],
            [t("document.status"), t(`status.${document.status}`)],
            [t("document.chunks"), number(document.n_chunks)],
            [t("document.updated"), moment(document.updated_at)],
            ...Object.entries(document.metadata)
              .filter(([name]) => name !== "title")
              .map(([name, value]): [string, string] => [name, String(value)]),
          ]}
        />
        {document.error && <p class="notice">{document.error}</p>}
        <p class="actions">
          {document.original_hash && (
            <a class="button" href={file} download>
              {t("document.download")}
            </a>
          )}
        </p>
        <Tabs
          label={t("document.views")}
          chosen={tab}
          choose={setTab}
          tabs={[
            ["formatted", t("document.formatted")],
            ["text", t("document.text")],
          ]}
        />
      </header>
      <div role="tabpanel" tabIndex={0} ref={element}>
        {tab === "formatted" ? <Markdown text={text} spans={span ? [span] : []} /> : <PlainText text={text} span={span} borders={chunks.map((chunk) => offset(chunk.start))} />}
      </div>
    </div>
  );
}

function citedSpan(params: URLSearchParams, offset: (point: number) => number, length: number): Span | undefined {
  const [start, end] = [Number(params.get("start") ?? NaN), Number(params.get("end") ?? NaN)];
  if (!(start >= 0 && end > start)) return undefined;
  return { start: offset(start), end: Math.min(offset(end), length), kind: "cited" };
}

/** A long text in sections: the browser lays out those in view. A line in the margin shows where a chunk begins. */
function PlainText({ text, span, borders }: { text: string; span?: Span; borders: number[] }) {
  const sections = useMemo(() => sectionsOf(text, borders), [text]);
  return (
    <div class="plain" dir="auto">
      {sections.map(([start, end, isBorder]) => (
        <div key={start} class={isBorder ? "section border" : "section"}>
          {span && span.start < end && span.end > start ? (
            <>
              {text.slice(start, Math.max(start, span.start))}
              <mark class="cited">{text.slice(Math.max(start, span.start), Math.min(end, span.end))}</mark>
              {text.slice(Math.min(end, span.end), end)}
            </>
          ) : (
            text.slice(start, end)
          )}
        </div>
      ))}
    </div>
  );
}

function sectionsOf(text: string, borders: number[]): [number, number, boolean][] {
  const isBorder = new Set(borders);
  const starts = [...new Set([0, ...borders])].filter((at) => at < text.length).sort((a, b) => a - b);
  const sections: [number, number, boolean][] = [];
  starts.forEach((start, index) => {
    const end = starts[index + 1] ?? text.length;
    for (let at = start; at < end; ) {
      const line = text.indexOf("\n", at + SECTION);
      const stop = line < 0 || line >= end || line > at + 2 * SECTION ? Math.min(end, at + 2 * SECTION) : line + 1;
      sections.push([at, stop, at > 0 && isBorder.has(at)]);
      at = stop;
    }
  });
  return sections;
}

