"""The turn to derive: one store at a time has it, until it is given back or the lease ends."""

from quipu.testing.contract.steps import OpenStore

_EXPIRED = -1.0


class Turns:
    """What is promised of the turn to derive."""

    async def test_one_store_at_a_time_has_the_turn_to_derive(self, open_store: OpenStore) -> None:
        async with open_store() as first, open_store() as second:
            assert await first.begin_deriving()
            assert not await second.begin_deriving()
            assert await first.begin_deriving()
            await second.end_deriving()
            assert not await second.begin_deriving()
            await first.end_deriving()
            assert await second.begin_deriving()
            assert not await first.begin_deriving()

    async def test_a_turn_whose_lease_has_ended_is_anybodys_until_it_is_renewed(self, open_store: OpenStore) -> None:
        async with open_store(lease_s=_EXPIRED) as slow, open_store() as store:
            assert await slow.begin_deriving()
            assert await store.begin_deriving()
            await slow.renew()
            await slow.end_deriving()
            assert not await slow.begin_deriving()
            await store.renew()
            assert not await slow.begin_deriving()
