"""The derivation lease: one store at a time holds it, until it is released or it ends."""

from contextlib import AsyncExitStack

import pytest

from quipu.errors import Stale
from quipu.ports.store import Store
from quipu.testing.contract.steps import DIMENSION, MODEL, OpenStore, embed, publish
from quipu.testing.facts import document

_EXPIRED = -1.0
_NEXT = "tests/next"


class TurnsContract:
    """What is promised of the derivation lease."""

    async def test_one_store_at_a_time_holds_the_derivation_lease(self, open_store: OpenStore) -> None:
        async with open_store() as first, open_store() as second:
            async with first.derivation_lease() as is_held:
                assert is_held
                for _ in range(2):  # who does not hold it releases nothing
                    assert not await _is_free_for(second)
            async with second.derivation_lease() as is_held:
                assert is_held
                assert not await _is_free_for(first)

    async def test_the_holder_acquires_the_derivation_lease_again(self, open_store: OpenStore) -> None:
        async with open_store() as store, store.derivation_lease() as is_held:
            assert (is_held, await _is_free_for(store)) == (True, True)

    async def test_the_derivation_lease_is_released_after_an_error(self, open_store: OpenStore) -> None:
        async with open_store() as first, open_store() as second:
            with pytest.raises(ZeroDivisionError):
                async with first.derivation_lease():
                    raise ZeroDivisionError
            assert await _is_free_for(second)

    async def test_an_expired_derivation_lease_is_free_until_its_new_holder_renews_it(
        self, open_store: OpenStore
    ) -> None:
        async with open_store(lease_s=_EXPIRED) as slow, open_store() as store, AsyncExitStack() as leases:
            async with slow.derivation_lease() as is_held:
                assert is_held
                assert await leases.enter_async_context(store.derivation_lease())
                await slow.renew_leases()
            assert not await _is_free_for(slow)
            await store.renew_leases()
            assert not await _is_free_for(slow)

    async def test_purge_leaves_a_second_set_of_vectors_alone_while_anybody_holds_the_lease(
        self, open_store: OpenStore
    ) -> None:
        async with open_store() as first, open_store() as second:
            await first.set_embedder(MODEL, DIMENSION)
            await publish(first, document("a", "One."))
            async with first.derivation_lease(), first.reembedding(_NEXT, DIMENSION):
                assert await embed(first, _NEXT) == ["One."]
                await second.purge()
                await first.purge()

    async def test_purge_drops_a_second_set_of_vectors_when_nobody_holds_the_lease(self, open_store: OpenStore) -> None:
        async with open_store(lease_s=_EXPIRED) as first, open_store() as second:
            await first.set_embedder(MODEL, DIMENSION)
            await publish(first, document("a", "One."))
            with pytest.raises(Stale):
                async with first.derivation_lease(), first.reembedding(_NEXT, DIMENSION):
                    await embed(first, _NEXT)
                    await second.purge()


async def _is_free_for(store: Store) -> bool:
    async with store.derivation_lease() as is_held:
        return is_held
