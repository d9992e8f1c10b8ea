// Work: uploads and jobs of the workspace. They go on, and are shown again, whatever view is open.

import { signal } from "@preact/signals";
import { Problem, get, isOnline, post, problemOf, request, workspaceUrl } from "./api";
import { asProblem } from "./parts";
import { route } from "./route";
import type { Added, Estimate, Job, Range } from "./types";

const MAX_FILES = 200; // of one request
const MAX_BYTES = 16_000_000; // of one request, unless a single file is larger
const RETRY_MS = 5_000; // until a stream that was refused is asked for again

/** A file to be added; its name is its path from the folder that was chosen. */
export interface NamedFile {
  name: string;
  file: Blob;
}

/** Files that were added together, and how far they are. `result` sums up what the server said. */
export interface Upload {
  id: string;
  workspace: string;
  n_files: number;
  bytes: number;
  sent: number;
  state: "sending" | "done" | "failed" | "cancelled";
  result: Added;
  problem?: Problem;
}

export const uploads = signal<Upload[]>([]);
/** The jobs of the workspace that have not ended, and those that ended while this page was open. */
export const jobs = signal<Job[]>([]);
/** Counts the changes of the documents, so that a list of them knows when to load again. */
export const changes = signal(0);

const files = new Map<string, NamedFile[]>(); // of an upload, those that the server does not have yet
const requests = new Map<string, XMLHttpRequest>();
let followed = ""; // the stream that `jobs` come from

/** Send files to the workspace that is shown; `uploads` tells how far they are. */
export function upload(chosen: NamedFile[]): void {
  const id = randomName();
  const bytes = chosen.reduce((sum, { file }) => sum + file.size, 0);
  const result: Added = { job: null, added: [], updated: [], unchanged: [], unreadable: [] };
  files.set(id, chosen);
  uploads.value = [...uploads.value, { id, workspace: route.value.workspace, n_files: chosen.length, bytes, sent: 0, state: "sending", result }];
  void sendAll(id);
}

/** Go on with an upload that failed: what the server has already is not sent again. */
export function continueUpload(id: string): void {
  change(id, { state: "sending", problem: undefined });
  void sendAll(id);
}

/** End an upload, or take one that has ended off the page. */
export function dismissUpload(id: string): void {
  const isSending = uploads.value.some((other) => other.id === id && other.state === "sending");
  files.delete(id);
  requests.get(id)?.abort();
  if (isSending) change(id, { state: "cancelled" });
  else uploads.value = uploads.value.filter((other) => other.id !== id);
  remember();
}

async function sendAll(id: string): Promise<void> {
  remember();
  const { workspace, sent } = uploads.value.find((other) => other.id === id)!;
  let before = sent;
  try {
    for (let batch = firstBatch(files.get(id) ?? []); batch.length; batch = firstBatch(files.get(id) ?? [])) {
      const size = batch.reduce((sum, { file }) => sum + file.size, 0);
      const result = await sendBatch(id, workspace, batch, (part) => change(id, { sent: before + Math.round(part * size) }));
      before += size;
      if (!files.has(id)) return;
      files.set(id, files.get(id)!.slice(batch.length));
      const known = uploads.value.find((other) => other.id === id)!.result;
      change(id, { sent: before, result: sum(known, result) });
      if (workspace === route.value.workspace) {
        if (result.job) watch(result.job);
        changed();
      }
    }
    if (files.has(id)) change(id, { state: "done" });
    files.delete(id);
  } catch (error) {
    if (files.has(id)) change(id, { sent: before, state: "failed", problem: asProblem(error) });
  }
  remember();
}

/** Return the files at the beginning of a list that are sent in one request. */
function firstBatch(chosen: NamedFile[]): NamedFile[] {
  const batch: NamedFile[] = [];
  let bytes = 0;
  for (const file of chosen) {
    if (batch.length && (batch.length === MAX_FILES || bytes + file.file.size > MAX_BYTES)) break;
    batch.push(file);
    bytes += file.file.size;
  }
  return batch;
}

