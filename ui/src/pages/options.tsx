// Options: what else a question may say: its strategy, the documents it may use, and every option that the server lists.

import { effect, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Problem, request } from "../api";
import { Dialog } from "../parts";
import { go, route } from "../route";
import { number, t } from "../words";
import type { QuestionOption, Strategy } from "../types";

interface StrategyList {
  strategies: Strategy[];
  options: QuestionOption[];
}

const listed = signal<StrategyList>({ strategies: [], options: [] });

/** The strategy that a person chose for every question in this browser; "" for the default of the server. */
export const preferredStrategy = signal(localStorage.getItem("strategy") ?? "");
effect(() => localStorage.setItem("strategy", preferredStrategy.value));

/** Return the strategies of the server with their options, loaded once; none until then. */
export function useStrategies(): Strategy[] {
  useEffect(() => {
    if (!listed.value.strategies.length) requestIdleCallback(loadStrategies); // after what a person waits for
  }, []);
  return listed.value.strategies;
}

function loadStrategies(): void {
  request<StrategyList>("GET", "api/v1/strategies").then((all) => (listed.value = all), () => {});
}

const FILTERS = ["documents", "where", "after", "before", "as_of"] as const;
const OPTION = "o."; // before the field of an option, in an address
const CONDITION = /^\s*([^\s=<>!]+)\s*(?:(>=|<=|!=|=|>|<)|\s(in|contains|exists)(?:\s|$))\s*(.*?)\s*$/;

/** Return the part of a question's body that an address says. Throws a Problem for a condition that cannot be read. */
export function optionsOf(params: URLSearchParams): Record<string, unknown> {
  const body: Record<string, unknown> = {};
  if (params.get("strategy")) body.strategy = params.get("strategy");
  const filter: Record<string, unknown> = {};
  const list = (name: string) => (params.get(name) ?? "").split(/[,;]/).map((part) => part.trim()).filter(Boolean);
  if (list("documents").length) filter.documents = list("documents");
  if (params.get("where")) filter.where = (params.get("where") ?? "").split(";").filter((part) => part.trim()).map(condition);
  for (const name of ["after", "before", "as_of"]) if (params.get(name)) filter[name] = params.get(name);
  if (Object.keys(filter).length) body.filter = filter;
  for (const [name, value] of params) if (name.startsWith(OPTION)) setField(body, name.slice(OPTION.length).split("."), parsed(value));
  return body;
}

function condition(text: string): { field: string; operator: string; value: string } {
  const match = CONDITION.exec(text);
  if (!match) throw new Problem(422, t("options.badCondition", { text: text.trim() }), t("options.whereHint"));
  return { field: match[1]!, operator: match[2] ?? match[3]!, value: match[4]! };
}

function setField(body: Record<string, unknown>, path: string[], value: unknown): void {
  const [first, ...rest] = path as [string, ...string[]];
  if (!rest.length) body[first] = value;
  else setField((body[first] ??= {}) as Record<string, unknown>, rest, value);
}

function parsed(value: string): unknown {
  if (value === "true" || value === "false") return value === "true";
  return value !== "" && !Number.isNaN(Number(value)) ? Number(value) : value;
}

/** Return how many options an address sets besides the strategy. */
export function countOptions(params: URLSearchParams): number {
  return [...params].filter(([name, value]) => value && (name.startsWith(OPTION) || (FILTERS as readonly string[]).includes(name))).length;
}

/** Return the options of an address, to be carried to the next question. */
export function carried(params: URLSearchParams): Record<string, string> {
  return Object.fromEntries([...params].filter(([name]) => name.startsWith(OPTION) || (FILTERS as readonly string[]).includes(name)));
}

/** The drawer with all options. "Use" writes those that differ from their default into the address. */
export function OptionsDrawer({ strategy, close }: { strategy: string; close: () => void }) {
  const { params, page, subject, workspace } = route.value;
  const chosen = useStrategies().find(({ name }) => name === (strategy || listed.value.strategies[0]?.name));
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const next = new URLSearchParams([...params].filter(([name]) => !name.startsWith(OPTION)));
    for (const [name, value] of form) {
      const option = [...listed.value.options, ...(chosen?.options ?? [])].find(({ field }) => OPTION + field === name);
      if (!value || (option && String(option.default) === value)) next.delete(name);
      else next.set(name, String(value));
    }
    if (strategy) next.set("strategy", strategy);
    else next.delete("strategy");
    const place = ["#", "workspaces", encodeURIComponent(workspace), page, ...(subject ? [encodeURIComponent(subject)] : [])].join("/");
    go(`${place}?${next}`, true);
    close();
  };
  return (
    <Dialog title={t("options.title")} close={close} isDrawer>
      <form onSubmit={submit}>
        <fieldset>
          <legend>{t("options.documents")}</legend>
          <TextField name="documents" label={t("options.ids")} hint={t("options.idsHint")} value={params.get("documents") ?? ""} />
          <TextField name="where" label={t("options.where")} hint={t("options.whereHint")} value={params.get("where") ?? ""} />
          <TextField name="after" label={t("options.after")} hint="" value={params.get("after") ?? ""} />
          <TextField name="before" label={t("options.before")} hint="" value={params.get("before") ?? ""} />
          <TextField name="as_of" label={t("options.asOf")} hint={t("options.asOfHint")} value={params.get("as_of") ?? ""} />
        </fieldset>
        {chosen && chosen.options.length > 0 && (
          <fieldset>
            <legend>{t("options.ofStrategy", { name: chosen.name })}</legend>
            <p class="small">{chosen.summary}</p>
            {chosen.options.map((option) => (
              <OptionField key={option.field} option={option} value={params.get(OPTION + option.field)} />
            ))}
          </fieldset>
        )}
        <fieldset>
          <legend>{t("options.ofQuestion")}</legend>
          {listed.value.options.map((option) => (
            <OptionField key={option.field} option={option} value={params.get(OPTION + option.field)} />
          ))}
        </fieldset>
        <div class="actions sticky">
          <button type="button" onClick={close}>
            {t("cancel")}
          </button>
          <button class="primary">{t("options.use")}</button>
        </div>
      </form>
    </Dialog>
  );
}

function TextField({ name, label, hint, value }: { name: string; label: string; hint: string; value: string }) {
  return (
    <label class="field">
      {label}
      <input name={name} defaultValue={value} />
      {hint && <span class="small">{hint}</span>}
    </label>
  );
}

/** One option as the server describes it: its description is in English, as in the reference pages. */
function OptionField({ option, value }: { option: QuestionOption; value: string | null }) {
  const { field, description, minimum, maximum, choices } = option;
  const name = OPTION + field;
  const shown = value ?? String(option.default);
  const all = choices.length ? choices : typeof option.default === "boolean" ? ["true", "false"] : [];
  return (
    <label class="field">
      <span lang="en">{field}</span>
      {all.length ? (
        <select name={name} defaultValue={shown}>
          {all.map((choice) => (
            <option key={choice} value={choice} selected={choice === shown}>
              {choice}
            </option>
          ))}
        </select>
      ) : typeof option.default === "number" ? (
        <input name={name} type="number" step="any" min={minimum ?? undefined} max={maximum ?? undefined} defaultValue={shown} />
      ) : (
        <input name={name} defaultValue={shown} />
      )}
      <span class="small">
        <span lang="en">{description}</span>
        {minimum !== null && maximum !== null && ` ${number(minimum, 3)} – ${number(maximum, 3)}`}
      </span>
    </label>
  );
}
