"""The live model: the one whose vectors are searched, while those of another may be computed beside them."""

from sqlalchemy import select

from quipu.stores.relational import schema as s

LIVE = select(s.model.c.rid).where(s.model.c.state == "live").scalar_subquery()
# Nearly all vectors are of it: "+ 0" keeps the planner from starting with them.
IS_LIVE = (s.vector.c.model + 0) == LIVE
