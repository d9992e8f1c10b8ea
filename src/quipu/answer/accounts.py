"""Accounts: reports, points made of them, and claims, under numbers; what they rest on is what gets cited."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from quipu.algo.ranking import n_fitting, round_robin
from quipu.answer.render import point_block, titled_block
from quipu.model.cluster import ClusterReport, report_text
from quipu.model.evidence import DroppedHits, Hit, KeyPoint
from quipu.model.graph import Claim, claim_title
from quipu.ports.providers import Tokenizer
from quipu.ports.store import ReadView
from quipu.prompts.fence import make_boundary

BATCH = 50  # reports read at once: what is far over its budget is not read to its end
MAX_CHUNKS = 20  # of those an account rests on, the most telling: enough to find a sentence in
_ANY_BOUNDARY = make_boundary("")


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A point (without a title), a report or a claim in the context: what a model or a rule wrote of chunks.

    It is never cited itself: a citation of its number leads to the `chunks` it rests on. `score` is that of a point.
    """

    number: int
    text: str
    title: str = ""
    score: float = 0.0
    chunks: tuple[str, ...] = ()

    def block(self, boundary: str = "") -> str:
        """Return it as it is shown; `boundary` opens its first line."""
        if self.title:
            return titled_block(self.number, self.title, self.text, boundary)
        return point_block(self.number, self.score, self.text, boundary)


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounts:
    """The accounts that fit, points before reports, numbered from 1, and what they cost."""

    points: tuple[Account, ...] = ()
    reports: tuple[Account, ...] = ()
    n_tokens: int = 0
    dropped: tuple[DroppedHits, ...] = ()


async def pack_accounts(
    points: Sequence[KeyPoint], reports: Sequence[Hit], view: ReadView, *, budget: int, tokenizer: Tokenizer
) -> Accounts:
    """Return as many points, then reports, as `budget` tokens hold.

    A point is shown only while all it rests on is there: what a document said goes with the document.
    """
    drawn = await _drawn(points, view)
    costs = [_cost(account, tokenizer) for account in drawn]
    n_points = n_fitting(costs, budget)
    room = budget - sum(costs[:n_points])
    written, dropped_reports = await _fitting(reports, view, n_points + 1, room, tokenizer)
    dropped_points = tuple(f"point {account.number}" for account in drawn[n_points:])
    dropped = (
        DroppedHits(section="points", budget=max(budget, 0), ids=dropped_points),
        DroppedHits(section="reports", budget=max(room, 0), ids=dropped_reports),
    )
    return Accounts(
        points=tuple(drawn[:n_points]),
        reports=tuple(written),
        n_tokens=sum(costs[:n_points]) + sum(_cost(account, tokenizer) for account in written),
        dropped=tuple(each for each in dropped if each.ids),
    )


def account_of_claim(number: int, claim: Claim) -> Account:
    """Return a claim as an account: it rests on the chunk that makes it."""
    return Account(number=number, text=claim.description, title=claim_title(claim), chunks=(claim.chunk_id,))


def chunks_of(accounts: Iterable[Account], limit: int) -> list[str]:
    """Return up to `limit` chunks that accounts rest on: the first of each, then the second of each, and so on."""
    return round_robin([account.chunks for account in accounts], lambda chunk: chunk)[:limit]


async def _drawn(points: Sequence[KeyPoint], view: ReadView) -> list[Account]:
    """Return the points all of whose reports and chunks the view shows, as accounts."""
    ids = sorted({report for point in points for report in point.reports})
    reports = {report.cluster: report for report in await view.cluster_reports(ids)} if ids else {}
    chunks = sorted({chunk for point in points for chunk in point.chunks})
    present = {chunk.id for chunk in await view.chunks(chunks)} if chunks else set[str]()
    whole = [point for point in points if reports.keys() >= set(point.reports) and present.issuperset(point.chunks)]
    return [_of_point(number, point, reports) for number, point in enumerate(whole, 1)]


def _of_point(number: int, point: KeyPoint, reports: Mapping[str, ClusterReport]) -> Account:
    beneath = round_robin([reports[cluster].chunks for cluster in point.reports], lambda chunk: chunk)
    return Account(
        number=number,
        text=point.text,
        score=point.score,
        chunks=tuple(dict.fromkeys((*point.chunks, *beneath)))[:MAX_CHUNKS],
    )


async def _fitting(
    hits: Sequence[Hit], view: ReadView, first: int, budget: int, tokenizer: Tokenizer
) -> tuple[list[Account], tuple[str, ...]]:
    """Return the reports that fit, numbered from `first`, and the ids of the others.

    The first that does not fit whole is shown without its last findings, where that helps, and ends the section.
    """
    taken: list[Account] = []
    kept: set[str] = set()
    spent = 0
    for start in range(0, len(hits), BATCH):
        reports = await view.cluster_reports([hit.id for hit in hits[start : start + BATCH]])
        whole = [_of_report(number, report) for number, report in enumerate(reports, first + len(taken))]
        costs = [_cost(account, tokenizer) for account in whole]
        n_whole = n_fitting(costs, budget - spent)
        taken += whole[:n_whole]
        kept.update(report.cluster for report in reports[:n_whole])
        spent += sum(costs[:n_whole])
        if n_whole < len(reports):
            if shorter := _shortened(first + len(taken), reports[n_whole], budget - spent, tokenizer):
                taken.append(shorter)
                kept.add(reports[n_whole].cluster)
            break
    return taken, tuple(hit.id for hit in hits if hit.id not in kept)


def _of_report(number: int, report: ClusterReport) -> Account:
    return Account(
        number=number,
        text=report_text(replace(report, title="")),
        title=report.title or report.cluster,
        chunks=report.chunks[:MAX_CHUNKS],
    )


def _shortened(number: int, report: ClusterReport, budget: int, tokenizer: Tokenizer) -> Account | None:
    """Return the report with as many findings as fit, None where not even its summary does."""
    for n_findings in reversed(range(len(report.findings))):
        account = _of_report(number, replace(report, findings=report.findings[:n_findings]))
        if _cost(account, tokenizer) <= budget:
            return account
    return None


def _cost(account: Account, tokenizer: Tokenizer) -> int:
    return tokenizer.count(f"{account.block(_ANY_BOUNDARY)}\n\n")
