"""Allowance: how many tokens a reply may have and how many entities it is asked for, by the size of the chunk.

Steps after EdgeQuake: 4,096, 8,192 and 16,384 tokens. A reply usually takes half the tokens of its chunk, a model that
thinks first several times that.
"""

STEPS = ((1_500, 4_096), (4_000, 8_192))
LARGEST_STEP = 16_384
MIN_ENTITIES = 10
TOKENS_AN_ENTITY = 40


def output_tokens(chunk_tokens: int, at_most: int) -> int:
    """Return the limit of the first reply to a chunk of so many tokens."""
    step = next((tokens for size, tokens in STEPS if chunk_tokens <= size), LARGEST_STEP)
    return min(step, at_most)


def entity_limit(chunk_tokens: int) -> int:
    """Return how many entities a reply may name: 10 and one more for every 40 tokens, 40 for a chunk of 1,200."""
    return MIN_ENTITIES + chunk_tokens // TOKENS_AN_ENTITY
