// API: requests to the server, its errors as problems, and its streams of events.

import { signal } from "@preact/signals";
import { route } from "./route";

/** What went wrong, as the server says it (RFC 9457), or as the browser does where no reply came. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly remedy = "",
    readonly requestId = "",
    readonly missing: string[] = [],
  ) {
    super(message);
  }
}

/** Whether the last request reached the server. */
const MAX_QUOTE = 2000; // characters in an address
export const isOnline = signal(true);
/** Whether the server asks for a key. */
export const needsKey = signal(false);

/** Return the address of an operation of the workspace that is shown; `path` begins behind the workspace. */
export function workspaceUrl(path: string): string {
  return `api/v1/workspaces/${encodeURIComponent(route.value.workspace)}${path}`;
}

/** Return the address of the file that a document was read from. */
export function originalUrl(id: string): string {
  return workspaceUrl(`/originals/${encodeURIComponent(id).replaceAll("%2F", "/")}`);
}

/** Return a page of a PDF as the address of a picture in which a quote is marked. Throws a Problem. */
export async function pagePicture(id: string, page: number, quote: string, signal?: AbortSignal): Promise<string> {
  const url = workspaceUrl(`/pages/${encodeURIComponent(id).replaceAll("%2F", "/")}`) + query({ page, quote: quote.slice(0, MAX_QUOTE) });
  return URL.createObjectURL(await (await send("GET", url, undefined, { signal })).blob());
}

/** Send a request and return its JSON reply. Throws a Problem. */
export async function request<T>(method: string, url: string, body?: unknown, init: RequestInit = {}): Promise<T> {
  const response = await send(method, url, body, init);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

/** Return the JSON of an operation of the workspace that only reads. */
export function get<T>(path: string, params: Record<string, unknown> = {}, signal?: AbortSignal): Promise<T> {
  return request<T>("GET", workspaceUrl(path) + query(params), undefined, { signal });
}

/** Send JSON to an operation of the workspace and return its reply. */
export function post<T>(path: string, body: unknown = {}, init: RequestInit = {}): Promise<T> {
  return request<T>("POST", workspaceUrl(path), body, init);
}

/** Send a request and return the response, whatever it holds. Throws a Problem. */
export async function send(method: string, url: string, body?: unknown, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  const isRaw = body instanceof Blob || body instanceof FormData;
  if (body !== undefined && !isRaw) headers.set("content-type", "application/json");
  let response: Response;
  try {
    response = await fetch(url, { ...init, method, headers, body: isRaw || body === undefined ? (body as BodyInit) : JSON.stringify(body) });
  } catch (error) {
    if ((error as Error).name === "AbortError") throw error;
    isOnline.value = false;
    throw new Problem(0, "offline");
  }
  isOnline.value = true;
  if (!response.ok) throw problemOf(response.status, await response.text());
  return response;
}

/** Return the problem that the reply to a request describes. */
export function problemOf(status: number, text: string): Problem {
  if (status === 401) needsKey.value = true;
  try {
    return problemFrom(JSON.parse(text));
  } catch {
    return new Problem(status, text.slice(0, 500) || `HTTP ${status}`);
  }
}

interface ProblemReply {
  status: number;
  detail: string;
  remedy?: string;
  request_id?: string;
  missing?: string[];
  errors?: { field: string; detail: string }[];
}

/** Return the problem that a reply or an event of the server describes. */
export function problemFrom(reply: ProblemReply): Problem {
  const fields = (reply.errors ?? []).map((error) => `${error.field}: ${error.detail}`);
  return new Problem(reply.status, [reply.detail, ...fields].join(" "), reply.remedy, reply.request_id, reply.missing);
}

/** Return a query string; lists repeat their name, and empty values are left out. */
export function query(params: Record<string, unknown>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(params))
    for (const part of Array.isArray(value) ? value : [value])
      if (part !== undefined && part !== null && part !== "") search.append(name, String(part));
  const text = search.toString();
  return text && `?${text}`;
}

/** A server-sent event: its name and its data. */
export interface StreamEvent {
  event: string;
  data: unknown;
}

/** Send JSON and yield the events of the reply. Throws a Problem; the event `problem` is thrown as one. */
export async function* stream(path: string, body: unknown, signal: AbortSignal): AsyncGenerator<StreamEvent> {
  const response = await send("POST", workspaceUrl(path), body, { signal });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { value, done } = await reader.read().catch((error: Error) => {
      if (error.name === "AbortError") throw error;
      isOnline.value = false;
      throw new Problem(0, "cut");
    });
    buffer += value ?? "";
    const blocks = buffer.split("\n\n");
    buffer = done ? "" : blocks.pop()!;
    for (const block of blocks) {
      const event = parseEvent(block);
      if (event?.event === "problem") throw problemFrom(event.data as ProblemReply);
      if (event) yield event;
    }
    if (done) return;
  }
}

function parseEvent(block: string): StreamEvent | undefined {
  let event = "message";
  const data: string[] = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) event = line.slice(6).trim();
    if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
  }
  return data.length ? { event, data: JSON.parse(data.join("\n")) } : undefined;
}
