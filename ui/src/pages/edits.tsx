// Edits: a person corrects an entity, merges it with another one, hides it, and undoes what was done.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { get, post, request, workspaceUrl, type Problem } from "../api";
import { Action, Await, Confirm, Dialog, ProblemNotice, asProblem, editSummary, say, useLoaded } from "../parts";
import { go, href } from "../route";
import { mayWrite } from "../session";
import { moment, number, t } from "../words";
import type { Entity, RecordedEdit } from "../types";

interface EditRequest {
  kind: string;
  entities: string[];
  name?: string;
  type?: string;
  description?: string;
  reason?: string;
}

const make = (edit: EditRequest) => post<RecordedEdit>("/edits", edit);

/** What may be done with an entity; nothing for who may only read. `changed` shows the entity again. */
export function EditActions({ entity, changed }: { entity: Entity; changed: () => void }) {
  const [open, setOpen] = useState<"edit" | "merge" | "hide">();
  if (!mayWrite.value) return null;
  const close = () => setOpen(undefined);
  const finish = (key: string) => {
    close();
    say(t("edit.done"));
    if (key === entity.key) changed();
    else go(href("entities", key));
  };
  return (
    <>
      <button onClick={() => setOpen("edit")}>{t("edit.edit")}</button>
      <button onClick={() => setOpen("merge")}>{t("edit.merge")}</button>
      <button onClick={() => setOpen("hide")}>{t("edit.hide")}</button>
      {open === "edit" && <EditDialog entity={entity} close={close} finish={finish} />}
      {open === "merge" && <MergeDialog entity={entity} close={close} finish={finish} />}
      {open === "hide" && (
        <Confirm title={t("edit.hideTitle", { name: entity.name })} action={t("edit.hide")} close={close} run={() => make({ kind: "hide", entities: [entity.key] }).then(() => go(href("entities")))}>
          <p>{t("edit.hideText")}</p>
        </Confirm>
      )}
    </>
  );
}

interface DialogProps {
  entity: Entity;
  close: () => void;
  finish: (key: string) => void;
}

/** A form whose edits are made one after the other; what the server refuses is said, and the form stays. */
function EditForm({ edits, finish, action, children }: { edits: (form: FormData) => EditRequest[]; finish: (last?: RecordedEdit) => void; action: string; children: ComponentChildren }) {
  const [problem, setProblem] = useState<Problem>();
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    setProblem(undefined);
    try {
      let last: RecordedEdit | undefined;
      for (const edit of edits(new FormData(event.currentTarget as HTMLFormElement))) last = await make(edit);
      finish(last);
    } catch (error) {
      setProblem(asProblem(error));
      setBusy(false);
    }
  };
  return (
    <form onSubmit={submit}>
      {children}
      <label class="field">
        {t("edit.reason")}
        <input name="reason" dir="auto" />
      </label>
      {problem && <ProblemNotice problem={problem} />}
      <p class="actions">
        <button class="primary" disabled={isBusy}>
          {action}
        </button>
      </p>
    </form>
  );
}

const textOf = (form: FormData, name: string) => String(form.get(name) ?? "").trim();

function EditDialog({ entity, close, finish }: DialogProps) {
  const edits = (form: FormData): EditRequest[] => {
    const [name, type, description, reason] = ["name", "type", "description", "reason"].map((field) => textOf(form, field)) as [string, string, string, string];
    const entities = [entity.key];
    return [
      ...(type && type !== entity.type ? [{ kind: "retype", entities, type, reason }] : []),
      ...(description && description !== entity.description ? [{ kind: "redescribe", entities, description, reason }] : []),
      ...(name && name !== entity.name ? [{ kind: "rename", entities, name, reason }] : []), // last: it may change the key
    ];
  };
  return (
    <Dialog title={t("edit.title", { name: entity.name })} close={close}>
      <EditForm edits={edits} finish={(last) => finish(last?.edit.key || entity.key)} action={t("edit.save")}>
        <p class="small">{t("edit.text")}</p>
        <label class="field">
          {t("edit.name")}
          <input name="name" defaultValue={entity.name} maxLength={300} dir="auto" />
        </label>
        <label class="field">
          {t("entity.type")}
          <input name="type" defaultValue={entity.type} maxLength={300} dir="auto" />
        </label>
        <label class="field">
          {t("edit.description")}
          <textarea name="description" rows={6} defaultValue={entity.description} maxLength={20000} dir="auto" />
        </label>
      </EditForm>
    </Dialog>
  );
}

/** Choose another entity, see both, and say what the one that remains is called. */
export function MergeDialog({ entity, close, finish, other }: DialogProps & { other?: string }) {
  const [prefix, setPrefix] = useState("");
  const [key, setKey] = useState(other);
  const found = useLoaded(
    async (abort) => (prefix ? (await get<{ entities: Entity[] }>("/entities", { prefix, k: 8 }, abort)).entities.filter((candidate) => candidate.key !== entity.key) : []),
    prefix,
  );
  const search = (event: SubmitEvent) => {
    event.preventDefault();
    setKey(undefined);
    setPrefix(textOf(new FormData(event.currentTarget as HTMLFormElement), "prefix"));
  };
  return (
    <Dialog title={t("edit.mergeTitle", { name: entity.name })} close={close}>
      {!other && (
        <form class="row" role="search" onSubmit={search}>
          <label class="hidden" for="merge-prefix">
            {t("entity.prefix")}
          </label>
          <input id="merge-prefix" name="prefix" placeholder={t("entity.prefix")} dir="auto" />
          <button>{t("search")}</button>
        </form>
      )}
      {!key && (
        <Await from={found}>
          {(candidates) => (
            <ul class="choice-list">
              {candidates.map((candidate) => (
                <li key={candidate.key}>
                  <button onClick={() => setKey(candidate.key)} dir="auto">
                    {candidate.name} <span class="small">{candidate.type}</span>
                  </button>
                </li>
              ))}
              {prefix && !candidates.length && <li>{t("nothing")}</li>}
            </ul>
          )}
        </Await>
      )}
      {key && <MergeForm key={key} entity={entity} other={key} finish={finish} />}
    </Dialog>
  );
}

