"""A filter on a metadata field that no document has says so, with the fields that exist."""

from pathlib import Path

import quipu
from quipu.model.query import Condition, Filter


def _where(*fields: str) -> Filter:
    return Filter(where=tuple(Condition(field=field, operator="=", value="1271") for field in fields))


async def test_an_answer_names_the_fields_that_no_document_has(tmp_path: Path) -> None:
    async with quipu.open(tmp_path / "index") as kb:
        await kb.add_text("Marco Polo left Venice.", metadata={"year": "1271", "region": "Asia"})
        misspelt = await kb.query("Who left Venice?", filter=_where("yaer", "year"))
        right = await kb.query("Who left Venice?", filter=_where("year"))
    assert not misspelt.is_supported
    assert misspelt.notes == ("No document has the metadata field 'yaer'; there are: region, year.",)
    assert right.is_supported
    assert not right.trace.evidence.omissions


async def test_a_field_that_exists_with_another_value_is_not_called_unknown(tmp_path: Path) -> None:
    async with quipu.open(tmp_path / "index") as kb:
        await kb.add_text("Marco Polo left Venice.", metadata={"year": "1298"})
        evidence = await kb.retrieve("Who left Venice?", filter=_where("year"))
        without_metadata = await kb.retrieve("Who left Venice?", filter=_where("place"))
    assert not evidence.omissions
    assert without_metadata.omissions == ("No document has the metadata field 'place'; there are: year.",)
