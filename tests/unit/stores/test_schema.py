"""Tests of the schema: what the tables promise on every database, read from their definitions."""

import pytest
from sqlalchemy import BigInteger, Float, Integer, LargeBinary, Table, Text
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateTable

from quipu.stores.relational.schema import metadata


@pytest.mark.parametrize("table", metadata.sorted_tables, ids=str)
def test_numbers_have_64_bits_and_texts_are_ordered_by_code_point_on_postgresql(table: Table) -> None:
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    definition = str(CreateTable(table).compile(dialect=dialect))
    columns = [line.strip().rstrip(",") for line in definition.splitlines() if line.startswith("\t")]
    kinds = {line.split()[0].strip('"'): line for line in columns}
    for column in table.c:
        kind = column.type.dialect_impl(dialect)
        assert isinstance(kind, BigInteger | Float | LargeBinary | Text) or not isinstance(kind, Integer)
        if isinstance(kind, BigInteger):
            assert "BIG" in kinds[column.name]
        elif not isinstance(kind, Float | LargeBinary):
            assert 'TEXT COLLATE "C"' in kinds[column.name]
