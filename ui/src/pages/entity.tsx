// Entities: a list of names to search in, and what the documents say about one of them.

import { useState } from "preact/hooks";
import { get } from "../api";
import { shortened } from "../markdown";
import { Await, Empty, Facts, moveInList, useLoaded } from "../parts";
import { go, href, route } from "../route";
import { number, t } from "../words";
import type { Chunk, Entity, Relation } from "../types";
import { DocumentId, citedAt } from "./answer";
import { Duplicates, EditActions, EditHistory } from "./edits";

const PAGE = 50;
const N_DOCUMENTS = 12; // shown at first

export function Entities() {
  const { subject, workspace, params } = route.value;
  return subject ? <EntityView key={`${workspace} ${subject}`} name={subject} /> : <EntityList key={`${workspace} ${params}`} />;
}

interface EntityPage {
  entities: Entity[];
  n_total: number;
  cursor: string;
}

function EntityList() {
  const { params } = route.value;
  const [prefix, type] = [params.get("prefix") ?? "", params.get("type") ?? ""];
  const [cursors, setCursors] = useState([""]);
  const loaded = useLoaded((abort) => Promise.all(cursors.map((cursor) => get<EntityPage>("/entities", { prefix, type, k: PAGE, cursor }, abort))), cursors.length);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    go(href("entities", "", { prefix: String(new FormData(event.currentTarget as HTMLFormElement).get("prefix")).trim(), type }));
  };
  return (
    <div class="entities">
      <h1>{t("nav.entities")}</h1>
      <form class="row" role="search" onSubmit={submit}>
        <label class="hidden" for="prefix">
          {t("entity.prefix")}
        </label>
        <input id="prefix" name="prefix" defaultValue={prefix} placeholder={t("entity.prefix")} dir="auto" />
        <button>{t("search")}</button>
        {type && (
          <a class="button" href={href("entities", "", { prefix })}>
            {type} ✕
          </a>
        )}
      </form>
      <Await from={loaded}>
        {(pages) => {
          const entities = pages.flatMap((page) => page.entities);
          const next = pages.at(-1)!.cursor;
          if (!entities.length) return <Empty title={t("nothing")} />;
          return (
            <>
              <p class="small">{t("count.entities", { n: pages[0]!.n_total })}</p>
              <ul class="entity-list" onKeyDown={moveInList}>
                {entities.map((entity) => (
                  <li key={entity.key}>
                    <a href={href("entities", entity.key)} dir="auto">
                      {entity.name}
                    </a>{" "}
                    <a class="small" href={href("entities", "", { prefix, type: entity.type })}>
                      {entity.type}
                    </a>{" "}
                    <span class="small">{t("count.relations", { n: entity.degree })}</span>
                    <p class="small" dir="auto">
                      {shortened(entity.description, 160)}
                    </p>
                  </li>
                ))}
              </ul>
              {next && <button onClick={() => setCursors([...cursors, next])}>{t("showMore")}</button>}
            </>
          );
        }}
      </Await>
    </div>
  );
}

interface EntityDetails {
  entity: Entity;
  chunks: [Chunk, number][];
  claims: { id: string; description: string }[];
  differing: DatedStatement[][];
}

interface DatedStatement {
  text: string;
  document_id: string;
  start: number;
  end: number;
  holds_from: string;
  holds_until: string;
}

function EntityView({ name }: { name: string }) {
  const [n, setN] = useState(0); // counts the edits
  const loaded = useLoaded((abort) => get<EntityDetails>(`/entities/${encodeURIComponent(name)}`, {}, abort), `${name} ${n}`);
  const changed = () => setN(n + 1);
  return (
    <Await from={loaded}>
      {({ entity, chunks, claims, differing }) => (
        <div class="entity">
          <h1 dir="auto">{entity.name}</h1>
          <Facts
            rows={[
              [t("entity.type"), <a href={href("entities", "", { type: entity.type })}>{entity.type}</a>],
              ...(entity.aliases.length ? [[t("entity.aliases"), entity.aliases.join(" · ")] as [string, string]] : []),
              [t("entity.mentions"), t("count.chunks", { n: entity.n_chunks })],
            ]}
          />
          <p class="actions">
            <a class="button" href={href("graph", entity.key)}>
              {t("entity.onGraph")}
            </a>
            <a class="button" href={href("ask", "", { q: t("entity.question", { name: entity.name }) })}>
              {t("entity.ask")}
            </a>
            <EditActions entity={entity} changed={changed} />
          </p>
          <div class="entity-body">
            <div>
              <ul class="descriptions">
                {entity.description
                  .split("\n")
                  .filter(Boolean)
                  .map((line) => (
                    <li key={line} dir="auto">
                      {line}
                      <Origin text={line} chunks={chunks} />
                    </li>
                  ))}
              </ul>
              <Relations entity={entity} chunks={chunks} />
            </div>
            <div>
              <Mentions chunks={chunks} />
              {claims.length > 0 && (
                <section>
                  <h2>{t("entity.claims")}</h2>
                  <ul>
                    {claims.map((claim) => (
                      <li key={claim.id} dir="auto">
                        {claim.description}
                      </li>
                    ))}
                  </ul>
                </section>
              )}
              <Differing groups={differing} />
              <Duplicates entity={entity} n={n} changed={changed} />
              <EditHistory entity={entity.key} n={n} changed={changed} />
            </div>
          </div>
        </div>
      )}
    </Await>
  );
}

