// Jobs: work of the server for this workspace, how far it is, what it costs, and what failed.

import { useEffect, useRef } from "preact/hooks";
import { mayWrite } from "./session";
import { Action, Failures, announce } from "./parts";
import { duration, money, number, t, type Key } from "./words";
import { cancelJob, dismissJob, jobs, resumeJobs, retryDocuments } from "./work";
import type { Job, Status } from "./types";

const MAX_JOBS = 10; // shown at once

/** The jobs that run, and those that ended while this page was open. */
export function JobList({ currency }: { currency?: string }) {
  const before = useRef<Record<string, string>>({});
  useEffect(() => {
    for (const job of jobs.value) if (before.current[job.id] && before.current[job.id] !== job.status && job.status === "finished") announce(`${titleOf(job)}: ${outcome(job)}`);
    before.current = Object.fromEntries(jobs.value.map((job) => [job.id, job.status]));
  }, [jobs.value]);
  return (
    <>
      {jobs.value.slice(0, MAX_JOBS).map((job) => (
        <JobCard key={job.id} job={job} currency={currency} />
      ))}
    </>
  );
}

function titleOf({ kind, subjects }: Job): string {
  if (kind === "refresh") return t("job.refresh", { names: subjects.join(", ") });
  return subjects.length ? t("job.add", { n: subjects.length }) : t("job.queue");
}

const WAITING: Status[] = ["queued", "parsing", "extracting", "removing"];
const STAGES = ["read", "extract", "embed", "remove", "summarise", "derive", "aggregate"];

function counts({ documents }: Job): { nDone: number; nTotal: number } {
  const all = Object.entries(documents) as [Status, number][];
  const sum = (rows: [Status, number][]) => rows.reduce((n, [, count]) => n + count, 0);
  return { nDone: sum(all.filter(([status]) => !WAITING.includes(status))), nTotal: sum(all) };
}

function outcome(job: Job): string {
  return (Object.entries(job.documents) as [Status, number][]).map(([status, n]) => `${t(`status.${status}`)}: ${number(n)}`).join(" · ") || t("job.finished");
}

function JobCard({ job, currency }: { job: Job; currency?: string }) {
  const { nDone, nTotal } = counts(job);
  const title = titleOf(job);
  const isActive = job.status === "waiting" || job.status === "running";
  const stage = STAGES.includes(job.stage) ? t(`job.stage.${job.stage}` as Key) : job.stage;
  return (
    <section class="card job" aria-label={title} aria-busy={isActive}>
      <h2>
        {title} <span class={`badge ${job.status}`}>{t(`job.${job.status}`)}</span>
      </h2>
      {isActive && <progress aria-label={title} {...(nTotal ? { max: nTotal, value: nDone } : {})} />}
      <p class="small">
        {[
          nTotal > 0 && t("job.documents", { n: nTotal, done: nDone }),
          nTotal > 0 && !isActive && outcome(job),
          isActive && stage && `${stage}: ${t("job.units", { n: job.n_total, done: job.n_done })}`,
          job.tokens > 0 && t("count.tokens", { n: job.tokens }),
          job.cost > 0 && money(job.cost, currency),
          isActive && job.seconds_left !== null && t("job.left", { time: duration(job.seconds_left * 1_000) }),
        ]
          .filter(Boolean)
          .join(" · ")}
      </p>
      {job.stopped && <p class="error">{job.stopped}</p>}
      {job.failed.length > 0 && <Failures rows={job.failed} title={t("job.failed", { n: job.failed.length })} />}
      <p class="actions">
        {mayWrite.value && job.status === "stopped" && <Action run={resumeJobs} text={t("job.continue")} />}
        {mayWrite.value && job.failed.length > 0 && !isActive && <Action run={() => retryDocuments(job.failed.map(([id]) => id)).then(() => dismissJob(job.id))} text={t("job.retry")} />}
        {mayWrite.value && job.status !== "finished" && job.kind === "add" && job.subjects.length > 0 && <Action run={() => cancelJob(job.id)} text={t("cancel")} />}
        {!isActive && <button onClick={() => dismissJob(job.id)}>{t("close")}</button>}
      </p>
    </section>
  );
}
