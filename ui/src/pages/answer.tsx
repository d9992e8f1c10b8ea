// Answer: its text with citations, its sources, and the evidence, prompt and reply behind tabs.

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { originalUrl, pagePicture, post } from "../api";
import { Markdown, codePoints, shortened, type CitationElement, type Span } from "../markdown";
import { Dialog, Facts, ProblemNotice, Tabs, Waiting, copy, moveInList, useLoaded } from "../parts";
import { href, route } from "../route";
import { duration, language, money, number, t } from "../words";
import type { Answer, Citation, Passage } from "../types";
import { optionsOf } from "./options";

const PEEK_WIDTH = 340; // pixels, as in the style sheet
const PICTURE = /\.(?:png|jpe?g|gif|webp)$/i; // files that a model read
const PDF = /\.pdf$/i;
const N_COPIES = 3; // documents with the same text, named for one citation
const PEEK_MS = 200;

/** An answer with its sources; tabs show the evidence, the prompt and the reply of the server. */
export function WholeAnswer({ answer, question }: { answer: Answer; question: string }) {
  const [tab, setTab] = useState<"answer" | "evidence" | "prompt" | "json">("answer");
  return (
    <>
      <Tabs
        label={t("ask.views")}
        chosen={tab}
        choose={setTab}
        tabs={[
          ["answer", t("tab.answer")],
          ["evidence", t("tab.evidence")],
          ["prompt", t("tab.prompt")],
          ["json", "JSON"],
        ]}
      />
      <div role="tabpanel" tabIndex={0}>
        {tab === "answer" && <AnswerText answer={answer} question={question} />}
        {tab === "evidence" && <EvidenceList question={question} answer={answer} />}
        {tab === "prompt" && <pre class="wide">{answer.prompt || t("ask.noPrompt")}</pre>}
        {tab === "json" && <pre class="wide">{JSON.stringify(answer, null, 2)}</pre>}
      </div>
    </>
  );
}

/** The text of an answer with its citations, notes and sources. */
export function AnswerText({ answer, question }: { answer: Answer; question?: string }) {
  const spans = useMemo(() => spansOf(answer), [answer, language.value]);
  const isQuoted = answer.generator === "extractive"; // the answer then shows each quote itself
  const citations = useMemo(() => (isQuoted ? mainCitations(answer.citations) : answer.citations), [answer]);
  const citation = useMemo<CitationElement>(() => (number) => citationLink(citations, number), [citations]);
  const notes = [...answer.notes, ...answer.trace.stale];
  const text = <Markdown text={answer.text} spans={spans} citation={citation} />;
  return (
    <>
      <Peeks citations={citations}>
        {answer.is_supported ? (
          text
        ) : (
          <>
            <div class="notice">{isQuoted ? text : <p>{t("ask.unsupported")}</p>}</div>
            {!isQuoted && text}
          </>
        )}
      </Peeks>
      <Notes notes={[...unsupportedNotes(answer), ...notes]} />
      {!answer.is_supported && question && <NearMisses question={question} strategy={answer.trace.strategy} />}
      <Sources citations={citations} withQuotes={!isQuoted} />
      <Cost answer={answer} question={question} />
    </>
  );
}

function Notes({ notes }: { notes: string[] }) {
  if (!notes.length) return null;
  return (
    <ul class="notes">
      {notes.map((note) => (
        <li key={note}>{note}</li>
      ))}
    </ul>
  );
}

/** What the underlined sentences lack, in words. */
function unsupportedNotes({ statements, is_supported }: Answer): string[] {
  if (!is_supported) return []; // all of the answer is without a source, which is said above it
  const lacking = statements.filter((statement) => !statement.is_supported);
  const nUncited = lacking.filter(({ citations }) => !citations.length).length;
  const nUnlike = lacking.length - nUncited;
  return [nUnlike && t("ask.nUnlike", { n: nUnlike }), nUncited && t("ask.nUncited", { n: nUncited })].filter((note) => note !== 0);
}

