// Parts: what several views are made of.

import { signal, type Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Problem } from "./api";
import type { Edit } from "./types";
import { t } from "./words";

/** What an asynchronous view shows: nothing yet, a value, or a problem. */
export interface Loaded<T> {
  value?: T;
  problem?: Problem;
  isLoading: boolean;
}

/** Load a value whenever `key` changes, and again by `reload`; an answer that comes too late is dropped. */
export function useLoaded<T>(load: (signal: AbortSignal) => Promise<T>, key: unknown): Loaded<T> & { reload: () => void } {
  const [state, setState] = useState<Loaded<T>>({ isLoading: true });
  const [n, setN] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    setState((old) => ({ ...old, isLoading: true }));
    load(abort.signal).then(
      (value) => abort.signal.aborted || setState({ value, isLoading: false }),
      (error: unknown) => abort.signal.aborted || setState({ problem: asProblem(error), isLoading: false }),
    );
    return () => abort.abort();
  }, [key, n]);
  return { ...state, reload: () => setN((old) => old + 1) };
}

export function asProblem(error: unknown): Problem {
  return error instanceof Problem ? error : new Problem(0, String(error));
}

/** A view that waits for a value: the value, a line while it is loading, or what went wrong with a way to try again. */
export function Await<T>({ from, children }: { from: Loaded<T> & { reload: () => void }; children: (value: T) => ComponentChildren }) {
  if (from.problem) return <ProblemNotice problem={from.problem} retry={from.reload} />;
  if (from.value === undefined) return <Waiting />;
  return <>{children(from.value)}</>;
}

export function Waiting({ text }: { text?: string }) {
  return (
    <p class="waiting" role="status">
      <span class="dots" aria-hidden="true" /> {text ?? t("loading")}
    </p>
  );
}

/** What went wrong, how to fix it, and the id that finds it in the server's log. */
export function ProblemNotice({ problem, retry, children }: { problem: Problem; retry?: () => void; children?: ComponentChildren }) {
  const own = { offline: t("problem.offline"), cut: t("problem.cut") }[problem.message];
  return (
    <div class="notice problem" role="alert">
      <p>
        <strong>{own ?? problem.message}</strong> {problem.remedy}
      </p>
      {problem.requestId && <p class="small">{t("problem.id", { id: problem.requestId })}</p>}
      {children}
      {retry && <button onClick={retry}>{t("retry")}</button>}
    </div>
  );
}

/** A view with nothing in it yet, and what to do about it. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** A dialog over the page. Escape and the close button call `close`; the focus goes back to where it was. */
export function Dialog({ title, close, children, isDrawer = false }: { title: string; close: () => void; children: ComponentChildren; isDrawer?: boolean }) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    element.current!.showModal();
    return () => {
      const now = document.activeElement;
      if (now === null || now === document.body || element.current?.contains(now)) before?.focus();
    };
  }, []);
  return (
    <dialog
      ref={element}
      class={isDrawer ? "drawer" : ""}
      aria-label={title}
      onClose={close}
      onClick={(event) => event.target === element.current && close()}
    >
      <header>
        <h2>{title}</h2>
        <button class="quiet" onClick={close} aria-label={t("close")}>
          ✕
        </button>
      </header>
      <div class="dialog-body">{children}</div>
    </dialog>
  );
}

/** A question before something that cannot be undone. */
export function Confirm({ title, action, close, run, children }: { title: string; action: string; close: () => void; run: () => Promise<void>; children: ComponentChildren }) {
  const [problem, setProblem] = useState<Problem>();
  const [isBusy, setBusy] = useState(false);
  const start = () => {
    setBusy(true);
    run().then(close, (error) => (setProblem(asProblem(error)), setBusy(false)));
  };
  return (
    <Dialog title={title} close={close}>
      {children}
      {problem && <ProblemNotice problem={problem} />}
      <div class="actions">
        <button onClick={close}>{t("cancel")}</button>
        <button class="danger" disabled={isBusy} onClick={start}>
          {action}
        </button>
      </div>
    </Dialog>
  );
}

