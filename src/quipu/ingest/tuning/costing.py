"""Costing: what it would take to tune with a model, by typical figures; nothing is asked."""

import asyncio
from dataclasses import replace

from quipu.ingest.estimate import DocumentSurvey, estimate_cost
from quipu.ingest.tuning.asking import SAMPLE_TOKENS, suggestion_request
from quipu.ingest.tuning.means import Means
from quipu.ingest.tuning.passages import MAX_EXAMPLES, short_texts
from quipu.ingest.tuning.sampling import Sample
from quipu.model.tuning import TuningCost
from quipu.model.usage import Range
from quipu.prompts import tuning as prompt

_OUTPUT = Range(low=300, likely=800, high=prompt.MAX_OUTPUT_TOKENS)  # tokens, of a suggestion
_CALLS = Range(low=2, likely=2, high=4)  # one asks whether the model answers, one or two for a suggestion


async def cost_of(sample: Sample, means: Means) -> TuningCost | None:
    """Return what asking a model about a sample would take; None where none is asked."""
    if means.llm is None:
        return None
    ingest_config, price = means.ingest_config, means.price
    texts = await asyncio.to_thread(short_texts, sample.read, MAX_EXAMPLES)
    shown = [replace(each.chunk, text=each.text, n_tokens=ingest_config.tokenizer.count(each.text)) for each in texts]
    chunks = [*shown, *sample.compared, *sample.compared]
    found = DocumentSurvey(unread={str(place): chunk for place, chunk in enumerate(chunks)}, n_chunks=len(chunks))
    told = estimate_cost(
        found, ingest_config, model=means.model, price=price, concurrency=means.concurrency, measured=None
    )
    messages = suggestion_request(sample.read, means, SAMPLE_TOKENS[0]).messages
    n = sum(ingest_config.tokenizer.count(message.text) for message in messages)
    sent = Range(low=n, likely=n, high=2 * n)  # twice, where the first reply is of no use
    money = None
    if told.cost is not None and price is not None:
        money = told.cost.plus(sent.times(price.input).plus(_OUTPUT.times(price.output)))
    return TuningCost(
        model=means.model,
        calls=told.calls.plus(_CALLS),
        input_tokens=told.input_tokens.plus(sent),
        output_tokens=told.output_tokens.plus(_OUTPUT),
        money=money,
    )
