"""Tests of what is drawn by chance."""

from math import log
from statistics import fmean, stdev

from quipu.testing.scripted.fault_injection import FaultInjector, RequestDraw
from quipu.testing.scripted.script import Fault, FaultName, Latency, RequestKind, Script, fault_mix

KEYS = [str(n) for n in range(2000)]


def draw(fate: FaultInjector, key: str, kind: RequestKind = RequestKind.EXTRACT, text: str = "") -> RequestDraw:
    return fate.draw(kind, key, text)


def names(lots: list[RequestDraw]) -> list[FaultName | None]:
    return [lot.fault.name if lot.fault else None for lot in lots]


def test_lots_do_not_depend_on_the_order_of_arrival() -> None:
    script = Script(latency=Latency(mean_s=1, sigma=1), faults=fault_mix(*FaultName, probability=0.5))
    forwards, backwards = FaultInjector(script), FaultInjector(script)
    first = {key: draw(forwards, key) for key in KEYS[:200]}
    assert {key: draw(backwards, key) for key in reversed(KEYS[:200])} == first


def test_another_seed_or_attempt_gives_another_lot() -> None:
    script = Script(latency=Latency(mean_s=1, sigma=1))
    fate = FaultInjector(script)
    latencies = [draw(fate, "a").latency_s, draw(fate, "a").latency_s]
    latencies.append(draw(FaultInjector(Script(seed="1", latency=script.latency)), "a").latency_s)
    assert len(set(latencies)) == 3


def test_attempts_are_counted_for_each_request() -> None:
    fate = FaultInjector(Script())
    assert [draw(fate, key).attempt for key in "aabaab"] == [1, 2, 1, 3, 4, 2]


def test_latency_has_the_mean_and_the_spread_asked_for() -> None:
    fate = FaultInjector(Script(latency=Latency(mean_s=2, sigma=0.5)))
    drawn = [draw(fate, key).latency_s for key in KEYS]
    assert abs(fmean(drawn) - 2) < 0.06
    assert abs(stdev(log(each) for each in drawn) - 0.5) < 0.02


def test_latency_without_spread_is_constant() -> None:
    assert draw(FaultInjector(Script(latency=Latency(mean_s=2))), "a").latency_s == 2


def test_faults_strike_about_as_often_as_asked_for() -> None:
    script = Script(faults=fault_mix(FaultName.RESET, FaultName.SERVER_ERROR, probability=0.2))
    fate = FaultInjector(script)
    struck = names([draw(fate, key) for key in KEYS])
    assert abs(struck.count(FaultName.RESET) / len(KEYS) - 0.1) < 0.02
    assert abs(1 - struck.count(None) / len(KEYS) - 0.2) < 0.03


def test_a_fault_strikes_the_calls_it_numbers_among_those_it_can_strike() -> None:
    fate = FaultInjector(Script(faults=(Fault(name=FaultName.RESET, calls=(2,), kinds=(RequestKind.ANSWER,)),)))
    kinds = [RequestKind.EXTRACT, RequestKind.ANSWER, RequestKind.EXTRACT, RequestKind.ANSWER, RequestKind.ANSWER]
    lots = [draw(fate, str(place), kind) for place, kind in enumerate(kinds)]
    assert names(lots) == [None, None, None, FaultName.RESET, None]


def test_a_fault_may_strike_first_attempts_only() -> None:
    fate = FaultInjector(Script(faults=(Fault(name=FaultName.RESET, attempts=(1,)),)))
    assert names([draw(fate, key) for key in "aab"]) == [FaultName.RESET, None, FaultName.RESET]


def test_a_fault_may_choose_requests_by_their_text() -> None:
    fate = FaultInjector(Script(faults=(Fault(name=FaultName.RESET, containing="Ithaca"),)))
    assert names([draw(fate, "a", text="to Ithaca"), draw(fate, "b", text="to Troy")]) == [FaultName.RESET, None]


def test_the_first_fault_that_strikes_is_the_one() -> None:
    fate = FaultInjector(Script(faults=(Fault(name=FaultName.RESET, calls=(2,)), Fault(name=FaultName.EMPTY))))
    assert names([draw(fate, key) for key in "abc"]) == [FaultName.EMPTY, FaultName.RESET, FaultName.EMPTY]


def test_a_fault_leaves_alone_what_it_means_nothing_for() -> None:
    fate = FaultInjector(Script(faults=(Fault(name=FaultName.DIMENSION), Fault(name=FaultName.SWAPPED))))
    kinds = [RequestKind.EXTRACT, RequestKind.ANSWER, RequestKind.EMBED, RequestKind.RERANK]
    assert names([draw(fate, kind, kind) for kind in kinds]) == [FaultName.SWAPPED, None, FaultName.DIMENSION, None]
