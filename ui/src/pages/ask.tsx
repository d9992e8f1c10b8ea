// Ask: a question, its answer while it is made, and where every sentence comes from.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { post, request, stream, type Problem } from "../api";
import { Markdown, codePoints, shortened, type CitationElement, type Span } from "../markdown";
import { Empty, Facts, ProblemNotice, Tabs, Waiting, announce, asProblem, useLoaded } from "../parts";
import { go, href, route } from "../route";
import { duration, language, money, number, t, type Key } from "../words";
import type { Answer, Citation, Passage } from "../types";
import { OptionsDrawer, carried, countOptions, optionsOf, useStrategies } from "./options";

export function Ask() {
  const { params } = route.value;
  const question = params.get("q") ?? "";
  return (
    <div class="ask">
      <QuestionForm key={route.value.workspace} question={question} />
      {question ? <Asked key={params.toString()} question={question} params={params} /> : <Welcome />}
    </div>
  );
}

function Welcome() {
  const status = useLoaded(
    (abort) => request<{ n_documents: number; n_entities: number; n_relations: number }>("GET", `api/v1/workspaces/${encodeURIComponent(route.value.workspace)}/status`, undefined, { signal: abort }),
    route.value.workspace,
  );
  if (status.problem) return <ProblemNotice problem={status.problem} retry={status.reload} />;
  if (!status.value) return <Waiting />;
  if (!status.value.n_documents)
    return (
      <Empty title={t("ask.noDocuments")}>
        <p>{t("ask.addFirst")}</p>
      </Empty>
    );
  const { n_documents, n_entities, n_relations } = status.value;
  return (
    <Empty title={t("ask.welcome")}>
      <p>
        {t("count.documents", { n: n_documents })} · {t("count.entities", { n: n_entities })} · {t("count.relations", { n: n_relations })}
      </p>
      <p class="small">{t("ask.hint")}</p>
    </Empty>
  );
}

function QuestionForm({ question }: { question: string }) {
  const { params } = route.value;
  const [text, setText] = useState(question);
  const [isOpen, setOpen] = useState(false);
  const n = countOptions(params);
  const all = useStrategies();
  useEffect(() => setText(question), [question]);
  const submit = (event: Event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const asked = text.trim();
    if (!asked) return;
    const address = href("ask", "", { q: asked, strategy: String(form.get("strategy") ?? ""), ...carried(params) });
    if (address === location.hash) go(`${address}&again=${Date.now()}`, true);
    else go(address);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      (event.currentTarget as HTMLTextAreaElement).form!.requestSubmit();
    }
  };
  return (
    <>
    <form class="question" onSubmit={submit}>
      <label class="hidden" for="question">
        {t("ask.label")}
      </label>
      <textarea id="question" rows={2} value={text} placeholder={t("ask.placeholder")} dir="auto" onInput={(event) => setText(event.currentTarget.value)} onKeyDown={onKeyDown} autofocus />
      <div class="question-bar">
        <label>
          <span class="hidden">{t("strategy")}</span>
          <select name="strategy" defaultValue={params.get("strategy") ?? ""} key={`${all.length}${params.get("strategy")}`}>
            <option value="" selected={!params.get("strategy")}>
              {t("strategy.default")}
            </option>
            {all.map((strategy) => (
              <option key={strategy.name} value={strategy.name} title={strategy.summary} selected={strategy.name === params.get("strategy")}>
                {strategy.name}
              </option>
            ))}
          </select>
        </label>
        <button type="button" class="quiet" onClick={() => setOpen(true)}>
          {t("ask.options")}
          {n > 0 && ` (${number(n)})`}
        </button>
        <button class="primary">{t("ask.send")}</button>
      </div>
    </form>
    {isOpen && <OptionsDrawer close={() => setOpen(false)} />}
    </>
  );
}

const STAGES: Record<string, Key> = { understand: "stage.understand", retrieve: "stage.retrieve", rerank: "stage.rerank", generate: "stage.generate" };

