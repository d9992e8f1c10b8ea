// Document: its whole text with the cited span marked, its facts, and its original.

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, originalUrl, query, send, workspaceUrl } from "../api";
import { Markdown, codePoints, type Span } from "../markdown";
import { Await, Facts, Tabs, useLoaded } from "../parts";
import { go, href, route } from "../route";
import { moment, number, t } from "../words";
import type { Chunk, Document, RemovalPreview } from "../types";

const MAX_FORMATTED = 300_000; // characters; a longer text opens as plain text, which a browser draws piece by piece
const SECTION = 4_000; // characters of plain text that are drawn together
const PATTERN = /[,;*?[\]]/; // what the filter of a question reads as a list or a pattern

interface Loaded {
  document: Document;
  chunks: Chunk[];
  text: string;
  asOf: string; // the date that was asked for, which the address may have left already
}

export function DocumentView() {
  const { subject, workspace, params } = route.value;
  const as_of = params.get("as_of") ?? ""; // "": as it is now
  const loaded = useLoaded<Loaded>(async (abort) => {
    const id = encodeURIComponent(subject).replaceAll("%2F", "/");
    const [details, text] = await Promise.all([
      get<{ document: Document; chunks: Chunk[] }>(`/documents/${id}`, { as_of }, abort),
      send("GET", workspaceUrl(`/texts/${id}`) + query({ as_of }), undefined, { signal: abort }).then((response) => response.text()),
    ]);
    return { ...details, text, asOf: as_of };
  }, `${workspace} ${subject} ${as_of}`);
  return <Await from={loaded}>{(value) => <DocumentText {...value} />}</Await>;
}

function DocumentText({ document, chunks, text, asOf }: Loaded) {
  const { params } = route.value;
  const isPicture = document.media_type.startsWith("image/");
  const isMarkdown = isPicture || document.media_type === "text/markdown";
  const [tab, setTab] = useState<"formatted" | "text">(isMarkdown && text.length <= MAX_FORMATTED ? "formatted" : "text");
  const [isMarked, setMarked] = useState(localStorage.getItem("entities") !== "no");
  const element = useRef<HTMLDivElement>(null);
  const offset = useMemo(() => codePoints(text), [text]);
  const span = useMemo(() => citedSpan(params, offset, text.length), [params.toString(), offset]);
  const pages = useMemo(() => pagesOf(text, chunks, offset), [text, chunks]);
  const borders = useMemo(() => {
    const atPages = pages.map(({ page, start }) => ({ at: offset(start), label: t("page", { n: page }) }));
    return [...atPages, ...chunks.map((chunk) => ({ at: offset(chunk.start), label: labelOf(chunk) }))]; // where both begin, the chunk names the page
  }, [pages, chunks]);
  const mentions = useMentions(element, chunks, offset, isMarked && !asOf ? tab : ""); // the index keeps those of now
  const spans = span ? [span, ...mentions] : mentions;
  useEffect(() => {
    element.current?.querySelector("mark")?.scrollIntoView({ block: "center" });
  }, [span, tab]);
  const mark = (isChosen: boolean) => {
    setMarked(isChosen);
    localStorage.setItem("entities", isChosen ? "yes" : "no");
  };
  const original = document.original_hash && originalUrl(document.id);
  return (
    <div class="document">
      <header>
        <h1 dir="auto">{document.title || document.id}</h1>
        <DocumentFacts document={document} />
        {document.error && <p class="notice">{document.error}</p>}
        <Versions document={document} asOf={asOf} />
        <p class="actions">
          {!PATTERN.test(document.id) && (
            <a class="button" href={href("ask", "", { documents: document.id })}>
              {t("document.ask")}
            </a>
          )}
          {original && (
            <a class="button" href={original} download>
              {t("document.download")}
            </a>
          )}
          <PageChoice document={document} pages={pages} />
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
        <label class="check">
          <input type="checkbox" checked={isMarked} onChange={(event) => mark(event.currentTarget.checked)} /> {t("document.entities")}
        </label>
      </header>
      {original && isPicture && <img class="original" src={original} alt={document.title} />}
      <div role="tabpanel" tabIndex={0} ref={element}>
        {tab === "formatted" ? <Markdown text={text} spans={spans} /> : <PlainText text={text} spans={spans} borders={borders} />}
      </div>
    </div>
  );
}

/** Return a date that the document states, or the moment at which the index got it. */
const dated = (text: string) => (text.includes("T") ? moment(text) : text || "…");

