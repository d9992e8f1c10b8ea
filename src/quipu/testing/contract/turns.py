"""The turn to derive: one store at a time has it, until it is given back or the lease ends."""

import pytest

from quipu.errors import QuipuError
from quipu.testing.contract.steps import DIMENSION, MODEL, OpenStore, embed, publish
from quipu.testing.facts import document

_EXPIRED = -1.0
_NEXT = "tests/next"


class TurnsContract:
    """What is promised of the turn to derive."""

    async def test_one_store_at_a_time_has_the_turn_to_derive(self, open_store: OpenStore) -> None:
        async with open_store() as first, open_store() as second:
            assert await first.acquire_derivation_lease()
            assert not await second.acquire_derivation_lease()
            assert await first.acquire_derivation_lease()
            await second.release_derivation_lease()
            assert not await second.acquire_derivation_lease()
            await first.release_derivation_lease()
            assert await second.acquire_derivation_lease()
            assert not await first.acquire_derivation_lease()

    async def test_a_turn_whose_lease_has_ended_is_anybodys_until_it_is_renewed(self, open_store: OpenStore) -> None:
        async with open_store(lease_s=_EXPIRED) as slow, open_store() as store:
            assert await slow.acquire_derivation_lease()
            assert await store.acquire_derivation_lease()
            await slow.renew_leases()
            await slow.release_derivation_lease()
            assert not await slow.acquire_derivation_lease()
            await store.renew_leases()
            assert not await slow.acquire_derivation_lease()

    async def test_purge_leaves_a_second_set_of_vectors_alone_while_anybody_has_the_turn(
        self, open_store: OpenStore
    ) -> None:
        async with open_store() as first, open_store() as second:
            await first.set_embedder(MODEL, DIMENSION)
            await publish(first, document("a", "One."))
            assert await first.acquire_derivation_lease()
            await first.begin_reembedding(_NEXT, DIMENSION)
            assert await embed(first, _NEXT) == ["One."]
            await second.purge()
            await first.purge()
            await first.finish_reembedding(_NEXT)

    async def test_purge_drops_a_second_set_of_vectors_when_nobody_has_the_turn(self, open_store: OpenStore) -> None:
        async with open_store(lease_s=_EXPIRED) as first, open_store() as second:
            await first.set_embedder(MODEL, DIMENSION)
            await publish(first, document("a", "One."))
            assert await first.acquire_derivation_lease()
            await first.begin_reembedding(_NEXT, DIMENSION)
            await embed(first, _NEXT)
            await second.purge()
            with pytest.raises(QuipuError):
                await first.finish_reembedding(_NEXT)
