// Jobs: work of the server for this workspace, how far it is, what it costs, and what failed.

import { useEffect, useRef } from "preact/hooks";
import { mayWrite } from "./session";
import { Action, Failures, announce } from "./parts";
import { duration, money, number, t, type Key } from "./words";
import { cancelJob, dismissJob, isActive, jobs, resumeJobs, retryDocuments } from "./work";
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

function titleOf({ kind, subjects, n_subjects }: Job): string {
  if (kind === "refresh") return subjects.length ? t("job.refresh", { names: subjects.join(", ") }) : t("job.refreshAll");
  return n_subjects ? t("job.add", { n: n_subjects }) : t("job.queue");
}

const WAITING: Status[] = ["queued", "parsing", "extracting", "removing"];
const STAGES = ["read", "pages", "pictures", "extract", "embed", "remove", "summarise", "derive", "aggregate"];

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
  const isWorking = isActive(job);
  const stage = STAGES.includes(job.stage) ? t(`job.stage.${job.stage}` as Key) : job.stage;
  return (
    <section class="card job" aria-label={title} aria-busy={isWorking}>
      <h2>
        {title} <span class={`badge ${job.status}`}>{t(`job.${job.status}`)}</span>
      </h2>
      {isWorking && <progress aria-label={title} {...(nTotal ? { max: nTotal, value: nDone } : {})} />}
      <p class="small">
        {[
          nTotal > 0 && t("job.documents", { n: nTotal, done: nDone }),
          nTotal > 0 && !isWorking && outcome(job),
          isWorking && stage && `${stage}: ${t("job.units", { n: job.n_total, done: job.n_done })}`,
          job.tokens > 0 && t("count.tokens", { n: job.tokens }),
          job.cost > 0 && money(job.cost, currency),
          isWorking && job.seconds_left !== null && t("job.left", { time: duration(job.seconds_left * 1_000) }),
        ]
          .filter(Boolean)
          .join(" · ")}
      </p>
      {job.stopped && <p class="error">{job.stopped}</p>}
      {job.failed.length > 0 && <Failures rows={job.failed} title={t("job.failed", { n: job.failed.length })} />}
      <p class="actions">
        {mayWrite.value && job.status === "stopped" && <Action run={resumeJobs} text={t("job.continue")} />}
        {mayWrite.value && job.failed.length > 0 && !isWorking && <Action run={() => retryDocuments(job.failed.map(([id]) => id)).then(() => dismissJob(job.id))} text={t("job.retry")} />}
        {mayWrite.value && (isWorking || job.status === "stopped") && (job.kind === "refresh" || job.n_subjects > 0) && <Action run={() => cancelJob(job.id)} text={t("cancel")} />}
        {!isWorking && <button onClick={() => dismissJob(job.id)}>{t("close")}</button>}
      </p>
    </section>
  );
}
