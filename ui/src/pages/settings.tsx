// Settings and usage: what is in force, what models cost, what is derived, and how other programs ask this workspace.

import { useEffect, useState } from "preact/hooks";
import { isAdmin, loadSession, mayWrite, session, workspaces } from "../session";
import { get, post, query, request, workspaceUrl, type Problem } from "../api";
import { JobList } from "../jobs";
import { Action, Await, Confirm, Facts, ProblemNotice, Tabs, Waiting, announce, asProblem, copy, say, useLoaded } from "../parts";
import { go, route } from "../route";
import { bytes, moment, money, number, t, type Key } from "../words";
import { changes, followWorkspace, watch } from "../work";
import type { Derivation, IndexStatus, Job, Setting, UsageRow } from "../types";

export function Settings() {
  const { workspace } = route.value;
  const status = useLoaded((abort) => get<IndexStatus>("/status", {}, abort), `${workspace} ${changes.value}`);
  useEffect(followWorkspace, [workspace]);
  return (
    <div class="settings">
      <h1>{t("settings.heading")}</h1>
      <JobList currency={status.value?.currency} />
      <Await from={status}>
        {(value) => (
          <>
            <Overview status={value} />
            <Spending currency={value.currency} />
            <Derivations derivations={value.derivations} />
          </>
        )}
      </Await>
      {isAdmin.value && <Checks />}
      {isAdmin.value && <SettingsInForce />}
      {isAdmin.value && <Workspaces />}
      <Access />
      <Clients />
    </div>
  );
}

function Overview({ status }: { status: IndexStatus }) {
  const roles = new Map<string, string[]>();
  for (const [role, model] of status.models) roles.set(model, [...(roles.get(model) ?? []), role]);
  return (
    <section aria-labelledby="overview">
      <h2 id="overview">{t("overview.title", { name: route.value.workspace })}</h2>
      <Facts
        rows={[
          [t("nav.documents"), number(status.n_documents)],
          [t("document.chunks"), number(status.n_chunks)],
          [t("nav.entities"), number(status.n_entities)],
          [t("overview.relations"), number(status.n_relations)],
          [t("overview.vectors"), number(status.n_vectors)],
          [t("overview.size"), bytes(status.n_bytes)],
          [t("overview.revision"), number(status.revision)],
        ]}
      />
      <Facts
        rows={[
          [t("overview.extractor"), / \((.*)\)$/.exec(status.extractor)?.[1] ?? status.extractor],
          [t("overview.embedder"), status.embedder || "–"],
          ...[...roles].map(([model, names]): [string, string] => [names.join(", "), model]),
        ]}
      />
      {!roles.size && <p class="small">{t("overview.noModel")}</p>}
      {status.other_embedder && <p class="notice">{t("overview.otherEmbedder", { name: status.other_embedder })}</p>}
    </section>
  );
}

// Spending

const PERIODS = [7, 30, 0] as const; // days; 0: all
type Grouping = "day" | "stage" | "model";

function Spending({ currency }: { currency: string }) {
  const [days, setDays] = useState<number>(30);
  const [by, setBy] = useState<Grouping>("day");
  const since = days ? new Date(Date.now() - (days - 1) * 86_400_000).toISOString().slice(0, 10) : "";
  const rows = useLoaded((abort) => get<UsageRow[]>("/usage", { since, subjects: false }, abort), `${since} ${changes.value}`);
  return (
    <section aria-labelledby="spending">
      <h2 id="spending">{t("spending.title")}</h2>
      <label class="field narrow">
        {t("spending.period")}
        <select value={String(days)} onChange={(event) => setDays(Number(event.currentTarget.value))}>
          {PERIODS.map((period) => (
            <option key={period} value={String(period)}>
              {period ? t("spending.days", { n: period }) : t("spending.all")}
            </option>
          ))}
        </select>
      </label>
      <Tabs
        label={t("spending.by")}
        chosen={by}
        choose={setBy}
        tabs={[
          ["day", t("spending.day")],
          ["stage", t("spending.stage")],
          ["model", t("spending.model")],
        ]}
      />
      <div role="tabpanel">
        <Await from={rows}>{(all) => (all.length ? <SpendingTable rows={all} by={by} currency={currency} /> : <p class="small">{t("spending.none")}</p>)}</Await>
      </div>
    </section>
  );
}

interface Sum {
  name: string;
  n_calls: number;
  tokens: number;
  cost: number;
}

