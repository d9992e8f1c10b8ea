// Ask: a conversation. Each question is answered while one watches, and saved with its answer.

import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, request, stream, workspaceUrl, type Problem } from "../api";
import { Markdown } from "../markdown";
import { Await, Confirm, Dialog, Empty, ProblemNotice, Waiting, announce, asProblem, useLoaded } from "../parts";
import { go, href, route } from "../route";
import { moment, number, t, type Key } from "../words";
import type { Answer, ConversationSummary, Exchange, SavedAnswer } from "../types";
import { AnswerText, WholeAnswer } from "./answer";
import { OptionsDrawer, carried, countOptions, optionsOf, useStrategies } from "./options";

// Counts what was saved, renamed and deleted here, so that the list of conversations is read again.
const changes = signal(0);

export function Ask() {
  const { workspace, subject, params } = route.value;
  const question = params.get("q") ?? "";
  return (
    <div class="ask">
      <ConversationList chosen={subject} />
      {subject ? <SavedConversation key={`${workspace} ${subject}`} id={subject} /> : <Conversation key={`${workspace} ${params}`} id="" saved={[]} first={question} />}
    </div>
  );
}

function SavedConversation({ id }: { id: string }) {
  const loaded = useLoaded((abort) => get<{ exchanges: Exchange[] }>(`/conversations/${encodeURIComponent(id)}`, {}, abort), id);
  return <Await from={loaded}>{(value) => <Conversation id={id} saved={value.exchanges} first="" />}</Await>;
}

/** A conversation: what was saved of it, the questions asked since, and the next one. */
function Conversation({ id, saved, first }: { id: string; saved: Exchange[]; first: string }) {
  const [asked, setAsked] = useState<string[]>(first ? [first] : []);
  const [isBusy, setBusy] = useState(Boolean(first));
  const conversation = useRef(id);
  const keep = (saved: string) => {
    changes.value++;
    if (conversation.current) return;
    conversation.current = saved;
    history.replaceState(null, "", href("ask", saved)); // a reload then shows what was saved, and asks nothing again
  };
  const ask = (question: string, strategy: string) => {
    const { params } = route.value;
    if (saved.length || asked.length) setAsked([...asked, question]), setBusy(true);
    else go(href("ask", "", { q: question, strategy, ...carried(params) }));
  };
  if (!saved.length && !asked.length)
    return (
      <>
        <QuestionForm ask={ask} isFirst isBusy={false} />
        <Welcome />
      </>
    );
  return (
    <>
      {saved.map((exchange) => (
        <article class="answer" key={exchange.number}>
          <h1 dir="auto">{exchange.question}</h1>
          {exchange.answer ? <AnswerText answer={asAnswer(exchange.answer)} /> : <p class="notice">{t("talk.removed")}</p>}
        </article>
      ))}
      {asked.map((question, index) => (
        <Asked key={index} question={question} conversation={conversation} keep={keep} end={() => setBusy(false)} />
      ))}
      <QuestionForm ask={ask} isFirst={false} isBusy={isBusy} />
    </>
  );
}

/** A saved answer has what was shown; the rest of an answer is not kept. */
function asAnswer(saved: SavedAnswer): Answer {
  const evidence = { chunks: [], entities: [], relations: [], claims: [], reports: [], seeds: [], notes: [], omissions: [] };
  const trace = { strategy: saved.strategy, revision: 0, evidence, dropped: [], timings: [], stale: [], notes: [], n_calls: 0 };
  return { ...saved, context: "", prompt: "", usage: [], trace };
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

interface QuestionFormProps {
  ask: (question: string, strategy: string) => void;
  isFirst: boolean;
  isBusy: boolean; // the answer before is not there yet
}

function QuestionForm({ ask, isFirst, isBusy }: QuestionFormProps) {
  const { params } = route.value;
  const [text, setText] = useState("");
  const [isOpen, setOpen] = useState(false);
  const n = countOptions(params);
  const all = useStrategies();
  const submit = (event: Event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    if (!text.trim() || isBusy) return;
    ask(text.trim(), String(form.get("strategy") ?? ""));
    setText("");
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      (event.currentTarget as HTMLTextAreaElement).form!.requestSubmit();
    }
  };
  const chosen = params.get("strategy") ?? "";
  return (
    <>
      <form class={isFirst ? "question" : "question next"} onSubmit={submit}>
        <label class="hidden" for="question">
          {t("ask.label")}
        </label>
        <textarea
          id="question"
          rows={isFirst ? 2 : 1}
          value={text}
          placeholder={t(isFirst ? "ask.placeholder" : "talk.next")}
          dir="auto"
          autofocus={isFirst}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={onKeyDown}
        />
        <div class="question-bar">
          <label>
            <span class="hidden">{t("strategy")}</span>
            <select name="strategy" key={`${all.length}${chosen}`}>
              <option value="">{t("strategy.default")}</option>
              {all.map((strategy) => (
                <option key={strategy.name} value={strategy.name} title={strategy.summary} selected={strategy.name === chosen}>
                  {strategy.name}
                </option>
              ))}
            </select>
          </label>
          <button type="button" class="quiet" onClick={() => setOpen(true)}>
            {t("ask.options")}
            {n > 0 && ` (${number(n)})`}
          </button>
          <button class="primary" disabled={isBusy}>
            {t("ask.send")}
          </button>
        </div>
      </form>
      {isOpen && <OptionsDrawer close={() => setOpen(false)} />}
    </>
  );
}

