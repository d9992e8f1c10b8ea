// Session: who uses the page, and what they may do. A key that only reads sees no buttons that write.

import { computed, signal } from "@preact/signals";
import { request } from "./api";
import type { Session } from "./types";

export const session = signal<Session | undefined>(undefined);
export const mayWrite = computed(() => session.value !== undefined && session.value.permission !== "read");
export const isAdmin = computed(() => session.value?.permission === "admin");

/** The workspaces that the key opens. */
export const workspaces = signal<string[]>([]);

/** Ask the server who uses the page and which workspaces there are; the caller shows the page by setting `session`. */
export async function loadSession(): Promise<Session> {
  const who = await request<Session>("GET", "api/v1/session");
  workspaces.value = who.opens;
  return who;
}
