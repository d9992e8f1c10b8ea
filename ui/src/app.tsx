// App: the frame of the page around the view that the address names.

import { effect, signal } from "@preact/signals";
import { render, type ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { isOnline, needsKey, request, type Problem } from "./api";
import { Ask } from "./pages/ask";
import { Dialog, ProblemNotice, Toasts, Waiting, asProblem, useLoaded } from "./parts";
import { go, href, route } from "./route";
import { LANGUAGES, language, setLanguage, startLanguage, t, type Key, type Language } from "./words";
import { loadSession, session, workspaces } from "./session";
import "./style.css";


// A view is loaded when it is first shown; the start needs only "Ask".
const VIEWS: Record<string, ComponentType | (() => Promise<ComponentType>)> = {
  ask: Ask,
  compare: lazily(() => import("./pages/compare").then((view) => view.Compare)),
  why: lazily(() => import("./pages/why").then((view) => view.Why)),
  entities: lazily(() => import("./pages/entity").then((view) => view.Entities)),
  documents: lazily(() => import("./pages/documents").then((view) => view.Documents)),
  graph: lazily(() => import("./pages/graph").then((view) => view.GraphView)),
  settings: lazily(() => import("./pages/settings").then((view) => view.Settings)),
};

const LINKS: { page: string; word: Key; key: string }[] = [
  { page: "ask", word: "nav.ask", key: "a" },
  { page: "documents", word: "nav.documents", key: "d" },
  { page: "compare", word: "nav.compare", key: "c" },
  { page: "entities", word: "nav.entities", key: "e" },
  { page: "graph", word: "nav.graph", key: "g" },
  { page: "settings", word: "nav.settings", key: "s" },
];

function lazily(load: () => Promise<ComponentType>): () => Promise<ComponentType> {
  return load;
}

function App() {
  const start = useLoaded(startSession, needsKey.value);
  if (needsKey.value) return <KeyForm />;
  if (start.problem) return <ProblemNotice problem={start.problem} retry={start.reload} />;
  if (!session.value) return <Waiting />;
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        {t("skip")}
      </a>
      <Header />
      {!isOnline.value && (
        <p class="notice offline" role="status">
          {t("problem.offline")}
        </p>
      )}
      <main id="main" tabIndex={-1}>
        <View />
      </main>
      <Toasts />
      <ShortcutHelp />
    </>
  );
}

async function startSession(): Promise<void> {
  if (needsKey.value) return;
  const who = await loadSession();
  if (!route.value.workspace) go(`#/workspaces/${encodeURIComponent(workspaces.value[0] ?? "default")}/ask`, true);
  session.value = who;
}

function View() {
  const { page, workspace } = route.value;
  const [view, setView] = useState<{ page: string; component: ComponentType }>();
  const [problem, setProblem] = useState<Problem>();
  useEffect(() => {
    setProblem(undefined);
    const entry = VIEWS[page];
    if (!entry || entry === Ask) return;
    (entry as () => Promise<ComponentType>)().then(
      (component) => setView({ page, component }),
      (error) => setProblem(asProblem(error)),
    );
  }, [page]);
  if (problem) return <ProblemNotice problem={problem} />;
  if (!VIEWS[page]) return <ProblemNotice problem={asProblem(new Error(t("problem.page", { page })))} />;
  const Component = page === "ask" ? Ask : view?.page === page ? view.component : undefined;
  return Component ? <Component key={workspace} /> : <Waiting />;
}

