// Why is this here: the way from the words of a question to each passage, and why another passage was not chosen.

import { useState } from "preact/hooks";
import { get, post } from "../api";
import { shortened } from "../markdown";
import { Await, Empty, Facts, useLoaded } from "../parts";
import { href, route } from "../route";
import { number, t } from "../words";
import type { Chain, Chunk, ExplainedChunk, Explanation } from "../types";
import { DocumentId } from "./answer";
import { optionsOf } from "./options";

export function Why() {
  const { params } = route.value;
  const question = params.get("q") ?? "";
  return (
    <div class="why">
      <h1>{t("nav.why")}</h1>
      {question ? <Explained key={params.toString()} question={question} params={params} /> : <Empty title={t("why.empty")} />}
    </div>
  );
}

function Explained({ question, params }: { question: string; params: URLSearchParams }) {
  const chosen = { chunk: params.get("chunk") || undefined, rank: Number(params.get("rank")) || undefined };
  const loaded = useLoaded((abort) => post<Explanation>("/explain", { ...optionsOf(params), question, ...chosen }, { signal: abort }), params.toString());
  return (
    <>
      <p class="asked" dir="auto">
        <a href={href("ask", "", { q: question, strategy: params.get("strategy") ?? "" })}>{question}</a>
      </p>
      <Await from={loaded}>
        {(explanation) => (
          <>
            <Facts
              rows={[
                [t("strategy"), explanation.strategy],
                [t("compare.passages"), number(explanation.n_chunks)],
                [t("evidence.dropped"), explanation.dropped.map((hits) => `${hits.section}: ${number(hits.ids.length)}`).join(" · ") || "–"],
                [t("evidence.seeds"), explanation.seeds.map((seed) => `${seed.text} (${seed.kind})`).join(" · ") || "–"],
              ]}
            />
            {explanation.notes.length > 0 && (
              <ul class="notes">
                {explanation.notes.map((note) => (
                  <li key={note}>{note}</li>
                ))}
              </ul>
            )}
            {!explanation.ranks_passages && <p class="notice">{t("why.noPassages")}</p>}
            {explanation.chunks.map((chunk) => (
              <PassageReasons key={chunk.id} chunk={chunk} isDropped={explanation.dropped.some(({ ids }) => ids.includes(chunk.id))} />
            ))}
            <nav class="actions" aria-label={t("why.ranks")}>
              {Array.from({ length: Math.min(explanation.n_chunks, 10) }, (_, index) => (
                <a class="button" key={index} href={href("why", "", { ...Object.fromEntries(params), chunk: "", rank: index + 1 })} aria-current={explanation.chunks.some((chunk) => chunk.rank === index + 1) ? "true" : undefined}>
                  {number(index + 1)}
                </a>
              ))}
            </nav>
          </>
        )}
      </Await>
      <OtherPassage params={params} />
    </>
  );
}

function PassageReasons({ chunk, isDropped }: { chunk: ExplainedChunk; isDropped: boolean }) {
  return (
    <article class="reasons">
      <h2 dir="auto">
        <a href={href("documents", chunk.document_id)}>{chunk.title || chunk.document_id}</a> {chunk.title && <span class="small"><DocumentId id={chunk.document_id} /></span>}
      </h2>
      <p class="small">{chunk.rank ? t("why.rank", { n: chunk.rank, score: number(chunk.score, 3), reason: chunk.reason }) : t("why.notChosen")}</p>
      {isDropped && <p class="badge">{t("evidence.notSent")}</p>}
      <blockquote dir="auto">{shortened(chunk.text, 500)}</blockquote>
      {chunk.chains.map((chain) => (
        <ChainPath key={`${chain.seed} ${chain.kind}`} chain={chain} />
      ))}
      {!chunk.chains.length && <p class="small">{t("why.noPath")}</p>}
      {chunk.supporting_hits.length > 0 && (
        <details open={!chunk.chains.length}>
          <summary>{t("why.supporting", { n: chunk.supporting_hits.length })}</summary>
          <ul>
            {chunk.supporting_hits.map((hit) => (
              <li key={`${hit.kind} ${hit.id}`} dir="auto">
                {hit.kind === "entity" ? <a href={href("entities", hit.id)}>{hit.name}</a> : hit.name} <span class="small">{`${hit.kind} ${number(hit.rank)} · ${hit.reason} · ${hit.connection}`}</span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </article>
  );
}

/** The path as boxes in a row: what was searched for, the entities on the way, the passage. */
function ChainPath({ chain }: { chain: Chain }) {
  return (
    <ol class="path">
      <li class="seed" dir="auto">
        <span class="small">{chain.kind}</span> {chain.seed}
      </li>
      {chain.start && (
        <li>
          <a href={href("entities", chain.start)}>{chain.start}</a>
        </li>
      )}
      {chain.steps.map((step) => (
        <li key={step.relation}>
          <a href={href("entities", step.target)}>{step.target}</a>
          <span class="small step" dir="auto">
            {shortened(step.description, 120)}
          </span>
        </li>
      ))}
      <li class="end">{t("compare.passage")}</li>
    </ol>
  );
}

/** Find a passage by its words, also one that was not chosen, and ask why. */
function OtherPassage({ params }: { params: URLSearchParams }) {
  const [text, setText] = useState("");
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    setText(String(new FormData(event.currentTarget as HTMLFormElement).get("text")).trim());
  };
  return (
    <section>
      <h2>{t("why.other")}</h2>
      <form class="row" role="search" onSubmit={submit}>
        <label class="hidden" for="other">
          {t("why.otherLabel")}
        </label>
        <input id="other" name="text" placeholder={t("why.otherLabel")} required />
        <button>{t("search")}</button>
      </form>
      {text && <PassageHits key={text} text={text} params={params} />}
    </section>
  );
}

function PassageHits({ text, params }: { text: string; params: URLSearchParams }) {
  const loaded = useLoaded((abort) => get<{ chunks: [unknown, Chunk][] }>("/search", { text, k: 10 }, abort), text);
  return (
    <Await from={loaded}>
      {(found) =>
        found.chunks.length ? (
          <ol class="passages">
            {found.chunks.map(([, chunk]) => (
              <li key={chunk.id}>
                <a href={href("why", "", { ...Object.fromEntries(params), rank: "", chunk: chunk.id })}>{chunk.document_id}</a>
                <blockquote dir="auto">{shortened(chunk.text, 200)}</blockquote>
              </li>
            ))}
          </ol>
        ) : (
          <p>{t("nothing")}</p>
        )
      }
    </Await>
  );
}
