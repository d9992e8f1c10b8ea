// Documents: what the workspace holds, adding to it with honest progress, and taking out of it.

import { useEffect, useRef, useState } from "preact/hooks";
import { mayWrite } from "../session";
import { get } from "../api";
import { JobList } from "../jobs";
import { Action, Await, Confirm, Dialog, Empty, Facts, Failures, N_FAILURES, ProblemNotice, Waiting, announce, asProblem, editSummary, moveInList, say, useLoaded } from "../parts";
import { go, href, route } from "../route";
import { bytes, duration, moment, money, number, t, type Key } from "../words";
import {
  addText, changes, continueUpload, dismissInterrupted, dismissUpload, estimate, interrupted, followWorkspace, removeDocuments, retryDocuments, upload, uploads, wholeCost,
  type NamedFile, type Upload,
} from "../work";
import type { Added, Chunk, Document, DocumentPage, Estimate, IndexStatus, Range, RecordedEdit, RemovalPreview, Status } from "../types";
import { shortened } from "../markdown";
import { DocumentId, citedAt } from "./answer";
import { DocumentView } from "./document";

const PAGE = 50; // documents
const STATUSES: Status[] = ["ready", "partial", "failed", "queued", "parsing", "extracting", "removing"];
const ORDERS = ["id", "title", "updated"] as const;
const N_EDITS = 10; // of those that a removal changes
const N_HITS = 5; // passages with the words of a search
const SEARCH_MS = 200; // without a key stroke

export function Documents() {
  return route.value.subject ? <DocumentView /> : <DocumentList />;
}

function DocumentList() {
  const { params, workspace } = route.value;
  const choice = { prefix: params.get("prefix") ?? "", status: params.get("status") ?? "", order: params.get("order") ?? "" };
  const after = params.get("after") ?? "";
  const page = useLoaded(async (abort) => {
    const { documents, cursor } = await get<DocumentPage>("/documents", { ...choice, k: PAGE, cursor: after }, abort);
    return { documents, cursor, choice, after }; // a cursor belongs to its choice, also while the next page is loading
  }, `${params} ${changes.value}`);
  const status = useLoaded((abort) => get<IndexStatus>("/status", {}, abort), `${workspace} ${changes.value}`);
  useEffect(followWorkspace, [workspace]);
  return (
    <div class="documents">
      <h1>
        {t("nav.documents")} {status.value && <span class="small">{t("count.documents", { n: status.value.n_documents })}</span>}
      </h1>
      {mayWrite.value && <Adding status={status.value} />}
      <UploadList />
      <JobList currency={status.value?.currency} />
      <Choice {...choice} />
      <Await from={page}>
        {({ documents, cursor, choice, after }) => {
          const isChosen = Boolean(choice.prefix || choice.status || after);
          return documents.length ? (
            <>
              <Rows key={JSON.stringify([choice, after])} documents={documents} isLater={Boolean(after)} />
              <nav class="actions" aria-label={t("documents.pages")}>
                {after && <a class="button" href={href("documents", "", choice)}>{t("documents.first")}</a>}
                {cursor && <a class="button" href={href("documents", "", { ...choice, after: cursor })}>{t("documents.next")}</a>}
              </nav>
            </>
          ) : (
            <Empty title={t(isChosen ? "documents.noMatch" : "ask.noDocuments")}>
              <p>{isChosen ? <a href={href("documents")}>{t("documents.showAll")}</a> : t(mayWrite.value ? "documents.addFirst" : "documents.askForMore")}</p>
            </Empty>
          );
        }}
      </Await>
      {choice.prefix && <TextHits key={choice.prefix} text={choice.prefix} />}
    </div>
  );
}

interface ChunkHits {
  chunks: [unknown, Chunk][];
}

/** Passages with the words of the search, for whoever looks for what a document says and not for its name. */
function TextHits({ text }: { text: string }) {
  const loaded = useLoaded((abort) => get<ChunkHits>("/search", { text, k: N_HITS }, abort), text);
  const chunks = loaded.value?.chunks.map(([, chunk]) => chunk) ?? [];
  if (!chunks.length) return null;
  return (
    <section aria-labelledby="in-texts">
      <h2 id="in-texts">{t("documents.inTexts")}</h2>
      <ol class="passages" onKeyDown={moveInList}>
        {chunks.map((chunk) => (
          <li key={chunk.id}>
            <a href={citedAt({ document_id: chunk.document_id, start: chunk.start, end: chunk.end })} dir="auto">
              {chunk.title || chunk.document_id}
            </a>{" "}
            <span class="small">
              <DocumentId id={chunk.document_id} />
            </span>
            <blockquote dir="auto">{shortened(chunk.text, 200)}</blockquote>
          </li>
        ))}
      </ol>
    </section>
  );
}