/** A button whose work is short; what goes wrong is said. */
export function Action({ text, label, run }: { text: string; label?: string; run: () => Promise<unknown> }) {
  const [isBusy, setBusy] = useState(false);
  const start = () => {
    setBusy(true);
    run().then(
      () => setBusy(false),
      (error) => (setBusy(false), say(`${asProblem(error).message} ${asProblem(error).remedy}`)),
    );
  };
  return (
    <button aria-label={label} disabled={isBusy} onClick={start}>
      {text}
    </button>
  );
}

/** Tabs of one view; the arrow keys move between them. */
export function Tabs<T extends string>({ label, tabs, chosen, choose }: { label: string; tabs: [T, string][]; chosen: T; choose: (tab: T) => void }) {
  const move = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = tabs.findIndex(([tab]) => tab === chosen);
    const next = tabs[(at + step + tabs.length) % tabs.length]!;
    choose(next[0]);
    (event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("[role=tab]")[tabs.indexOf(next)]?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label={label} onKeyDown={move}>
      {tabs.map(([tab, name]) => (
        <button role="tab" key={tab} aria-selected={tab === chosen} tabIndex={tab === chosen ? 0 : -1} onClick={() => choose(tab)}>
          {name}
        </button>
      ))}
    </div>
  );
}

/** For a list: the arrow keys move between the first links of its rows. */
export function moveInList(event: KeyboardEvent) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const links = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("li > a:first-of-type, li > :first-child > a:first-of-type, .row-name > a")];
  const at = links.indexOf(document.activeElement as HTMLElement);
  if (!step || at < 0) return;
  event.preventDefault();
  links[at + step]?.focus();
}

/** A list of names and values. */
export function Facts({ rows }: { rows: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd dir="auto">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export const N_FAILURES = 5; // shown at once
const MAX_REASON = 160; // characters, shown whole

/** Names with the reason why they failed: a few, and the others on demand. */
export function Failures({ rows, title }: { rows: [string, string][]; title: string }) {
  const [isWhole, setWhole] = useState(false);
  return (
    <>
      <p class="error">{title}</p>
      <ul class="names">
        {(isWhole ? rows.slice(0, 200) : rows.slice(0, N_FAILURES)).map(([name, reason]) => (
          <li key={name} dir="auto">
            <strong>{name}</strong> <Reason text={reason} />
          </li>
        ))}
      </ul>
      {!isWhole && rows.length > N_FAILURES && <button onClick={() => setWhole(true)}>{t("more", { n: rows.length - N_FAILURES })}</button>}
    </>
  );
}

/** A reason: its first sentence, and the others on demand. */
function Reason({ text }: { text: string }) {
  const [first, rest] = [/^.*?[.!?。](?=\s|$)/s.exec(text)?.[0] ?? text, text.length > MAX_REASON];
  if (!rest || first === text) return <>{text}</>;
  return (
    <details>
      <summary>{first}</summary>
      {text.slice(first.length).trim()}
    </details>
  );
}

/** Messages for a short while at the lower edge of the page; screen readers read them. */
const toasts: Signal<{ id: number; text: string }[]> = signal([]);

export function say(text: string): void {
  const toast = { id: Date.now() + Math.random(), text };
  toasts.value = [...toasts.value, toast];
  setTimeout(() => (toasts.value = toasts.value.filter((other) => other !== toast)), 6_000);
}

/** Tell screen readers something that the page shows anyway. */
export function announce(text: string): void {
  announced.value = text;
}

const announced = signal("");

export function Toasts() {
  return (
    <>
      <p class="hidden" role="status">
        {announced.value}
      </p>
      <ToastList />
    </>
  );
}

function ToastList() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((toast) => (
        <p key={toast.id}>{toast.text}</p>
      ))}
    </div>
  );
}

/** Copy a text; a browser keeps the clipboard from pages without TLS, which is said. */
export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    say(t("clients.copied"));
  } catch {
    say(t("clients.copyByHand"));
  }
}

/** Give the browser a file to save. */
export function save(name: string, content: BlobPart, type: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** What an edit says, on one line. */
export function editSummary({ kind, entities, name, type, keywords, description }: Edit): string {
  const value = [name, type, keywords.join(", "), description].filter(Boolean).join(": ");
  return `${t(`edit.kind.${kind}` as Parameters<typeof t>[0])}: ${entities.join(" · ")}${value ? ` → ${value}` : ""}`;
}