const STAGES: Record<string, Key> = { understand: "stage.understand", retrieve: "stage.retrieve", rerank: "stage.rerank", generate: "stage.generate" };

interface AskedProps {
  question: string;
  conversation: { current: string };
  keep: (conversation: string) => void;
  end: () => void;
}

/** A question of this visit and its answer: a new one continues the conversation, as soon as there is one. */
function Asked({ question, conversation, keep, end }: AskedProps) {
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
    let saved = "";
    try {
      const body = { question, ...(conversation.current && { conversation: conversation.current }), ...optionsOf(route.value.params) };
      for await (const { event, data } of stream("/conversations/query/stream", body, signal)) {
        if (event === "stage") setStage((data as { stage: string }).stage);
        if (event === "text") setText((written += (data as { text: string }).text));
        if (event === "saved") saved = (data as { conversation: string }).conversation;
        if (event === "answer") {
          setAnswer(data as Answer);
          if (saved) keep(saved);
          announce(t("ask.done"));
        }
      }
    } catch (error) {
      if (!signal.aborted) setProblem(asProblem(error));
    }
    end();
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

/** The conversations that were saved, the last changed first. */
function ConversationList({ chosen }: { chosen: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <div class="talks">
      <button onClick={() => setOpen(true)}>{t("talk.list")}</button>
      <a class="button" href={href("ask")}>
        {t("talk.new")}
      </a>
      {isOpen && (
        <Dialog title={t("talk.list")} close={() => setOpen(false)} isDrawer>
          <Conversations chosen={chosen} close={() => setOpen(false)} />
        </Dialog>
      )}
    </div>
  );
}

interface ConversationPage {
  conversations: ConversationSummary[];
  cursor: string;
}

function Conversations({ chosen, close }: { chosen: string; close: () => void }) {
  const [removing, setRemoving] = useState<ConversationSummary>();
  const [cursors, setCursors] = useState([""]);
  const loaded = useLoaded(
    (abort) => Promise.all(cursors.map((cursor) => get<ConversationPage>("/conversations", { k: 50, cursor }, abort))),
    `${route.value.workspace} ${changes.value} ${cursors.length}`,
  );
  const remove = async (id: string) => {
    await request("DELETE", workspaceUrl(`/conversations/${encodeURIComponent(id)}`));
    changes.value++;
    if (id === chosen || location.hash.includes(id)) go(href("ask"));
  };
  return (
    <Await from={loaded}>
      {(pages) => {
        const all = pages.flatMap((page) => page.conversations);
        const next = pages.at(-1)?.cursor;
        if (!all.length) return <p>{t("talk.none")}</p>;
        return (
          <>
            <ul class="talk-list">
              {all.map((talk) => (
                <li key={talk.id}>
                  <a href={href("ask", talk.id)} dir="auto" aria-current={talk.id === chosen ? "page" : undefined} onClick={close}>
                    {talk.title}
                  </a>
                  <span class="small">
                    {t("count.questions", { n: talk.n_exchanges })} · {moment(talk.updated_at)}
                  </span>
                  <button class="quiet" aria-label={t("talk.delete", { title: talk.title })} onClick={() => setRemoving(talk)}>
                    ✕
                  </button>
                </li>
              ))}
            </ul>
            {next && <button onClick={() => setCursors([...cursors, next])}>{t("showMore")}</button>}
            {removing && (
              <Confirm title={t("talk.deleteTitle")} action={t("talk.deleteAction")} close={() => setRemoving(undefined)} run={() => remove(removing.id)}>
                <p dir="auto">{removing.title}</p>
              </Confirm>
            )}
          </>
        );
      }}
    </Await>
  );
}