function sums(rows: UsageRow[], by: Grouping): Sum[] {
  const byName = new Map<string, Sum>();
  for (const row of rows) {
    const sum = byName.get(row[by]) ?? { name: row[by], n_calls: 0, tokens: 0, cost: 0 };
    byName.set(row[by], { ...sum, n_calls: sum.n_calls + row.n_calls, tokens: sum.tokens + row.tokens.input + row.tokens.output, cost: sum.cost + row.cost });
  }
  const all = [...byName.values()];
  return by === "day" ? all.sort((a, b) => (a.name < b.name ? 1 : -1)) : all.sort((a, b) => b.cost - a.cost || b.tokens - a.tokens || (a.name < b.name ? -1 : 1));
}

function SpendingTable({ rows, by, currency }: { rows: UsageRow[]; by: Grouping; currency: string }) {
  const parts = sums(rows, by);
  const [whole] = sums(rows.map((row) => ({ ...row, [by]: "" })), by);
  const measure: "cost" | "tokens" = whole!.cost ? "cost" : "tokens"; // models without a price are compared by tokens
  const largest = Math.max(...parts.map((part) => part[measure]), 1);
  return (
    <div class="wide" tabIndex={0} role="region" aria-label={t("spending.title")}>
      <table class="spending">
        <thead>
          <tr>
            <th scope="col">{t(`spending.${by}`)}</th>
            <th scope="col">{t("spending.calls")}</th>
            <th scope="col">{t("estimate.tokens")}</th>
            <th scope="col">{t("estimate.cost")}</th>
          </tr>
        </thead>
        <tbody>
          {parts.map((part) => (
            <tr key={part.name}>
              <th scope="row">{part.name}</th>
              <td>{number(part.n_calls)}</td>
              <td>{number(part.tokens)}</td>
              <td>
                {money(part.cost, currency)}
                <span class="bar" aria-hidden="true" style={{ width: `${(100 * part[measure]) / largest}%` }} />
              </td>
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">{t("spending.total")}</th>
            <td>{number(whole!.n_calls)}</td>
            <td>{number(whole!.tokens)}</td>
            <td>{money(whole!.cost, currency)}</td>
          </tr>
        </tfoot>
      </table>
    </div>
  );
}

// Derivations

function Derivations({ derivations }: { derivations: Derivation[] }) {
  const isStale = derivations.some(({ freshness }) => freshness === "stale");
  const refresh = async (names: string[]) => {
    watch(await post<Job>("/refresh", { names }));
  };
  const [dropped, setDropped] = useState("");
  return (
    <section aria-labelledby="derivations">
      <h2 id="derivations">{t("derivations.title")}</h2>
      <p class="small">{t("derivations.hint")}</p>
      <ul class="rows">
        {derivations.map((derivation) => (
          <li key={derivation.name}>
            <div class="row-name">
              <strong>{derivation.name}</strong> <span class={`badge ${derivation.freshness}`}>{t(`fresh.${derivation.freshness}`)}</span>
              <p class="small">{[derivation.contents, derivation.n_bytes > 0 && bytes(derivation.n_bytes), costOf(derivation)].filter(Boolean).join(" · ")}</p>
              {derivation.unavailable_reason && <p class="error">{derivation.unavailable_reason}</p>}
            </div>
            <span class="row-actions">
              {mayWrite.value && derivation.freshness !== "fresh" && !derivation.unavailable_reason && (
                <Action run={() => refresh([derivation.name])} label={t("derivations.refreshOne", { name: derivation.name })} text={t(derivation.freshness === "stale" ? "derivations.refresh" : "derivations.compute")} />
              )}
              {isAdmin.value && !ALWAYS.includes(derivation.name) && derivation.freshness !== "missing" && (
                <button class="quiet" aria-label={t("derivations.dropOne", { name: derivation.name })} onClick={() => setDropped(derivation.name)}>
                  {t("derivations.drop")}
                </button>
              )}
            </span>
          </li>
        ))}
      </ul>
      {mayWrite.value && isStale && (
        <p class="actions">
          <Action run={() => refresh([])} text={t("derivations.refreshAll")} />
        </p>
      )}
      {dropped && (
        <Confirm title={t("derivations.dropOne", { name: dropped })} action={t("derivations.drop")} close={() => setDropped("")} run={() => drop(dropped)}>
          <p>{t("derivations.dropHint")}</p>
        </Confirm>
      )}
    </section>
  );
}

const ALWAYS = ["summaries", "vectors", "topology"]; // every index keeps them

async function drop(name: string): Promise<void> {
  await request("DELETE", workspaceUrl(`/derivations/${encodeURIComponent(name)}`));
  changes.value++;
}

/** What a refresh takes; "" where it takes no model. */
function costOf({ freshness, cost }: Derivation): string {
  if (freshness === "fresh" || (!cost.n_calls && !cost.n_texts)) return "";
  return [
    cost.n_calls > 0 && t("derivations.calls", { n: cost.n_calls }),
    cost.n_texts > 0 && t("derivations.texts", { n: cost.n_texts }),
    cost.n_calls > 0 && cost.money !== null && money(cost.money, cost.currency),
  ]
    .filter(Boolean)
    .join(", ");
}

// Checks

function Checks() {
  const [differences, setDifferences] = useState<string[]>();
  const [problem, setProblem] = useState<Problem>();
  const [isBusy, setBusy] = useState(false);
  const check = (filesOnly: boolean) => {
    setBusy(true), setDifferences(undefined), setProblem(undefined);
    request<{ differences: string[] }>("POST", workspaceUrl("/verify") + query({ files_only: filesOnly })).then(
      (result) => (setBusy(false), setDifferences(result.differences), announce(result.differences.join(" ") || t("checks.sound"))),
      (error) => (setBusy(false), setProblem(asProblem(error))),
    );
  };
  return (
    <section aria-labelledby="checks">
      <h2 id="checks">{t("checks.title")}</h2>
      <p class="small">{t("checks.hint")}</p>
      <p class="actions">
        <button disabled={isBusy} onClick={() => check(false)}>
          {t("checks.all")}
        </button>
        <button disabled={isBusy} onClick={() => check(true)}>
          {t("checks.files")}
        </button>
      </p>
      {isBusy && <Waiting text={t("checks.waiting")} />}
      {problem && <ProblemNotice problem={problem} />}
      {differences && (
        <div class={differences.length ? "notice problem" : "notice"} id="check-result">
          {differences.length ? differences.map((line) => <p key={line}>{line}</p>) : <p>{t("checks.sound")}</p>}
        </div>
      )}
    </section>
  );
}

// Settings

function SettingsInForce() {
  const [words, setWords] = useState("");
  const [isWhole, setWhole] = useState(false);
  const loaded = useLoaded((abort) => get<Setting[]>("/settings", {}, abort), route.value.workspace);
  return (
    <section aria-labelledby="settings">
      <h2 id="settings">{t("settings.title")}</h2>
      <p class="small">{t("settings.hint")}</p>
      <label class="field narrow">
        {t("documents.search")}
        <input type="search" value={words} onInput={(event) => setWords(event.currentTarget.value)} />
      </label>
      <label class="check">
        <input type="checkbox" checked={isWhole} onChange={(event) => setWhole(event.currentTarget.checked)} /> {t("settings.defaults")}
      </label>
      <Await from={loaded}>{(all) => <SettingTable settings={all.filter((setting) => isShown(setting, words.trim().toLowerCase(), isWhole))} />}</Await>
    </section>
  );
}

function isShown({ name, description, origin }: Setting, words: string, isWhole: boolean): boolean {
  if (words) return `${name} ${description}`.toLowerCase().includes(words);
  return isWhole || origin !== "default";
}

function SettingTable({ settings }: { settings: Setting[] }) {
  if (!settings.length) return <p class="small">{t("settings.none")}</p>;
  return (
    <ul class="rows setting-list">
      {settings.map(({ name, value, origin, description, allowed }) => (
        <li key={name}>
          <div class="row-name">
            <strong>{name}</strong> = <code>{shownValue(value)}</code> <span class="badge">{origin}</span>
            <p class="small">
              {description} <em>{allowed}</em>
            </p>
          </div>
        </li>
      ))}
    </ul>
  );
}

function shownValue(value: unknown): string {
  return value === null ? "–" : typeof value === "string" ? value : JSON.stringify(value);
}

// Workspaces

function Workspaces() {
  const [problem, setProblem] = useState<Problem>();
  const [deleted, setDeleted] = useState("");
  const create = (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const name = String(new FormData(form).get("name")).trim();
    request("POST", "api/v1/workspaces", { name })
      .then(loadSession)
      .then(
        () => (setProblem(undefined), form.reset(), say(t("workspaces.created", { name }))),
        (error) => setProblem(asProblem(error)),
      );
  };
  return (
    <section aria-labelledby="workspaces">
      <h2 id="workspaces">{t("workspaces.title")}</h2>
      <ul class="rows">
        {workspaces.value.map((name) => (
          <li key={name}>
            <span class="row-name">
              <a href={`#/workspaces/${encodeURIComponent(name)}/settings`} aria-current={name === route.value.workspace ? "true" : undefined}>
                {name}
              </a>
            </span>
            <button class="quiet" aria-label={t("workspaces.deleteOne", { name })} onClick={() => setDeleted(name)}>
              {t("workspaces.delete")}
            </button>
          </li>
        ))}
      </ul>
      <form class="actions" onSubmit={create}>
        <label class="field narrow">
          {t("workspaces.name")}
          <input name="name" required pattern="[a-z0-9_\-]{1,64}" title={t("workspaces.nameHint")} />
        </label>
        <button>{t("workspaces.create")}</button>
      </form>
      {problem && <ProblemNotice problem={problem} />}
      {deleted && <Deletion name={deleted} close={() => setDeleted("")} />}
    </section>
  );
}

function Deletion({ name, close }: { name: string; close: () => void }) {
  const run = async () => {
    await request("DELETE", `api/v1/workspaces/${encodeURIComponent(name)}`);
    await loadSession();
    say(t("workspaces.deleted", { name }));
    if (name === route.value.workspace) go(`#/workspaces/${encodeURIComponent(workspaces.value[0] ?? "default")}/settings`, true);
  };
  return (
    <Confirm title={t("workspaces.deleteOne", { name })} action={t("workspaces.delete")} close={close} run={run}>
      <p>{t("workspaces.deleteHint", { name })}</p>
    </Confirm>
  );
}

// Access

/** Whose key this is, and how others get one: keys are made where the server runs, never over HTTP. */
function Access() {
  const { name, permission, expires } = session.value!;
  return (
    <section aria-labelledby="access">
      <h2 id="access">{t("access.title")}</h2>
      <Facts
        rows={[
          [t("access.name"), name],
          [t("access.permission"), t(`access.${permission}`)],
          ...(expires ? [[t("access.expires"), moment(expires)] as [string, string]] : []),
        ]}
      />
      {isAdmin.value && (
        <>
          <p class="small">{t("access.hint")}</p>
          <pre class="wide" tabIndex={0}>
            quipu keys create alice --permission read
          </pre>
        </>
      )}
    </section>
  );
}

// Clients

type Client = "curl" | "openai" | "ollama" | "mcp";

function Clients() {
  const [client, setClient] = useState<Client>("curl");
  const text = snippet(client);
  return (
    <section aria-labelledby="clients">
      <h2 id="clients">{t("clients.title")}</h2>
      <Tabs
        label={t("clients.title")}
        chosen={client}
        choose={setClient}
        tabs={[
          ["curl", "curl"],
          ["openai", "OpenAI"],
          ["ollama", "Ollama"],
          ["mcp", "MCP"],
        ]}
      />
      <div role="tabpanel">
        <p class="small">
          {t(`clients.${client}` as Key)} {client === "curl" && <a href="api/v1/docs">{t("clients.reference")}</a>}
        </p>
        <pre class="wide" tabIndex={0}>
          {text}
        </pre>
        <button onClick={() => void copy(text)}>{t("clients.copy")}</button>
      </div>
    </section>
  );
}

/** Return how a program asks this workspace; the key stands as a name, because the page does not know it. */
function snippet(client: Client): string {
  const base = location.href.split(/[?#]/)[0]!.replace(/\/$/, "");
  const { workspace } = route.value;
  const model = workspace === "default" ? "quipu" : `${workspace}/quipu`;
  const hasKey = session.value?.name !== "this machine";
  if (client === "openai")
    return `from openai import OpenAI

client = OpenAI(base_url="${base}/v1", api_key="${hasKey ? "quipu_…" : "none"}")
reply = client.chat.completions.create(model="${model}", messages=[{"role": "user", "content": "…"}])
print(reply.choices[0].message.content)`;
  if (client === "mcp") {
    const url = workspace === "default" ? `${base}/mcp` : `${base}/mcp/${workspace}`;
    return JSON.stringify({ mcpServers: { quipu: { type: "http", url, ...(hasKey && { headers: { Authorization: "Bearer quipu_…" } }) } } }, null, 2);
  }
  if (client === "ollama")
    return `curl ${base}/api/chat \\
${hasKey ? "  -H 'authorization: Bearer quipu_…' \\\n" : ""}  -d '{"model": "${model}", "stream": false, "messages": [{"role": "user", "content": "…"}]}'`;
  return `curl ${base}/api/v1/workspaces/${encodeURIComponent(workspace)}/query \\
${hasKey ? "  -H 'authorization: Bearer quipu_…' \\\n" : ""}  -H 'content-type: application/json' \\
  -d '{"question": "…"}'`;
}