function Choice({ prefix, status, order }: { prefix: string; status: string; order: string }) {
  const timer = useRef(0);
  const show = (values: Record<string, string>) => go(href("documents", "", { prefix, status, order, ...values }), true);
  const search = (text: string) => {
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => show({ prefix: text }), SEARCH_MS);
  };
  return (
    <form class="choice" role="search" onSubmit={(event) => event.preventDefault()}>
      <label class="field">
        {t("documents.search")}
        <input type="search" name="prefix" defaultValue={prefix} placeholder={t("documents.searchHint")} onInput={(event) => search(event.currentTarget.value)} />
      </label>
      <label class="field">
        {t("document.status")}
        <select name="status" value={status} onChange={(event) => show({ status: event.currentTarget.value })}>
          <option value="">{t("documents.allStatuses")}</option>
          {STATUSES.map((name) => (
            <option key={name} value={name}>
              {t(`status.${name}`)}
            </option>
          ))}
        </select>
      </label>
      <label class="field">
        {t("documents.order")}
        <select name="order" value={order || "id"} onChange={(event) => show({ order: event.currentTarget.value })}>
          {ORDERS.map((name) => (
            <option key={name} value={name}>
              {t(`order.${name}`)}
            </option>
          ))}
        </select>
      </label>
    </form>
  );
}

// The list

function Rows({ documents, isLater }: { documents: Document[]; isLater: boolean }) {
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => {
    if (isLater) list.current!.focus(); // the link to the next page was below the list
    announce(t("documents.shown", { n: documents.length }));
  }, []);
  const [chosen, setChosen] = useState<string[]>([]);
  const [removed, setRemoved] = useState<string[]>();
  const present = chosen.filter((id) => documents.some((document) => document.id === id));
  const choose = (id: string, isChosen: boolean) => setChosen(isChosen ? [...present, id] : present.filter((other) => other !== id));
  return (
    <>
      <ul class="rows" ref={list} tabIndex={-1} aria-label={t("nav.documents")} onKeyDown={moveInList}>
        {documents.map((document) => (
          <Row key={document.id} document={document} isChosen={present.includes(document.id)} choose={choose} remove={() => setRemoved([document.id])} />
        ))}
      </ul>
      {present.length > 0 && (
        <p class="actions chosen" role="status">
          {t("documents.chosen", { n: present.length })}
          <button class="danger" onClick={() => setRemoved(present)}>
            {t("documents.remove")} …
          </button>
        </p>
      )}
      {removed && <Removal ids={removed} close={() => setRemoved(undefined)} />}
    </>
  );
}

interface RowProps {
  document: Document;
  isChosen: boolean;
  choose: (id: string, isChosen: boolean) => void;
  remove: () => void;
}

function Row({ document, isChosen, choose, remove }: RowProps) {
  const { id, title, status, error, n_failed_chunks: nFailed } = document;
  const name = title || id;
  return (
    <li>
      {mayWrite.value && <input type="checkbox" checked={isChosen} aria-label={t("documents.choose", { name })} onChange={(event) => choose(id, event.currentTarget.checked)} />}
      <div class="row-name">
        <a href={href("documents", id)} dir="auto">
          {name}
        </a>
        <p class="small" dir="auto">
          {name !== id && <DocumentId id={id} />} <span class="row-facts">{`${name === id ? "" : "· "}${t("count.chunks", { n: document.n_chunks })} · ${moment(document.updated_at)}`}</span>
        </p>
        {error && (
          <p class="error" dir="auto">
            {nFailed > 0 && `${t("documents.failedChunks", { n: nFailed })} `}
            {error}
          </p>
        )}
        <UnreadPages metadata={document.metadata} />
      </div>
      <span class={`badge ${status}`}>{t(`status.${status}`)}</span>
      {mayWrite.value && (
        <span class="row-actions">
          {error && <Action run={() => retryDocuments([id])} label={t("documents.retryOne", { name })} text={t("documents.retry")} />}
          <button class="quiet" aria-label={t("documents.removeOne", { name })} onClick={remove}>
            {t("documents.remove")}
          </button>
        </span>
      )}
    </li>
  );
}