function Asked({ question, params }: { question: string; params: URLSearchParams }) {
  const [text, setText] = useState("");
  const [stage, setStage] = useState("");
  const [answer, setAnswer] = useState<Answer>();
  const [problem, setProblem] = useState<Problem>();
  const [isStopped, setStopped] = useState(false);
  const [n, setN] = useState(0);
  const abort = useRef<AbortController>(null);
  useEffect(() => {
    const controller = (abort.current = new AbortController());
    setText(""), setAnswer(undefined), setProblem(undefined), setStopped(false), setStage("");
    void run(controller.signal);
    return () => controller.abort();
  }, [n]);

  async function run(signal: AbortSignal) {
    let written = "";
    try {
      for await (const { event, data } of stream("/query/stream", { question, ...optionsOf(params) }, signal)) {
        if (event === "stage") setStage((data as { stage: string }).stage);
        if (event === "text") setText((written += (data as { text: string }).text));
        if (event === "answer") {
          setAnswer(data as Answer);
          announce(t("ask.done"));
        }
      }
    } catch (error) {
      if (!signal.aborted) setProblem(asProblem(error));
    }
  }

  const again = () => setN(n + 1);
  const isWorking = !answer && !problem && !isStopped;
  return (
    <article class="answer" aria-busy={isWorking}>
      <h1 dir="auto">{question}</h1>
      {isWorking && (
        <div class="progress">
          <Waiting text={t(STAGES[stage] ?? "stage.understand")} />
          <button class="quiet" onClick={() => (abort.current?.abort(), setStopped(true))}>
            {t("ask.stop")}
          </button>
        </div>
      )}
      {answer ? <WholeAnswer answer={answer} question={question} /> : text && <Markdown text={text} />}
      {isStopped && (
        <p class="notice">
          {t("ask.stopped")} <button onClick={again}>{t("retry")}</button>
        </p>
      )}
      {problem && <ProblemNotice problem={problem} retry={again} />}
    </article>
  );
}

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
  const citation = useMemo<CitationElement>(() => (number) => citationLink(answer.citations, number), [answer]);
  const notes = [...answer.notes, ...answer.trace.stale];
  const isQuoted = answer.generator === "extractive"; // the answer then shows each quote itself
  return (
    <>
      {!answer.is_supported && <p class="notice">{isQuoted ? answer.text : t("ask.unsupported")}</p>}
      {(answer.is_supported || !isQuoted) && <Markdown text={answer.text} spans={spans} citation={citation} />}
      <Notes notes={notes} />
      {!answer.is_supported && question && <NearMisses question={question} strategy={answer.trace.strategy} />}
      <Sources citations={answer.citations} withQuotes={!isQuoted} />
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
  return [...highlights, ...unsupported];
}

/** Return the address of the cited characters in their document. */
export function citedAt(citation: Pick<Citation, "document_id" | "start" | "end">): string {
  return href("documents", citation.document_id, { start: citation.start, end: citation.end });
}

function citationLink(citations: Citation[], number: number): HTMLElement | undefined {
  const citation = citations.find((candidate) => candidate.number === number);
  if (!citation) return undefined;
  const link = document.createElement("a");
  link.className = "citation";
  link.href = citedAt(citation);
  link.textContent = String(number);
  link.title = `${citation.title || citation.document_id}\n\n${citation.quote}`;
  link.setAttribute("aria-label", t("ask.citation", { n: number, title: citation.title || citation.document_id }));
  return link;
}

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
              {citation.page !== null && ` · ${t("page", { n: citation.page })}`}
              {citation.headings.length > 1 && ` · ${citation.headings.slice(1).join(" › ")}`}
            </span>
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
      {question && <a href={href("compare", "", { q: question })}>{t("nav.compare")}</a>}
      {question && <a href={href("why", "", { q: question, strategy: answer.trace.strategy })}>{t("nav.why")}</a>}
    </footer>
  );
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
      {passages.value && <PassageList passages={passages.value} question={question} strategy={answer.trace.strategy} />}
    </>
  );
}

/** Passages in order, each with its document, score and reason. */
export function PassageList({ passages, question, strategy }: { passages: Passage[]; question: string; strategy: string }) {
  return (
    <ol class="passages">
      {passages.map(({ chunk, document, score, reason }) => (
        <li key={chunk.id}>
          <a href={citedAt({ document_id: document.id, start: chunk.start, end: chunk.end })} dir="auto">
            {document.title || document.id}
          </a>
          <span class="small">
            <DocumentId id={document.id} /> · {number(score, 3)} · {reason} ·{" "}
            <a href={href("why", "", { q: question, strategy, chunk: chunk.id })}>{t("nav.why")}</a>
          </span>
          <blockquote dir="auto">{shortened(chunk.text, 400)}</blockquote>
        </li>
      ))}
    </ol>
  );
}