function Header() {
  const { page, workspace } = route.value;
  return (
    <header class="top">
      <a class="brand" href={href("ask")}>
        <Knots /> Quipu
      </a>
      {workspaces.value.length > 1 && (
        <select aria-label={t("workspace")} value={workspace} onChange={(event) => go(`#/workspaces/${encodeURIComponent(event.currentTarget.value)}/ask`)}>
          {workspaces.value.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      )}
      <nav aria-label={t("nav.label")}>
        {LINKS.map((link) => (
          <a key={link.page} href={href(link.page)} aria-current={page === link.page ? "page" : undefined}>
            {t(link.word)}
          </a>
        ))}
      </nav>
      <Appearance />
    </header>
  );
}

/** The picture of icon.svg, in the page itself: one request less before it is shown. */
function Knots() {
  return (
    <svg viewBox="0 0 32 32" width="24" height="24" aria-hidden="true">
      <rect width="32" height="32" rx="7" fill="#0f5c63" />
      <path d="M5 9h22" stroke="#f4ede1" stroke-width="2.6" stroke-linecap="round" />
      <path d="M10 9v14M16 9v17M22 9v11" stroke="#f4ede1" stroke-width="1.8" stroke-linecap="round" />
      <g fill="#e8a33d">
        <circle cx="10" cy="15" r="2.2" />
        <circle cx="16" cy="19" r="2.2" />
        <circle cx="22" cy="14" r="2.2" />
        <circle cx="16" cy="13" r="1.7" />
      </g>
    </svg>
  );
}

/** The theme: that of the system, or the one that was chosen. */
const theme = signal(localStorage.getItem("theme") ?? "");
effect(() => {
  document.documentElement.dataset.theme = theme.value;
  localStorage.setItem("theme", theme.value);
});

function Appearance() {
  return (
    <div class="appearance">
      <select aria-label={t("language")} value={language.value} onChange={(event) => void setLanguage(event.currentTarget.value as Language)}>
        {Object.entries(LANGUAGES).map(([code, name]) => (
          <option key={code} value={code}>
            {name}
          </option>
        ))}
      </select>
      <select aria-label={t("theme")} value={theme.value} onChange={(event) => (theme.value = event.currentTarget.value)}>
        <option value="">{t("theme.system")}</option>
        <option value="light">{t("theme.light")}</option>
        <option value="dark">{t("theme.dark")}</option>
      </select>
      {session.value?.expires !== undefined && session.value.name !== "this machine" && (
        <button class="quiet" onClick={() => void request("DELETE", "api/v1/session").then(() => location.reload())}>
          {t("leave")}
        </button>
      )}
    </div>
  );
}

function KeyForm() {
  const [problem, setProblem] = useState<Problem>();
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const key = String(new FormData(event.currentTarget as HTMLFormElement).get("key")).trim();
    request("POST", "api/v1/session", { key }).then(
      () => (needsKey.value = false),
      (error) => setProblem(asProblem(error)),
    );
  };
  return (
    <main class="key-form">
      <form onSubmit={submit}>
        <h1>Quipu</h1>
        <label>
          {t("key.label")}
          <input name="key" type="password" autocomplete="current-password" required autofocus />
        </label>
        <p class="small">{t("key.hint")}</p>
        {problem && <ProblemNotice problem={problem} />}
        <button class="primary">{t("key.enter")}</button>
      </form>
    </main>
  );
}

function skip(event: Event) {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

const showsHelp = signal(false);

function ShortcutHelp() {
  if (!showsHelp.value) return null;
  return (
    <Dialog title={t("keys.title")} close={() => (showsHelp.value = false)}>
      <dl class="keys">
        <Shortcut keys={["/"]} word="keys.ask" />
        {LINKS.map((link) => (
          <Shortcut key={link.page} keys={["g", link.key]} word={link.word} />
        ))}
        <Shortcut keys={["?"]} word="keys.help" />
      </dl>
    </Dialog>
  );
}

function Shortcut({ keys, word }: { keys: string[]; word: Key }) {
  return (
    <div>
      <dt>
        {keys.map((key) => (
          <kbd key={key}>{key}</kbd>
        ))}
      </dt>
      <dd>{t(word)}</dd>
    </div>
  );
}

let firstKey = "";

function onKey(event: KeyboardEvent) {
  const target = event.target as HTMLElement;
  if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, textarea, select, dialog")) return;
  if (event.key === "/") {
    event.preventDefault();
    const focus = () => document.querySelector<HTMLElement>("#question")?.focus();
    if (route.value.page === "ask") return focus();
    go(href("ask"));
    requestAnimationFrame(focus);
  } else if (event.key === "?") showsHelp.value = true;
  else if (firstKey === "g") {
    const link = LINKS.find((candidate) => candidate.key === event.key);
    if (link) go(href(link.page));
  }
  firstKey = event.key;
}

addEventListener("keydown", onKey);
addEventListener("online", () => (isOnline.value = true));
addEventListener("offline", () => (isOnline.value = false));
effect(() => {
  document.title = [route.value.subject, t(LINKS.find((link) => link.page === route.value.page)?.word ?? "nav.ask"), "Quipu"].filter(Boolean).join(" · ");
});

void startLanguage().then(() => {
  render(<App />, document.getElementById("page")!);
  document.documentElement.dataset.ready = "true";
});