/** Return what a model would take to read these files; nothing is added. */
export async function estimate(chosen: NamedFile[], signal: AbortSignal): Promise<Estimate> {
  let sum: Estimate | undefined;
  for (let rest = chosen; rest.length; ) {
    const batch = firstBatch(rest);
    const part = await request<Estimate>("POST", workspaceUrl("/documents/estimate"), formOf(batch), { signal });
    sum = sum ? plus(sum, part) : part;
    rest = rest.slice(batch.length);
  }
  return sum!;
}

const range = (a: Range, b: Range) => ({ low: a.low + b.low, likely: a.likely + b.likely, high: a.high + b.high });

/** Return what reading and describing pictures would cost; null where a price is unknown. */
export function wholeCost({ cost, n_pictures, picture_cost }: Estimate): Range | null {
  return n_pictures ? cost && picture_cost && range(cost, picture_cost) : cost;
}

function plus(first: Estimate, second: Estimate): Estimate {
  return {
    ...first,
    n_documents: first.n_documents + second.n_documents,
    n_unchanged: first.n_unchanged + second.n_unchanged,
    n_unreadable: first.n_unreadable + second.n_unreadable,
    n_chunks: first.n_chunks + second.n_chunks,
    n_cached: first.n_cached + second.n_cached,
    calls: range(first.calls, second.calls),
    input_tokens: range(first.input_tokens, second.input_tokens),
    output_tokens: range(first.output_tokens, second.output_tokens),
    seconds: range(first.seconds, second.seconds),
    cost: first.cost && second.cost && range(first.cost, second.cost),
    n_pictures: first.n_pictures + second.n_pictures,
    picture_cost: first.picture_cost && second.picture_cost ? range(first.picture_cost, second.picture_cost) : (first.picture_cost ?? second.picture_cost),
  };
}

function formOf(chosen: NamedFile[]): FormData {
  const form = new FormData();
  for (const { name, file } of chosen) form.append("files", file, name);
  return form;
}

// Only XMLHttpRequest tells how many bytes have been sent.
function sendBatch(id: string, workspace: string, batch: NamedFile[], onProgress: (part: number) => void): Promise<Added> {
  return new Promise((resolve, reject) => {
    const call = new XMLHttpRequest();
    requests.set(id, call);
    call.upload.onprogress = (event) => event.total && onProgress(event.loaded / event.total);
    call.onload = () => {
      isOnline.value = true;
      if (call.status < 300) resolve(JSON.parse(call.responseText) as Added);
      else reject(problemOf(call.status, call.responseText));
    };
    call.onerror = () => {
      isOnline.value = false;
      reject(new Problem(0, "offline"));
    };
    call.onabort = () => reject(new Problem(0, "offline"));
    call.open("POST", `api/v1/workspaces/${encodeURIComponent(workspace)}/documents`);
    call.setRequestHeader("idempotency-key", `${id}-${files.get(id)!.length}`); // a batch that is sent again is added once
    call.send(formOf(batch));
  });
}

function change(id: string, values: Partial<Upload>): void {
  uploads.value = uploads.value.map((other) => (other.id === id ? { ...other, ...values } : other));
}

function sum(first: Added, second: Added): Added {
  return {
    job: second.job,
    added: [...first.added, ...second.added],
    updated: [...first.updated, ...second.updated],
    unchanged: [...first.unchanged, ...second.unchanged],
    unreadable: [...first.unreadable, ...second.unreadable],
  };
}

