// Work: uploads and jobs of the workspace. They go on, and are shown again, whatever view is open.

import { signal } from "@preact/signals";
import { Problem, get, isOnline, post, problemOf, request, workspaceUrl } from "./api";
import { asProblem } from "./parts";
import { route } from "./route";
import type { Added, Estimate, Job, Range } from "./types";

const MAX_FILES = 200; // of one request
const MAX_BYTES = 16_000_000; // of one request, unless a single file is larger
const POLL_MS = 1_000; // between two looks at jobs that run
const N_JOBS = 30;

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
/** The latest jobs of the workspace: those that are not finished, and those that this page saw at work. */
export const jobs = signal<Job[]>([]);
/** Counts the changes of the documents, so that a list of them knows when to load again. */
export const changes = signal(0);

const files = new Map<string, NamedFile[]>(); // of an upload, those that the server does not have yet
const requests = new Map<string, XMLHttpRequest>();
const watched = new Set<string>(); // jobs that this page saw at work
const tabs = new BroadcastChannel(`quipu ${new URL(".", location.href)}`);
let timer = 0;
let shown = ""; // the workspace of `jobs`

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

function plus(first: Estimate, second: Estimate): Estimate {
  const range = (a: Range, b: Range) => ({ low: a.low + b.low, likely: a.likely + b.likely, high: a.high + b.high });
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

// Jobs. The list is asked again only while a job runs, when another tab changes something, and when the page is shown again.

/** Show a job that this page began. */
export function watch(job: Job): void {
  watched.add(job.id);
  jobs.value = [job, ...jobs.value.filter((other) => other.id !== job.id)];
  plan();
}

/** Look at the jobs of the workspace now, and again while one of them runs. */
export async function lookAtJobs(): Promise<void> {
  const { workspace } = route.value;
  if (workspace !== shown) {
    shown = workspace;
    watched.clear();
    jobs.value = [];
  }
  try {
    const unfinished = await get<Job[]>("/jobs", { unfinished: true, k: N_JOBS });
    if (workspace !== route.value.workspace) return;
    const ended = jobs.value.filter((job) => watched.has(job.id) && !unfinished.some((other) => other.id === job.id));
    const finished = await Promise.all(ended.map((job) => (isActive(job) || job.stopped ? get<Job>(`/jobs/${job.id}`) : job)));
    for (const job of unfinished) watched.add(job.id);
    update([...unfinished, ...finished]);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    if (error.status === 404) jobs.value = [];
  }
  plan();
}

function update(next: Job[]): void {
  const progress = (list: Job[]) => JSON.stringify(list.map((job) => [job.id, job.status, job.documents, job.failed.length]).sort());
  const isNew = progress(next) !== progress(jobs.value);
  jobs.value = next.sort((a, b) => (a.created_at < b.created_at ? 1 : -1));
  if (isNew) changes.value++;
}

function isActive(job: Job): boolean {
  return job.status === "waiting" || job.status === "running";
}

function plan(): void {
  clearTimeout(timer);
  if (jobs.value.some(isActive) && !document.hidden) timer = window.setTimeout(() => void lookAtJobs(), POLL_MS);
}

/** Take a finished job off the page. */
export function dismissJob(id: string): void {
  watched.delete(id);
  jobs.value = jobs.value.filter((job) => job.id !== id);
}

export async function cancelJob(id: string): Promise<void> {
  await post<Job>(`/jobs/${id}/cancel`);
  await lookAtJobs();
  changed();
}

/** Work through the queue: for example after a budget was raised. */
export async function resumeJobs(): Promise<void> {
  watch(await post<Job>("/resume"));
  await lookAtJobs();
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

/** Say that documents changed, here and in other tabs. */
export function changed(): void {
  changes.value++;
  tabs.postMessage(route.value.workspace);
}

tabs.addEventListener("message", (event) => {
  if (event.data !== route.value.workspace) return;
  changes.value++;
  void lookAtJobs();
});
addEventListener("visibilitychange", () => document.hidden || void lookAtJobs());