/** Scanned pages that are not in the text, with the reason, and those that may be misread. */
function UnreadPages({ metadata }: Pick<Document, "metadata">) {
  const { unread_pages: unread, unread_reason: reason, unsure_pages: unsure } = metadata;
  if (!unread && !unsure) return null;
  return (
    <p class="error" dir="auto">
      {Boolean(unread) && `${t("documents.unreadPages", { pages: String(unread) })} ${String(reason ?? "")} `}
      {Boolean(unsure) && t("documents.unsurePages", { pages: String(unsure) })}
    </p>
  );
}

function Removal({ ids, close }: { ids: string[]; close: () => void }) {
  const preview = useLoaded((abort) => get<RemovalPreview>("/removal", { document: ids, k: 8 }, abort), ids);
  const run = async () => {
    await removeDocuments(ids);
    say(t("documents.removed", { n: ids.length }));
  };
  return (
    <Confirm title={t("documents.removeTitle", { n: ids.length })} action={t("documents.remove")} close={close} run={run}>
      <ul class="names">
        {ids.slice(0, N_FAILURES).map((id) => (
          <li key={id} dir="auto">
            {id}
          </li>
        ))}
        {ids.length > N_FAILURES && <li>{t("more", { n: ids.length - N_FAILURES })}</li>}
      </ul>
      <Await from={preview}>{(what) => <WhatGoes preview={what} />}</Await>
    </Confirm>
  );
}

function WhatGoes({ preview }: { preview: RemovalPreview }) {
  const { entities } = preview;
  return (
    <>
      <Facts
        rows={[
          [t("document.chunks"), number(preview.n_chunks)],
          [t("removal.entities"), number(preview.n_entities)],
          [t("removal.relations"), number(preview.n_relations)],
          [t("removal.changed"), t("removal.changedCount", { entities: preview.n_entities_changed, relations: preview.n_relations_changed })],
          [t("removal.reports"), number(preview.n_reports)],
        ]}
      />
      {entities.length > 0 && (
        <p class="small" dir="auto">
          {t("removal.names")} {entities.map((entity) => entity.name).join(", ")}
          {preview.n_entities > entities.length && " …"}
        </p>
      )}
      <EditList label={t("removal.editsLost")} edits={preview.edits_lost} />
      <EditList label={t("removal.editsChanged")} edits={preview.edits_changed} />
      {preview.n_answers > 0 && <p>{t("removal.answers", { n: preview.n_answers })}</p>}
      {preview.n_replies > 0 && <p class="small">{t("removal.replies", { n: preview.n_replies })}</p>}
    </>
  );
}

function EditList({ label, edits }: { label: string; edits: RecordedEdit[] }) {
  if (!edits.length) return null;
  return (
    <>
      <p>
        {label}: {number(edits.length)}
      </p>
      <ul class="small">
        {edits.slice(0, N_EDITS).map((recorded) => (
          <li key={recorded.id} dir="auto">
            {editSummary(recorded.edit)}
          </li>
        ))}
      </ul>
    </>
  );
}

// Adding

/** Files to be estimated, and what adds them. */
interface Addition {
  files: NamedFile[];
  add: () => void;
}

function Adding({ status }: { status?: IndexStatus }) {
  const [addition, setAddition] = useState<Addition>();
  const [isPasting, setPasting] = useState(false);
  const [isOver, setOver] = useState(false);
  const [files, folder] = [useRef<HTMLInputElement>(null), useRef<HTMLInputElement>(null)];
  const model = modelOf(status);
  const begin = (next: Addition) => (model ? setAddition(next) : next.add()); // a model costs something: first the estimate
  const add = (named: NamedFile[]) => (named.length ? begin({ files: named, add: () => upload(named) }) : say(t("upload.nothing")));
  useDrop(add, setOver);
  const onChoose = (event: Event) => {
    const input = event.currentTarget as HTMLInputElement;
    add(named([...(input.files ?? [])]));
    input.value = "";
  };
  return (
    <section class={isOver ? "drop over" : "drop"} aria-label={t("documents.add")}>
      <p>{t("documents.drop")}</p>
      <p class="actions">
        <button class="primary" onClick={() => files.current!.click()}>
          {t("documents.files")}
        </button>
        <button onClick={() => folder.current!.click()}>{t("documents.folder")}</button>
        <button onClick={() => setPasting(true)}>{t("documents.paste")}</button>
      </p>
      <input ref={files} type="file" name="files" multiple hidden aria-label={t("documents.files")} onChange={onChoose} />
      <input ref={folder} type="file" name="folder" multiple hidden aria-label={t("documents.folder")} onChange={onChoose} {...{ webkitdirectory: true }} />
      {isPasting && <Paste begin={begin} close={() => setPasting(false)} />}
      {addition && <EstimateDialog addition={addition} model={model} currency={status?.currency} close={() => setAddition(undefined)} />}
    </section>
  );
}