function randomName(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// A reload ends an upload: the files cannot be read again without the person. The page then says how many are missing.

/** How many files an upload had left when the page was reloaded. */
export const interrupted = signal(Number(sessionStorage.getItem("unsent") ?? 0));

export function dismissInterrupted(): void {
  interrupted.value = 0;
  remember();
}

function remember(): void {
  const unsent = [...files.values()].reduce((n, left) => n + left.length, interrupted.value);
  sessionStorage.setItem("unsent", String(unsent));
}

addEventListener("beforeunload", (event) => {
  if (uploads.value.some((other) => other.state === "sending")) event.preventDefault();
});

// Jobs. One stream of the server tells what changes in the workspace, whoever changes it, while a view that needs it is open.

interface WorkspaceState {
  revision: number;
  queue: Record<string, number>;
  jobs: Job[];
}

/** Follow the workspace that is shown; returns how to end that. A page in the background does not follow: a browser has few connections. */
export function followWorkspace(): () => void {
  const url = workspaceUrl("/events");
  let source: EventSource | undefined;
  let timer = 0;
  let known = "";
  const start = () => {
    clearTimeout(timer);
    source?.close();
    source = undefined;
    if (document.hidden) return;
    let nFailures = 0;
    source = new EventSource(url);
    source.onopen = () => ((isOnline.value = true), (nFailures = 0));
    source.onerror = () => {
      if (++nFailures > 1) isOnline.value = false; // a stream ends now and then: the browser comes back by itself
      if (source?.readyState === EventSource.CLOSED) timer = window.setTimeout(start, RETRY_MS);
    };
    on("state", ({ revision, queue, jobs: unfinished }: WorkspaceState) => {
      const state = JSON.stringify([revision, queue]);
      if (known && state !== known) changes.value++;
      known = state;
      void replaceJobs(url, unfinished);
    });
    on("index", () => changes.value++);
    on("derivation", () => changes.value++);
    on("job", watch);
    on("problem", () => source?.close());
  };
  const on = <T>(name: string, use: (value: T) => void) => source!.addEventListener(name, (event) => use(JSON.parse((event as MessageEvent).data) as T));
  if (url !== followed) jobs.value = [];
  followed = url;
  document.addEventListener("visibilitychange", start);
  start();
  return () => {
    document.removeEventListener("visibilitychange", start);
    clearTimeout(timer);
    source?.close();
  };
}

/** Show the jobs that have not ended, and how those ended that were shown as running. */
async function replaceJobs(url: string, unfinished: Job[]): Promise<void> {
  const others = jobs.value.filter((job) => !unfinished.some((other) => other.id === job.id));
  const ended = await Promise.all(others.map((job) => (isActive(job) ? get<Job>(`/jobs/${job.id}`).catch(() => undefined) : job)));
  if (url === followed) jobs.value = sorted([...unfinished, ...ended.filter((job) => job !== undefined)]);
}

/** Show a job, or how far it is now. */
export function watch(job: Job): void {
  const before = jobs.value.find((other) => other.id === job.id);
  jobs.value = sorted([job, ...jobs.value.filter((other) => other.id !== job.id)]);
  if (before && JSON.stringify([before.status, before.documents]) !== JSON.stringify([job.status, job.documents])) changes.value++;
}

function sorted(list: Job[]): Job[] {
  return list.sort((a, b) => (a.created_at < b.created_at ? 1 : -1));
}

/** Whether a job is not at its end. */
export function isActive(job: Job): boolean {
  return job.status === "waiting" || job.status === "running";
}

/** Take a finished job off the page. */
export function dismissJob(id: string): void {
  jobs.value = jobs.value.filter((job) => job.id !== id);
}

export async function cancelJob(id: string): Promise<void> {
  watch(await post<Job>(`/jobs/${id}/cancel`));
  changed();
}

/** Work through the queue: for example after a budget was raised. */
export async function resumeJobs(): Promise<void> {
  watch(await post<Job>("/resume"));
}

/** Read failed documents again, and the failed chunks of partly read ones. */
export async function retryDocuments(ids: string[]): Promise<void> {
  watch(await post<Job>("/documents/retry", { documents: ids }));
  changed();
}

export async function removeDocuments(ids: string[]): Promise<void> {
  try {
    for (const id of ids) await request("DELETE", documentUrl(id));
  } finally {
    changed();
  }
}

export async function addText(text: { text: string; title: string; id?: string }): Promise<Added> {
  const added = await post<Added>("/texts", text);
  if (added.job) watch(added.job);
  changed();
  return added;
}

/** Return the address of a document for requests. */
export function documentUrl(id: string): string {
  return workspaceUrl("/documents/") + encodeURIComponent(id).replaceAll("%2F", "/");
}

/** Say that documents changed; the stream tells it to other pages. */
export function changed(): void {
  changes.value++;
}