function DocumentFacts({ document }: { document: Document }) {
  const removal = useLoaded((abort) => get<Pick<RemovalPreview, "n_answers">>("/removal", { document: document.id, k: 1 }, abort), document.id);
  return (
    <Facts
      rows={[
        [t("document.id"), document.id],
        [t("document.status"), t(`status.${document.status}`)],
        [t("document.chunks"), number(document.n_chunks)],
        [t("document.updated"), moment(document.updated_at)],
        ...(document.holds_from || document.holds_until ? [[t("document.holds"), `${dated(document.holds_from)} – ${dated(document.holds_until)}`] as [string, string]] : []),
        ...(removal.value?.n_answers ? [[t("document.quoted"), t("count.answers", { n: removal.value.n_answers })] as [string, string]] : []),
        ...Object.entries(document.metadata)
          .filter(([name]) => name !== "title")
          .map(([name, value]): [string, string] => [name, String(value)]),
      ]}
    />
  );
}

/** `holds_from` and `holds_until` are the dates that it states, "" where it states none; the others are those of the index. */
interface EarlierVersion {
  since: string;
  ended_at: string;
  holds_from: string;
  holds_until: string;
}

const MAX_VERSIONS = 1000; // on one page

/** The versions before this one that the index still keeps, each with a link to what the document said then. */
function Versions({ document, asOf }: { document: Document; asOf: string }) {
  const loaded = useLoaded((abort) => get<{ versions: EarlierVersion[] }>("/versions", { document: document.id, k: MAX_VERSIONS }, abort), document.id);
  const versions = loaded.value?.versions ?? [];
  if (!asOf && !versions.length) return null;
  return (
    <div class="notice">
      {asOf && (
        <p>
          {t("document.asOf", { date: asOf })} <a href={href("documents", document.id)}>{t("document.now")}</a>
        </p>
      )}
      {versions.length > 0 && (
        <details>
          <summary>{t("document.versions", { n: versions.length })}</summary>
          <ul>
            {versions.map(({ since, ended_at, holds_from, holds_until }) => (
              <li key={since}>
                <a href={href("documents", document.id, { as_of: holds_from || since })}>
                  {holds_from ? `${holds_from} – ${holds_until || "…"}` : `${moment(since)} – ${moment(ended_at)}`}
                </a>
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}

function labelOf({ ordinal, page, headings }: Chunk): string {
  const place = [t("document.chunk", { n: ordinal + 1 }), page !== null && t("page", { n: page })];
  return [...place, headings.at(-1)].filter(Boolean).join(" · ");
}

/** Where a page lies in the text, in code points. */
interface Page {
  page: number;
  start: number;
  end: number;
}

/** The pages that have text: a form feed begins a page, and a chunk says which page the text begins with. */
function pagesOf(text: string, chunks: Chunk[], offset: (point: number) => number): Page[] {
  const numbered = chunks.find(({ page }) => page !== null);
  if (!numbered) return [];
  let page = numbered.page! - (text.slice(0, offset(numbered.start)).split("\f").length - 1);
  let at = 0;
  const pages: Page[] = [];
  for (const words of text.split("\f")) {
    const start = at + lengthOf(/^\s*/.exec(words)![0]);
    const end = at + lengthOf(words.trimEnd());
    if (start < end) pages.push({ page, start, end });
    at += lengthOf(words) + 1;
    page++;
  }
  return pages;
}

/** The length of a text in code points. */
function lengthOf(text: string): number {
  return text.length - (text.match(/[\ud800-\udbff]/g)?.length ?? 0);
}

/** A choice of pages, which marks the one that is chosen; nothing where a document has no pages. */
function PageChoice({ document, pages }: { document: Document; pages: Page[] }) {
  if (!pages.length) return null;
  const at = Number(route.value.params.get("start") ?? -1);
  const shown = pages.findLast(({ start }) => start <= at)?.page;
  const show = (chosen: number) => {
    const { start, end } = pages.find(({ page }) => page === chosen)!;
    go(href("documents", document.id, { start, end }));
  };
  return (
    <select aria-label={t("document.page")} value={String(shown ?? "")} onChange={(event) => show(Number(event.currentTarget.value))}>
      {!shown && <option value="">{t("document.page")}</option>}
      {pages.map(({ page }) => (
        <option key={page} value={String(page)}>
          {t("page", { n: page })}
        </option>
      ))}
    </select>
  );
}

interface ChunkDetails {
  entities: { key: string; type: string; start: number; end: number }[];
}

/** The entities in the chunks that have come into view, as links; none while `view` is empty. */
function useMentions(element: { current: HTMLElement | null }, chunks: Chunk[], offset: (point: number) => number, view: string): Span[] {
  const [spans, setSpans] = useState<Span[]>([]);
  const asked = useRef(new Set<string>());
  useEffect(() => {
    if (!view) return;
    const ends = chunks.map((chunk) => [offset(chunk.start), offset(chunk.end)] as const);
    const read = async (start: number, end: number) => {
      const inView = chunks.filter((chunk, at) => ends[at]![0] < end && ends[at]![1] > start && !asked.current.has(chunk.id));
      inView.forEach((chunk) => asked.current.add(chunk.id));
      const found = await Promise.all(inView.map((chunk) => mentionsOf(chunk, offset)));
      if (inView.length) setSpans((others) => [...others, ...found.flat()]);
    };
    const observer = new IntersectionObserver((entries) => {
      const shown = entries.filter((entry) => entry.isIntersecting).map((entry) => (entry.target as HTMLElement).dataset);
      if (shown.length) void read(Math.min(...shown.map(({ start }) => Number(start))), Math.max(...shown.map(({ end }) => Number(end))));
    });
    element.current!.querySelectorAll("[data-start]").forEach((part) => observer.observe(part));
    return () => observer.disconnect();
  }, [view, chunks]);
  return view ? spans : NO_SPANS;
}

const NO_SPANS: Span[] = [];

/** The entities of a chunk in the order of the text, without those that overlap an earlier one. */
async function mentionsOf(chunk: Chunk, offset: (point: number) => number): Promise<Span[]> {
  const { entities } = await get<ChunkDetails>(`/chunks/${chunk.id}`).catch((): ChunkDetails => ({ entities: [] })); // the text is whole without them
  const spans: Span[] = [];
  for (const { key, type, start, end } of entities.sort((a, b) => a.start - b.start || b.end - a.end)) {
    const span: Span = { start: offset(chunk.start + start), end: offset(chunk.start + end), kind: "entity", title: type, href: href("entities", key) };
    if (span.start >= (spans.at(-1)?.end ?? 0)) spans.push(span);
  }
  return spans;
}

function citedSpan(params: URLSearchParams, offset: (point: number) => number, length: number): Span | undefined {
  const [start, end] = [Number(params.get("start") ?? NaN), Number(params.get("end") ?? NaN)];
  if (!(start >= 0 && end > start)) return undefined;
  return { start: offset(start), end: Math.min(offset(end), length), kind: "cited" };
}

interface Border {
  at: number;
  label: string;
}

/** A long text in sections: the browser lays out those in view. A line says where a chunk begins. */
function PlainText({ text, spans, borders }: { text: string; spans: Span[]; borders: Border[] }) {
  const sections = useMemo(() => sectionsOf(text, borders), [text, borders]);
  return (
    <div class="plain" dir="auto">
      {sections.map(({ start, end, label }) => (
        <div key={start} class="section" data-start={start} data-end={end}>
          {label && <span class="border">{label}</span>}
          {piecesOf(text, start, end, spans)}
        </div>
      ))}
    </div>
  );
}

/** Return the characters of a section, those of spans in their elements. */
function piecesOf(text: string, start: number, end: number, spans: Span[]): ComponentChildren {
  const inside = spans.filter((span) => span.start < end && span.end > start);
  if (!inside.length) return text.slice(start, end);
  const cuts = [...new Set([start, end, ...inside.flatMap((span) => [span.start, span.end])])].filter((at) => at >= start && at <= end).sort((a, b) => a - b);
  return cuts.slice(1).map((stop, index) => {
    const from = cuts[index]!;
    const around = inside.filter((span) => span.start <= from && span.end >= stop);
    const entity = around.find(({ kind }) => kind === "entity");
    const words = text.slice(from, stop);
    const inner = entity ? (
      <a class="entity" href={entity.href} title={entity.title}>
        {words}
      </a>
    ) : (
      words
    );
    return around.some(({ kind }) => kind === "cited") ? <mark class="cited">{inner}</mark> : inner;
  });
}

interface Section {
  start: number;
  end: number;
  label: string;
}

function sectionsOf(text: string, borders: Border[]): Section[] {
  const labels = new Map(borders.map(({ at, label }) => [at, label]));
  const starts = [...new Set([0, ...labels.keys()])].filter((at) => at < text.length).sort((a, b) => a - b);
  return starts.flatMap((start, index) => {
    const end = starts[index + 1] ?? text.length;
    const sections: Section[] = [];
    for (let at = start; at < end; ) {
      const line = text.indexOf("\n", at + SECTION);
      const stop = line < 0 || line >= end || line > at + 2 * SECTION ? Math.min(end, at + 2 * SECTION) : line + 1;
      sections.push({ start: at, end: stop, label: labels.get(at) ?? "" });
      at = stop;
    }
    return sections;
  });
}