/** The language model that reads documents; "" where rules do, which cost nothing. */
function modelOf(status?: IndexStatus): string {
  return status?.models.find(([role]) => role === "extract")?.[1] ?? "";
}

/** Files with their paths; those of hidden folders, and hidden ones, are left out. */
function named(files: File[]): NamedFile[] {
  return files.map((file) => ({ name: file.webkitRelativePath || file.name, file })).filter(({ name }) => !/(^|\/)\./.test(name));
}

function useDrop(add: (files: NamedFile[]) => void, setOver: (isOver: boolean) => void) {
  const latest = useRef(add);
  latest.current = add;
  useEffect(() => {
    const over = (event: DragEvent) => {
      if (!event.dataTransfer?.types.includes("Files") || document.querySelector("dialog")) return;
      event.preventDefault();
      setOver(true);
    };
    const leave = (event: DragEvent) => event.relatedTarget || setOver(false);
    const drop = (event: DragEvent) => {
      setOver(false);
      if (!event.dataTransfer?.types.includes("Files") || document.querySelector("dialog")) return;
      event.preventDefault();
      void droppedFiles(event.dataTransfer).then((files) => latest.current(files));
    };
    addEventListener("dragover", over);
    addEventListener("dragleave", leave);
    addEventListener("drop", drop);
    return () => {
      removeEventListener("dragover", over);
      removeEventListener("dragleave", leave);
      removeEventListener("drop", drop);
    };
  }, []);
}

async function droppedFiles(transfer: DataTransfer): Promise<NamedFile[]> {
  const entries = [...transfer.items].map((part) => part.webkitGetAsEntry());
  const plain = named([...transfer.files]);
  if (entries.every((entry) => !entry)) return plain;
  const all = await Promise.all(entries.map((entry) => (entry ? filesIn(entry) : [])));
  return all.flat().filter(({ name }) => !/(^|\/)\./.test(name));
}

async function filesIn(entry: FileSystemEntry): Promise<NamedFile[]> {
  const name = entry.fullPath.replace(/^\//, "");
  if (entry.isFile) return [{ name, file: await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject)) }];
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const files: NamedFile[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject)); // a hundred at a time
    if (!some.length) return files;
    for (const child of some) files.push(...(await filesIn(child)));
  }
}

function Paste({ begin, close }: { begin: (addition: Addition) => void; close: () => void }) {
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const [text, title] = [String(form.get("text")), String(form.get("title")).trim()];
    const add = () =>
      void addText({ text, title }).then(
        (added) => say(counted(added)),
        (error) => say(`${asProblem(error).message} ${asProblem(error).remedy}`),
      );
    close();
    begin({ files: [{ name: "text.md", file: new Blob([text]) }], add });
  };
  return (
    <Dialog title={t("documents.paste")} close={close}>
      <form onSubmit={submit}>
        <label class="field">
          {t("documents.textTitle")}
          <input name="title" dir="auto" />
        </label>
        <label class="field">
          {t("document.text")}
          <textarea name="text" rows={10} required dir="auto" />
        </label>
        <p class="actions">
          <button class="primary">{t("documents.addIt")}</button>
        </p>
      </form>
    </Dialog>
  );
}

