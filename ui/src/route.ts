// Routes: the address after "#" says what is shown, so that every view can be linked, reloaded and gone back to.
//
//   #/workspaces/WORKSPACE/PAGE/SUBJECT?name=value

import { signal } from "@preact/signals";

export interface Route {
  workspace: string;
  page: string;
  subject: string;
  params: URLSearchParams;
}

export const route = signal<Route>(parse(location.hash));

addEventListener("hashchange", () => (route.value = parse(location.hash)));

function parse(hash: string): Route {
  const [path = "", query = ""] = split(hash.replace(/^#\/?/, ""), "?");
  const parts = path.split("/");
  const [workspace = "", page = "", ...rest] = parts[0] === "workspaces" ? parts.slice(1) : [];
  return {
    workspace: decode(workspace) || "",
    page: decode(page) || "ask",
    subject: rest.map(decode).join("/"), // an id may have slashes, written as they are or as %2F
    params: new URLSearchParams(query),
  };
}

/** Return the address of a view in a workspace, for a link. */
export function href(page: string, subject = "", params: Record<string, string | number | string[] | undefined> = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params))
    for (const part of Array.isArray(value) ? value : [value]) if (part !== undefined && part !== "") query.append(name, String(part));
  const path = ["#", "workspaces", encodeURIComponent(route.value.workspace), page];
  if (subject) path.push(encodeURIComponent(subject));
  const tail = query.toString();
  return path.join("/") + (tail ? `?${tail}` : "");
}

/** Show another view; with `replace`, the browser's way back leaves the present one out. */
export function go(address: string, replace = false): void {
  if (replace) {
    history.replaceState(null, "", address);
    route.value = parse(address);
  } else location.hash = address.slice(1);
}

function split(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