function spansOf(answer: Answer): Span[] {
  const offset = codePoints(answer.text);
  const highlights = answer.highlights.map(([start, end]) => ({ start: offset(start), end: offset(end), kind: "highlight" as const }));
  const unsupported = answer.statements
    .filter((statement) => !statement.is_supported)
    .map((statement) => ({
      start: offset(statement.start),
      end: offset(statement.end),
      kind: "unsupported" as const,
      title: t(statement.citations.length ? "ask.citationLacks" : "ask.citesNothing"),
    }));
  const marks = answer.citation_marks.map(([start, end]) => ({ start: offset(start), end: offset(end), kind: "citation" as const }));
  return [...highlights, ...unsupported, ...marks];
}

/** Return one citation for each number and document, the longest: the others are the heading or the header above it. */
function mainCitations(citations: Citation[]): Citation[] {
  const longest = new Map<string, Citation>();
  for (const citation of citations) {
    const key = `${citation.number} ${citation.document_id}`;
    if (citation.quote.length > (longest.get(key)?.quote.length ?? 0)) longest.set(key, citation);
  }
  return [...longest.values()];
}

/** Return the address of the cited characters in their document. */
export function citedAt(citation: Pick<Citation, "document_id" | "start" | "end">): string {
  return href("documents", citation.document_id, { start: citation.start, end: citation.end, as_of: route.value.params.get("as_of") ?? undefined });
}

function citationLink(citations: Citation[], number: number): HTMLElement | undefined {
  const citation = citations.find((candidate) => candidate.number === number);
  if (!citation) return undefined;
  const link = document.createElement("a");
  link.className = "citation";
  link.href = citedAt(citation);
  link.textContent = String(number);
  link.dataset.number = String(number);
  link.setAttribute("aria-label", t("ask.citation", { n: number, title: citation.title || citation.document_id }));
  return link;
}

interface Peek {
  citation: Citation;
  style: { left: string; top?: string; bottom?: string };
}

/** Shows the quote behind a citation of its children while the pointer or the focus is on it. */
function Peeks({ citations, children }: { citations: Citation[]; children: ComponentChildren }) {
  const [peek, setPeek] = useState<Peek>();
  const timer = useRef(0);
  const hide = () => setPeek(undefined);
  const hideSoon = () => (timer.current = window.setTimeout(hide, PEEK_MS)); // time to move the pointer onto the quote
  useEffect(() => {
    addEventListener("scroll", hide, { passive: true });
    return () => (clearTimeout(timer.current), removeEventListener("scroll", hide));
  }, []);
  const show = (event: Event) => {
    const element = event.target as HTMLElement;
    const link = element.closest<HTMLElement>("a.citation");
    if (link || element.closest(".peek")) clearTimeout(timer.current);
    const citation = link && citations.find(({ number }) => String(number) === link.dataset.number);
    if (!citation) return;
    link.setAttribute("aria-describedby", "peek");
    const box = link.getBoundingClientRect();
    const left = `${Math.max(8, Math.min(box.left - 20, document.documentElement.clientWidth - PEEK_WIDTH - 8))}px`;
    setPeek({ citation, style: box.bottom < innerHeight / 2 ? { left, top: `${box.bottom + 6}px` } : { left, bottom: `${innerHeight - box.top + 6}px` } });
  };
  const onKeyDown = (event: KeyboardEvent) => event.key === "Escape" && hide();
  return (
    <div onMouseOver={show} onMouseOut={hideSoon} onFocusIn={show} onFocusOut={hideSoon} onKeyDown={onKeyDown}>
      {children}
      {peek && (
        <div class="peek" id="peek" role="tooltip" style={peek.style}>
          <strong dir="auto">{peek.citation.title || peek.citation.document_id}</strong>
          <CitationPlace citation={peek.citation} />
          <p dir="auto">{shortened(peek.citation.quote, 420)}</p>
        </div>
      )}
    </div>
  );
}