/** What reading the files would cost, before anything is added; not above the cap that the person sets. */
function EstimateDialog({ addition, model, currency, close }: { addition: Addition; model: string; currency?: string; close: () => void }) {
  const loaded = useLoaded((abort) => estimate(addition.files, abort), addition);
  const [cap, setCap] = useState(localStorage.getItem("cap") ?? "");
  const cost = loaded.value && wholeCost(loaded.value);
  const high = cost ? cost.high / 1e6 : Infinity; // unknown without a price
  const isAbove = cap !== "" && high > Number(cap);
  const keepCap = (text: string) => {
    setCap(text);
    localStorage.setItem("cap", text);
  };
  const add = () => {
    addition.add();
    close();
  };
  return (
    <Dialog title={t("estimate.title", { n: addition.files.length })} close={close}>
      <p>{t("estimate.model", { model })}</p>
      {loaded.isLoading && <Waiting text={t("estimate.waiting")} />}
      {loaded.problem && <ProblemNotice problem={loaded.problem} retry={loaded.reload} />}
      {loaded.value && <EstimateFacts estimate={loaded.value} currency={currency} />}
      <label class="field narrow">
        {t("estimate.cap", { currency: currency ?? "" })}
        <input type="number" name="cap" min="0" step="any" value={cap} onInput={(event) => keepCap(event.currentTarget.value)} />
      </label>
      {loaded.value && isAbove && (
        <p class="notice problem" role="alert">
          {t("estimate.above")}
        </p>
      )}
      <p class="actions">
        <button onClick={close}>{t("cancel")}</button>
        <button class="primary" disabled={isAbove} onClick={add}>
          {t("documents.addIt")}
        </button>
      </p>
    </Dialog>
  );
}

function EstimateFacts({ estimate, currency }: { estimate: Estimate; currency?: string }) {
  const range = (value: Range, show: (n: number) => string) => [...new Set([show(value.low), show(value.high)])].join(" – ");
  const whole = (n: number) => number(Math.round(n));
  const cost = wholeCost(estimate);
  return (
    <>
      <Facts
        rows={[
          [t("estimate.cost"), cost ? range(cost, (n) => money(n, currency)) : t("estimate.noPrice")],
          [t("estimate.time"), range(estimate.seconds, (n) => duration(n * 1_000))],
          [t("estimate.chunks"), number(estimate.n_chunks - estimate.n_cached)],
          ...(estimate.n_pictures ? [[t("estimate.pictures"), number(estimate.n_pictures)] as [string, string]] : []),
          [t("estimate.calls"), range(estimate.calls, whole)],
          [t("estimate.tokens"), range({ low: estimate.input_tokens.low + estimate.output_tokens.low, likely: 0, high: estimate.input_tokens.high + estimate.output_tokens.high }, whole)],
        ]}
      />
      {estimate.n_unchanged > 0 && <p>{t("added.unchanged", { n: estimate.n_unchanged })}</p>}
      {estimate.n_unreadable > 0 && <p>{t("estimate.unreadable", { n: estimate.n_unreadable })}</p>}
      <p class="small">{estimate.basis}</p>
    </>
  );
}

// Uploads

function UploadList() {
  const here = uploads.value.filter((other) => other.workspace === route.value.workspace);
  return (
    <>
      {interrupted.value > 0 && (
        <div class="notice interrupted" role="status">
          <p>{t("upload.interrupted", { n: interrupted.value })}</p>
          <button onClick={dismissInterrupted}>{t("close")}</button>
        </div>
      )}
      {here.map((one) => (
        <UploadCard key={one.id} upload={one} />
      ))}
    </>
  );
}

function UploadCard({ upload: { id, n_files, bytes: total, sent, state, result, problem } }: { upload: Upload }) {
  useEffect(() => {
    if (state === "done") announce(counted(result));
  }, [state]);
  const name = t("upload.files", { n: n_files });
  return (
    <section class="card" aria-label={name}>
      <h2>{name}</h2>
      {state === "sending" && <progress max={total || 1} value={sent} aria-label={name} />}
      <p class="small">
        {t(`upload.${state}`, { sent: bytes(sent), total: bytes(total) })} {state !== "sending" && counted(result)}
      </p>
      {result.unreadable.length > 0 && <Failures rows={result.unreadable} title={t("upload.unreadable", { n: result.unreadable.length })} />}
      {problem && <ProblemNotice problem={problem} retry={() => continueUpload(id)} />}
      <p class="actions">
        <button onClick={() => dismissUpload(id)}>{t(state === "sending" ? "cancel" : "close")}</button>
      </p>
    </section>
  );
}

/** What became of documents, in one sentence. */
function counted({ added, updated, unchanged }: Added): string {
  const parts: [Key, string[]][] = [
    ["added.new", added],
    ["added.replaced", updated],
    ["added.unchanged", unchanged],
  ];
  return parts
    .filter(([, ids]) => ids.length)
    .map(([key, ids]) => t(key, { n: ids.length }))
    .join(" ");
}
