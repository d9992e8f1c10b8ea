// Ask: a conversation. Each question is answered while one watches, and saved with its answer.

import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, request, stream, workspaceUrl, type Problem } from "../api";
import { Markdown } from "../markdown";
import { Await, Confirm, Dialog, Empty, ProblemNotice, Waiting, announce, asProblem, moveInList, useLoaded } from "../parts";
import { go, href, route } from "../route";
import { moment, number, t, type Key } from "../words";
import type { Answer, ConversationSummary, Entity, Exchange, IndexStatus, SavedAnswer } from "../types";
import { AnswerText, WholeAnswer } from "./answer";
import { OptionsDrawer, carried, countOptions, optionsOf, preferredStrategy, useStrategies } from "./options";

const N_SUGGESTIONS = 4;

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

interface NewQuestion {
  question: string;
  strategy: string; // "" for the default of the server
}

/** A conversation: what was saved of it, the questions asked since, and the next one. */
function Conversation({ id, saved, first }: { id: string; saved: Exchange[]; first: string }) {
  const [asked, setAsked] = useState<NewQuestion[]>(first ? [{ question: first, strategy: route.value.params.get("strategy") || preferredStrategy.value }] : []);
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
    if (saved.length || asked.length) setAsked([...asked, { question, strategy }]), setBusy(true);
    else go(href("ask", "", { q: question, strategy, ...carried(params) }));
  };
  if (!saved.length && !asked.length)
    return (
      <div class="welcome">
        <h1>{t("ask.welcome")}</h1>
        <QuestionForm ask={ask} isFirst isBusy={false} />
        <Welcome ask={(question) => ask(question, "")} />
      </div>
    );
  return (
    <>
      {saved.map((exchange) => (
        <article class="answer" key={exchange.number}>
          <h1 dir="auto">{exchange.question}</h1>
          {exchange.answer ? <AnswerText answer={asAnswer(exchange.answer)} /> : <p class="notice">{t("talk.removed")}</p>}
        </article>
      ))}
      {asked.map((one, index) => (
        <Asked key={index} {...one} isFollowUp={saved.length + index > 0} conversation={conversation} keep={keep} end={() => setBusy(false)} />
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

/** What the workspace holds, and questions to begin with. */
function Welcome({ ask }: { ask: (question: string) => void }) {
  const { workspace } = route.value;
  const status = useLoaded((abort) => get<Pick<IndexStatus, "n_documents" | "n_entities" | "n_relations">>("/status", {}, abort), workspace);
  if (status.problem) return <ProblemNotice problem={status.problem} retry={status.reload} />;
  if (!status.value) return <Waiting />;
  const { n_documents, n_entities, n_relations } = status.value;
  if (!n_documents)
    return (
      <Empty title={t("ask.noDocuments")}>
        <p>{t("ask.addFirst")}</p>
        <a class="button primary" href={href("documents")}>
          {t("documents.add")}
        </a>
      </Empty>
    );
  return (
    <div class="empty">
      <Suggestions key={workspace} ask={ask} />
      <p>
        <a href={href("documents")}>{t("count.documents", { n: n_documents })}</a> · <a href={href("entities")}>{t("count.entities", { n: n_entities })}</a> ·{" "}
        <a href={href("graph")}>{t("count.relations", { n: n_relations })}</a>
      </p>
      <p class="small">{t("ask.hint")}</p>
    </div>
  );
}

/** Questions about the entities with the most relations, for people who do not know the documents yet. */
function Suggestions({ ask }: { ask: (question: string) => void }) {
  const [names, setNames] = useState<string[]>([]);
  useEffect(() => {
    const load = () =>
      void get<{ entities: Entity[] }>("/entities", { k: 4 * N_SUGGESTIONS }).then(
        ({ entities }) => setNames([...entities.filter(({ type }) => type !== "Other"), ...entities].slice(0, N_SUGGESTIONS).map(({ name }) => name)),
        () => {}, // the page is whole without them
      );
    const id = requestIdleCallback(load); // after what a person waits for
    return () => cancelIdleCallback(id);
  }, []);
  return (
    <ul class="suggestions" aria-label={t("ask.suggestions")}>
      {[...new Set(names)].map((name) => {
        const question = t("entity.question", { name });
        return (
          <li key={name}>
            <button onClick={() => ask(question)} dir="auto">
              {question}
            </button>
          </li>
        );
      })}
    </ul>
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
  const [strategy, setStrategy] = useState(params.get("strategy") || preferredStrategy.value);
  const n = countOptions(params);
  const all = useStrategies();
  const submit = (event: Event) => {
    event.preventDefault();
    if (!text.trim() || isBusy) return;
    ask(text.trim(), strategy);
    setText("");
  };
  const choose = (name: string) => {
    setStrategy(name);
    if (!name) preferredStrategy.value = "";
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      (event.currentTarget as HTMLTextAreaElement).form!.requestSubmit();
    }
  };
  return (
    <>
      <form class={isFirst ? "question" : "question next"} onSubmit={submit}>
        {params.get("documents") && (
          <p class="small only">
            {t("ask.only", { documents: params.get("documents")! })}{" "}
            <a href={href("ask", "", { ...carried(params), documents: "" })} aria-label={t("ask.all")}>
              ✕
            </a>
          </p>
        )}
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
            <select name="strategy" value={strategy} onChange={(event) => choose(event.currentTarget.value)}>
              <option value="">{t("strategy.default")}</option>
              {!all.length && strategy && <option value={strategy}>{strategy}</option>}
              {all.map(({ name, summary }) => (
                <option key={name} value={name} title={summary} selected={name === strategy}>
                  {name}
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
      {isOpen && <OptionsDrawer strategy={strategy} close={() => setOpen(false)} />}
    </>
  );
}

const STAGES: Record<string, Key> = { understand: "stage.understand", retrieve: "stage.retrieve", rerank: "stage.rerank", generate: "stage.generate" };

/** What the server does from now on, and of how many passages it makes the answer; 0 until it knows. */
interface Stage {
  stage: string;
  n_passages: number;
}

interface AskedProps extends NewQuestion {
  isFollowUp: boolean;
  conversation: { current: string };
  keep: (conversation: string) => void;
  end: () => void;
}

/** A question of this visit and its answer: a new one continues the conversation, as soon as there is one. */
function Asked({ question, strategy, isFollowUp, conversation, keep, end }: AskedProps) {
  const [text, setText] = useState("");
  const [stage, setStage] = useState<Stage>({ stage: "understand", n_passages: 0 });
  const [answer, setAnswer] = useState<Answer>();
  const [problem, setProblem] = useState<Problem>();
  const [isStopped, setStopped] = useState(false);
  const [n, setN] = useState(0);
  const abort = useRef<AbortController>(null);
  const element = useRef<HTMLElement>(null);
  useEffect(() => {
    if (isFollowUp) element.current!.scrollIntoView({ block: "start" });
  }, []);
  useEffect(() => {
    const controller = (abort.current = new AbortController());
    setText(""), setAnswer(undefined), setProblem(undefined), setStopped(false), setStage({ stage: "understand", n_passages: 0 });
    void run(controller.signal);
    return () => controller.abort();
  }, [n]);

  async function run(signal: AbortSignal) {
    let written = "";
    let saved = "";
    try {
      const body = { question, ...(conversation.current && { conversation: conversation.current }), ...optionsOf(route.value.params), strategy: strategy || undefined };
      for await (const { event, data } of stream("/conversations/query/stream", body, signal)) {
        if (event === "stage") setStage(data as Stage);
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
    <article class="answer" aria-busy={isWorking} ref={element}>
      <h1 dir="auto">{question}</h1>
      {isWorking && (
        <div class="progress">
          <Waiting text={stage.n_passages && !text ? t("stage.passages", { n: stage.n_passages }) : t(STAGES[stage.stage] ?? "stage.understand")} />
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
            <ul class="talk-list" onKeyDown={moveInList}>
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