/** What documents say in the same words but for a name, a number or a negation, with since when and until when it holds. */
function Differing({ groups }: { groups: DatedStatement[][] }) {
  if (groups.length === 0) return null;
  return (
    <section>
      <h2>{t("entity.differing")}</h2>
      {groups.map((group) => (
        <ul key={`${group[0]!.document_id} ${group[0]!.start}`}>
          {group.map((statement) => (
            <li key={`${statement.document_id} ${statement.start}`}>
              <span class="small">
                {statement.holds_from.slice(0, 10)} – {statement.holds_until || "…"}
              </span>{" "}
              <span dir="auto">{statement.text}</span>{" "}
              <a class="small" href={citedAt(statement)}>
                <DocumentId id={statement.document_id} />
              </a>
            </li>
          ))}
        </ul>
      ))}
    </section>
  );
}

/** A link to the sentence that a description repeats; nothing where it was written by a model or a person. */
function Origin({ text, chunks }: { text: string; chunks: [Chunk, number][] }) {
  const chunk = chunks.find(([candidate]) => candidate.text.includes(text))?.[0];
  if (!chunk) return null;
  const nBefore = [...chunk.text.slice(0, chunk.text.indexOf(text))].length; // the server counts code points
  const start = chunk.start + nBefore;
  return (
    <>
      {" "}
      <a class="small" href={citedAt({ document_id: chunk.document_id, start, end: start + [...text].length })}>
        <DocumentId id={chunk.document_id} />
      </a>
    </>
  );
}

/** Where the documents name the entity: a bar as long as it is often named, and the passages. */
function Mentions({ chunks }: { chunks: [Chunk, number][] }) {
  const byDocument = new Map<string, { n: number; chunks: Chunk[] }>();
  for (const [chunk, n] of chunks) {
    const row = byDocument.get(chunk.document_id) ?? { n: 0, chunks: [] };
    byDocument.set(chunk.document_id, { n: row.n + n, chunks: [...row.chunks, chunk] });
  }
  const [isWhole, setWhole] = useState(false);
  const rows = [...byDocument];
  const most = Math.max(...[...byDocument.values()].map((row) => row.n), 1);
  return (
    <section>
      <h2>{t("entity.documents", { n: byDocument.size })}</h2>
      <ul class="strip">
        {rows.slice(0, isWhole ? rows.length : N_DOCUMENTS).map(([id, row]) => (
          <li key={id}>
            <span class="share" aria-hidden="true">
              <span style={{ width: `${(100 * row.n) / most}%` }} />
            </span>
            <span>
              {row.chunks.slice(0, 5).map((chunk, index) => (
                <a key={chunk.id} href={citedAt({ document_id: id, start: chunk.start, end: chunk.end })}>
                  {index ? ` ${number(index + 1)}` : <DocumentId id={id} />}
                </a>
              ))}
              <span class="small"> {t("entity.mentionsOf", { n: row.n })}</span>
            </span>
          </li>
        ))}
      </ul>
      {!isWhole && rows.length > N_DOCUMENTS && <button onClick={() => setWhole(true)}>{t("more", { n: rows.length - N_DOCUMENTS })}</button>}
    </section>
  );
}

interface NeighbourPage {
  neighbours: [Relation, Entity][];
  n_total: number;
  cursor: string;
}

function Relations({ entity, chunks }: { entity: Entity; chunks: [Chunk, number][] }) {
  const [cursors, setCursors] = useState([""]);
  const loaded = useLoaded((abort) => Promise.all(cursors.map((cursor) => get<NeighbourPage>(`/neighbours/${encodeURIComponent(entity.key)}`, { k: PAGE, cursor }, abort))), cursors.length);
  return (
    <section>
      <h2>{t("count.relations", { n: entity.degree })}</h2>
      <Await from={loaded}>
        {(pages) => {
          const next = pages.at(-1)!.cursor;
          return (
            <>
              <ul class="relation-list" onKeyDown={moveInList}>
                {pages
                  .flatMap((page) => page.neighbours)
                  .map(([relation, other]) => (
                    <li key={relation.id} dir="auto">
                      <a href={href("entities", other.key)}>{other.name}</a> <span class="small">{other.type}</span>
                      <p class="small">
                        {shortened(relation.description, 300)}
                        <Origin text={relation.description.split("\n")[0]!} chunks={chunks} />
                      </p>
                    </li>
                  ))}
              </ul>
              {next && <button onClick={() => setCursors([...cursors, next])}>{t("showMore")}</button>}
            </>
          );
        }}
      </Await>
    </section>
  );
}