function MergeForm({ entity, other, finish }: { entity: Entity; other: string; finish: (key: string) => void }) {
  const loaded = useLoaded((abort) => get<{ entity: Entity }>(`/entities/${encodeURIComponent(other)}`, {}, abort), other);
  return (
    <Await from={loaded}>
      {({ entity: second }) => (
        <EditForm
          edits={(form) => [{ kind: "merge", entities: [entity.key, second.key], name: textOf(form, "name"), reason: textOf(form, "reason") }]}
          finish={(last) => finish(last!.edit.key)}
          action={t("edit.mergeBoth")}
        >
          <fieldset class="both">
            <legend>{t("edit.mergeName")}</legend>
            {[entity, second].map((side, index) => (
              <label key={side.key} class="side">
                <span>
                  <input type="radio" name="name" value={side.name} defaultChecked={!index} /> <strong dir="auto">{side.name}</strong> <span class="small">{side.type}</span>
                </span>
                <span class="small">{`${t("count.chunks", { n: side.n_chunks })} · ${t("count.relations", { n: side.degree })}`}</span>
                {side.aliases.length > 0 && (
                  <span class="small" dir="auto">
                    {side.aliases.join(" · ")}
                  </span>
                )}
                <span dir="auto">{side.description}</span>
              </label>
            ))}
          </fieldset>
        </EditForm>
      )}
    </Await>
  );
}

interface DuplicatePair {
  candidate: { score: number; reasons: string[] };
  first: Entity;
  second: Entity;
}

/** Entities that may be this one under another name: merge them, or say that they are different. */
export function Duplicates({ entity, n, changed }: { entity: Entity; n: number; changed: () => void }) {
  const loaded = useLoaded((abort) => get<DuplicatePair[]>("/duplicates", { entity: entity.key, k: 10 }, abort), `${entity.key} ${n}`);
  const [other, setOther] = useState<string>();
  if (!loaded.value?.length) return null;
  const finish = (key: string) => {
    setOther(undefined);
    say(t("edit.done"));
    if (key === entity.key) changed();
    else go(href("entities", key));
  };
  const keepApart = async (key: string) => {
    await make({ kind: "distinct", entities: [entity.key, key] });
    say(t("edit.isDistinct"));
    changed();
  };
  return (
    <section>
      <h2>{t("edit.duplicates")}</h2>
      <ul class="duplicate-list">
        {loaded.value
          .map(({ candidate, first, second }) => ({ candidate, side: first.key === entity.key ? second : first }))
          .map(({ candidate, side }) => (
            <li key={side.key}>
              <p dir="auto">
                <a href={href("entities", side.key)}>{side.name}</a> <span class="small">{side.type}</span>
              </p>
              <p class="small">
                {number(candidate.score, 2)} · {candidate.reasons.join("; ")}
              </p>
              {mayWrite.value && (
                <p class="actions">
                  <button aria-label={`${t("edit.merge")} ${side.name}`} onClick={() => setOther(side.key)}>
                    {t("edit.mergeBoth")}
                  </button>
                  <Action text={t("edit.distinct")} label={`${t("edit.distinct")}: ${side.name}`} run={() => keepApart(side.key)} />
                </p>
              )}
            </li>
          ))}
      </ul>
      {other && <MergeDialog entity={entity} other={other} close={() => setOther(undefined)} finish={finish} />}
    </section>
  );
}

/** The edits that name an entity, the newest first, with a way to undo each. */
export function EditHistory({ entity, n, changed }: { entity: string; n: number; changed: () => void }) {
  const loaded = useLoaded((abort) => get<{ edits: RecordedEdit[] }>("/edits", { entity, k: 50 }, abort), `${entity} ${n}`);
  const undo = async ({ id, edit }: RecordedEdit) => {
    await request("DELETE", workspaceUrl(`/edits/${id}`));
    say(t("edit.undone"));
    if (edit.key === entity && !edit.entities.includes(entity)) go(href("entities", edit.entities[0]!));
    else changed();
  };
  if (!loaded.value?.edits.length) return null;
  return (
    <section>
      <h2>{t("edit.history")}</h2>
      <ul class="edit-list">
        {loaded.value.edits.map((recorded) => (
          <li key={recorded.id} class={recorded.undone_at ? "undone" : ""}>
            <p dir="auto">{editSummary(recorded.edit)}</p>
            <p class="small">
              {[moment(recorded.made_at), recorded.edit.author, recorded.edit.reason, stateOf(recorded)].filter(Boolean).join(" · ")}{" "}
              {mayWrite.value && !recorded.undone_at && <Action text={t("edit.undo")} label={`${t("edit.undo")}: ${editSummary(recorded.edit)}`} run={() => undo(recorded)} />}
            </p>
          </li>
        ))}
      </ul>
    </section>
  );
}

function stateOf(recorded: RecordedEdit): string {
  if (recorded.undone_at) return t("edit.isUndone");
  return recorded.has_effect ? "" : t("edit.noTarget");
}