/** Where in its document a citation stands. */
function CitationPlace({ citation: { page, headings } }: { citation: Citation }) {
  return (
    <span class="small">
      {page !== null && ` · ${t("page", { n: page })}`}
      {headings.length > 1 && ` · ${headings.slice(1).join(" › ")}`}
    </span>
  );
}

/** A button that shows the page of a PDF with the quote of a citation marked in it. */
function PageButton({ citation, page }: { citation: Citation; page: number }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      {" "}
      <button class="quiet" onClick={() => setOpen(true)}>
        {t("page", { n: page })}
      </button>
      <CitationPlace citation={{ ...citation, page: null }} />
      {isOpen && (
        <Dialog title={`${citation.title || citation.document_id}, ${t("page", { n: page })}`} close={() => setOpen(false)}>
          <MarkedPage citation={citation} page={page} />
        </Dialog>
      )}
    </>
  );
}

function MarkedPage({ citation, page }: { citation: Citation; page: number }) {
  const loaded = useLoaded((abort) => pagePicture(citation.document_id, page, citation.quote, abort), `${citation.document_id} ${page} ${citation.start}`);
  useEffect(() => () => loaded.value && URL.revokeObjectURL(loaded.value), [loaded.value]);
  if (loaded.problem) return <ProblemNotice problem={loaded.problem} retry={loaded.reload} />;
  return loaded.value ? <img class="original" src={loaded.value} alt={t("ask.markedPage", { n: page, quote: shortened(citation.quote) })} /> : <Waiting />;
}

const hide = ({ currentTarget }: { currentTarget: HTMLElement }) => (currentTarget.hidden = true); // the index keeps no files

function Sources({ citations, withQuotes }: { citations: Citation[]; withQuotes: boolean }) {
  if (!citations.length) return null;
  return (
    <section class="sources" aria-label={t("ask.sources")}>
      <h2>{t("ask.sources")}</h2>
      <ol>
        {citations.map((citation) => (
          <li key={`${citation.number} ${citation.start}`} value={citation.number}>
            <a href={citedAt(citation)} dir="auto">
              {citation.title || citation.document_id}
            </a>
            <span class="small">
              {citation.document_id !== citation.title && <DocumentId id={citation.document_id} />}
              {citation.date && <> · <time dateTime={citation.date}>{citation.date}</time></>}
            </span>
            {citation.page !== null && PDF.test(citation.document_id) ? <PageButton citation={citation} page={citation.page} /> : <CitationPlace citation={citation} />}
            {PICTURE.test(citation.document_id) && citations.find(({ document_id }) => document_id === citation.document_id) === citation && <img class="thumbnail" loading="lazy" src={originalUrl(citation.document_id)} alt="" onError={hide} />}
            {citation.also_in && citation.also_in.length > 0 && (
              <span class="small">
                {" · "}
                {t("ask.alsoIn")}{" "}
                {citation.also_in.slice(0, N_COPIES).map((id) => (
                  <a key={id} href={href("documents", id)}>
                    <DocumentId id={id} />{" "}
                  </a>
                ))}
                {citation.also_in.length > N_COPIES && t("more", { n: citation.also_in.length - N_COPIES })}
              </span>
            )}
            {withQuotes && <blockquote dir="auto">{shortened(citation.quote)}</blockquote>}
          </li>
        ))}
      </ol>
    </section>
  );
}

/** The id of a document without the folders that say little; the whole id is its title. */
export function DocumentId({ id }: { id: string }) {
  const parts = id.split("/");
  return <span title={id}> {parts.length > 3 ? `…/${parts.slice(-3).join("/")}` : id}</span>;
}

