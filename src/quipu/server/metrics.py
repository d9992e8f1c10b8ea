"""Metrics: what a server counts, in the text format of Prometheus. Nothing of a question or document is in them."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from quipu.model.answer import Answer
from quipu.model.results import IndexStatus
from quipu.model.usage import MICRO

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """The counters of one server process."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Histogram(
            "quipu_request_seconds",
            "Time until a request was answered to its end, by operation and status.",
            ["operation", "status"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._stages = Histogram(
            "quipu_stage_seconds",
            "Time of each stage of a question, by strategy.",
            ["strategy", "stage"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._answers = Counter(
            "quipu_answers", "Answers, by strategy and by what wrote them.", ["strategy", "generator"],
            registry=self._registry,
        )  # fmt: skip
        self._tokens = Counter(
            "quipu_answer_tokens", "Tokens of models for answers, by model and direction.", ["model", "direction"],
            registry=self._registry,
        )  # fmt: skip
        self._cost = Counter(
            "quipu_answer_cost", "Cost of answers in the setting currency, by model.", ["model"],
            registry=self._registry,
        )  # fmt: skip

    def count_request(self, operation: str, status: int, seconds: float) -> None:
        """Count a request that has ended."""
        self._requests.labels(operation, str(status)).observe(seconds)

    def count_answer(self, answer: Answer) -> None:
        """Count an answer, the time of its stages, and what it cost."""
        strategy = answer.trace.strategy
        self._answers.labels(strategy, answer.generator).inc()
        for timing in answer.trace.timings:
            self._stages.labels(strategy, timing.stage).observe(timing.ms / 1_000)
        for row in answer.usage:
            self._tokens.labels(row.model, "in").inc(row.tokens.input)
            self._tokens.labels(row.model, "out").inc(row.tokens.output)
            self._cost.labels(row.model).inc(row.cost / MICRO)

    def text(self, status_by_workspace: Mapping[str, IndexStatus]) -> bytes:
        """Return what was counted, and the state of these workspaces alone: a key learns nothing of others."""
        return generate_latest(self._registry) + generate_latest(_states(status_by_workspace))


def _states(status_by_workspace: Mapping[str, IndexStatus]) -> CollectorRegistry:
    """Return the size of each index, of its queue, and of the queue of its questions."""
    registry = CollectorRegistry()
    documents = Gauge("quipu_documents", "Documents that can be queried.", ["workspace"], registry=registry)
    jobs = Gauge(
        "quipu_jobs", "Documents that wait, are worked on or failed.", ["workspace", "status"], registry=registry
    )
    waiting = Gauge(
        "quipu_questions_waiting", "Questions that wait while others search.", ["workspace"], registry=registry
    )
    for workspace, status in status_by_workspace.items():
        documents.labels(workspace).set(status.n_documents)
        waiting.labels(workspace).set(status.n_questions_waiting)
        for name, n_documents in status.jobs:
            jobs.labels(workspace, name).set(n_documents)
    return registry
