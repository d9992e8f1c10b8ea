// Compare: one question, two to four strategies side by side, and which passages they share.

import { useState } from "preact/hooks";
import { post } from "../api";
import { Empty, Facts, ProblemNotice, Waiting, useLoaded, type Loaded } from "../parts";
import { go, href, route } from "../route";
import { duration, number, t } from "../words";
import type { RankedChunk, StrategyResult } from "../types";
import { AnswerText } from "./answer";
import { carried, optionsOf, preferredStrategy, useStrategies } from "./options";

const DEFAULT = ["weave", "mix", "naive"];
const MOST = 4;

export function Compare() {
  const { params } = route.value;
  const question = params.get("q") ?? "";
  const chosen = (params.get("strategies") ?? DEFAULT.join(",")).split(",").filter(Boolean).slice(0, MOST);
  return (
    <div class="compare">
      <h1>{t("nav.compare")}</h1>
      <CompareForm key={params.toString()} question={question} chosen={chosen} />
      {question ? <Columns key={params.toString()} question={question} strategies={chosen} /> : <Empty title={t("compare.empty")} />}
    </div>
  );
}

function CompareForm({ question, chosen }: { question: string; chosen: string[] }) {
  const all = useStrategies();
  const [names, setNames] = useState(chosen);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const text = String(new FormData(event.currentTarget as HTMLFormElement).get("q")).trim();
    if (text && names.length) go(href("compare", "", { q: text, strategies: names.join(","), ...carried(route.value.params) }));
  };
  const toggle = (name: string) => setNames(names.includes(name) ? names.filter((other) => other !== name) : [...names, name]);
  return (
    <form class="question" onSubmit={submit}>
      <label class="hidden" for="compared">
        {t("ask.label")}
      </label>
      <input id="compared" name="q" defaultValue={question} placeholder={t("ask.placeholder")} dir="auto" required />
      <fieldset class="choices">
        <legend>{t("compare.choose", { n: MOST })}</legend>
        {all.map((strategy) => (
          <label key={strategy.name} title={strategy.summary}>
            <input type="checkbox" checked={names.includes(strategy.name)} disabled={!names.includes(strategy.name) && names.length >= MOST} onChange={() => toggle(strategy.name)} />
            {strategy.name}
          </label>
        ))}
      </fieldset>
      <div class="question-bar">
        <button class="primary">{t("compare.run")}</button>
      </div>
    </form>
  );
}

/** One request for each strategy, so that a slow or failing one hides nothing of the others. */
function Columns({ question, strategies }: { question: string; strategies: string[] }) {
  const [results, setResults] = useState<Record<string, StrategyResult>>({});
  const add = (result: StrategyResult) => setResults((others) => ({ ...others, [result.strategy]: result }));
  return (
    <>
      <div class="columns">
        {strategies.map((strategy) => (
          <Column key={strategy} question={question} strategy={strategy} add={add} />
        ))}
      </div>
      <SharedPassages question={question} results={strategies.flatMap((name) => results[name] ?? [])} />
    </>
  );
}

function Column({ question, strategy, add }: { question: string; strategy: string; add: (result: StrategyResult) => void }) {
  const loaded = useLoaded(async (abort) => {
    const body = { ...optionsOf(route.value.params), question, strategies: [strategy], strategy: undefined };
    const [result] = (await post<{ results: StrategyResult[] }>("/compare", body, { signal: abort })).results;
    add(result!);
    return result!;
  }, `${question}\n${strategy}`);
  return (
    <section class="column" aria-label={strategy} aria-busy={loaded.isLoading}>
      <h2>{strategy}</h2>
      <p class="small" lang="en">
        {useStrategies().find(({ name }) => name === strategy)?.summary}
      </p>
      <ColumnBody loaded={loaded} question={question} />
    </section>
  );
}

function ColumnBody({ loaded, question }: { loaded: Loaded<StrategyResult> & { reload: () => void }; question: string }) {
  if (loaded.problem) return <ProblemNotice problem={loaded.problem} retry={loaded.reload} />;
  if (!loaded.value) return <Waiting />;
  const { answer, error, ms, n_chunks, n_context_tokens, n_calls, strategy } = loaded.value;
  const isPreferred = preferredStrategy.value === strategy;
  if (!answer) return <p class="notice">{error}</p>;
  return (
    <>
      <Facts
        rows={[
          [t("compare.time"), duration(ms)],
          [t("compare.passages"), number(n_chunks)],
          [t("compare.tokens"), number(n_context_tokens)],
          [t("compare.calls"), number(n_calls)],
        ]}
      />
      <AnswerText answer={answer} />
      <p class="actions">
        <a class="button" href={href("why", "", { q: question, strategy })}>
          {t("nav.why")}
        </a>
        <button aria-pressed={isPreferred} onClick={() => (preferredStrategy.value = isPreferred ? "" : strategy)}>
          {t(isPreferred ? "compare.preferred" : "compare.prefer")}
        </button>
      </p>
    </>
  );
}

/** The passages of all strategies: which of them found each, at what rank. */
function SharedPassages({ question, results }: { question: string; results: StrategyResult[] }) {
  const answered = results.filter((result) => result.answer);
  if (answered.length < 2) return null;
  const rows = new Map<string, { chunk: RankedChunk; ranks: (number | undefined)[] }>();
  answered.forEach((result, column) =>
    result.chunks.forEach((chunk, index) => {
      const row = rows.get(chunk.id) ?? { chunk, ranks: answered.map(() => undefined) };
      row.ranks[column] = index + 1;
      rows.set(chunk.id, row);
    }),
  );
  const n = (ranks: (number | undefined)[]) => ranks.filter(Boolean).length;
  const best = (ranks: (number | undefined)[]) => Math.min(...ranks.map((rank) => rank ?? Infinity));
  const sorted = [...rows.values()].sort((a, b) => n(b.ranks) - n(a.ranks) || best(a.ranks) - best(b.ranks) || (a.chunk.id < b.chunk.id ? -1 : 1));
  return (
    <section>
      <h2>{t("compare.shared")}</h2>
      <div class="wide" tabIndex={0}>
        <table class="shared">
          <thead>
            <tr>
              <th scope="col">{t("compare.passage")}</th>
              {answered.map((result) => (
                <th scope="col" key={result.strategy}>
                  {result.strategy}
                </th>
              ))}
              <th scope="col">{t("compare.foundBy")}</th>
            </tr>
          </thead>
          <tbody>
            {sorted.map(({ chunk, ranks }) => (
              <tr key={chunk.id}>
                <td dir="auto">
                  <a href={href("why", "", { q: question, strategy: answered[ranks.findIndex(Boolean)]!.strategy, chunk: chunk.id })}>{chunk.title || chunk.document_id}</a>
                </td>
                {ranks.map((rank, index) => (
                  <td key={answered[index]!.strategy}>{rank ? number(rank) : "–"}</td>
                ))}
                <td>{t(n(ranks) === answered.length ? "compare.all" : n(ranks) > 1 ? "compare.some" : "compare.one")}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