function Cost({ answer, question }: { answer: Answer; question?: string }) {
  const ms = answer.trace.timings.reduce((sum, timing) => sum + timing.ms, 0);
  const cost = answer.usage.reduce((sum, row) => sum + row.cost, 0);
  const tokens = answer.usage.reduce((sum, row) => sum + row.tokens.input + row.tokens.output, 0);
  return (
    <footer class="cost small">
      <span title={answer.trace.timings.map((timing) => `${timing.stage} ${duration(timing.ms)}`).join("\n")}>{duration(ms)}</span>
      <span>{answer.trace.strategy}</span>
      <span>{answer.generator === "extractive" ? t("ask.quoted") : answer.generator}</span>
      {tokens > 0 && <span>{t("count.tokens", { n: tokens })}</span>}
      {cost > 0 && <span>{money(cost, answer.usage[0]?.currency)}</span>}
      <button class="quiet" onClick={() => void copy(withSources(answer))}>
        {t("ask.copy")}
      </button>
      {question && <a href={href("compare", "", { q: question })}>{t("nav.compare")}</a>}
      {question && <a href={href("why", "", { q: question, strategy: answer.trace.strategy })}>{t("nav.why")}</a>}
    </footer>
  );
}

/** Return an answer with its sources as Markdown, to be pasted elsewhere. */
function withSources({ text, citations }: Answer): string {
  const sources = mainCitations(citations).map(({ number, title, document_id, page }) => `[${number}] ${title || document_id} (${document_id}${page === null ? "" : `, ${t("page", { n: page })}`})`);
  return [text, ...(sources.length ? [sources.join("\n")] : [])].join("\n\n");
}

function usePassages(question: string, strategy: string) {
  return useLoaded((abort) => post<Passage[]>("/passages", { question, ...optionsOf(route.value.params), strategy }, { signal: abort }), `${question}\n${strategy}\n${route.value.params}`);
}

function NearMisses({ question, strategy }: { question: string; strategy: string }) {
  const passages = usePassages(question, strategy);
  if (!passages.value?.length) return null;
  return (
    <section>
      <h2>{t("ask.nearest")}</h2>
      <PassageList passages={passages.value.slice(0, 3)} question={question} strategy={strategy} />
    </section>
  );
}

function EvidenceList({ question, answer }: { question: string; answer: Answer }) {
  const passages = usePassages(question, answer.trace.strategy);
  const { evidence, dropped } = answer.trace;
  return (
    <>
      <Facts
        rows={[
          [t("evidence.seeds"), evidence.seeds.map((seed) => `${seed.text} (${seed.kind})`).join(" · ") || "–"],
          [t("nav.entities"), evidence.entities.slice(0, 12).map((hit) => <a href={href("entities", hit.id)}>{hit.id}</a>)],
          [t("evidence.dropped"), dropped.map((part) => `${part.section}: ${number(part.ids.length)}`).join(" · ") || "–"],
        ]}
      />
      <Notes notes={[...answer.trace.notes, ...evidence.notes, ...evidence.omissions]} />
      {passages.problem && <ProblemNotice problem={passages.problem} retry={passages.reload} />}
      {passages.isLoading && !passages.value && <Waiting />}
      {passages.value && <PassageList passages={passages.value} question={question} strategy={answer.trace.strategy} dropped={new Set(dropped.flatMap(({ ids }) => ids))} />}
    </>
  );
}

/** Passages in order, each with its document, score and reason. */
interface PassageListProps {
  passages: Passage[];
  question: string;
  strategy: string;
  dropped?: Set<string>; // ids of those that the budgets leave out
}

function PassageList({ passages, question, strategy, dropped }: PassageListProps) {
  return (
    <ol class="passages" onKeyDown={moveInList}>
      {passages.map(({ chunk, document, score, reason }) => (
        <li key={chunk.id}>
          <a href={citedAt({ document_id: document.id, start: chunk.start, end: chunk.end })} dir="auto">
            {document.title || document.id}
          </a>
          <span class="small">
            <DocumentId id={document.id} /> · {number(score, 3)} · {reason} ·{" "}
            <a href={href("why", "", { q: question, strategy, chunk: chunk.id })}>{t("nav.why")}</a>
          </span>
          {dropped?.has(chunk.id) && <span class="badge">{t("evidence.notSent")}</span>}
          <blockquote dir="auto">{shortened(chunk.text, 400)}</blockquote>
        </li>
      ))}
    </ol>
  );
}
