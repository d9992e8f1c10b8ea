"""An overview of one section of a document of many chunks: quotes from there alone, whichever way it is named."""

from pathlib import Path

import pytest

from quipu import sync

STAVES = {"ONE": ("THE SALT", "salt"), "TWO": ("THE SILK", "silk"), "THREE": ("THE END OF IT", "amber")}


def _tale(folder: Path) -> Path:
    """Write a tale of three staves of many chunks each; each is about its own ware."""
    staves = [
        f"STAVE {number}\n\n{heading}\n\n"
        + "\n\n".join(
            f"On day {day} the caravan carried {ware} over the steppe, and nobody whom they met at the wells or in the "
            f"towns by the river had ever seen so much {ware} in one place. They rested where the road turns north."
            for day in range(40)
        )
        for number, (heading, ware) in STAVES.items()
    ]
    file = folder / "tale.txt"
    file.write_text("The Tale\n\n" + "\n\n".join(staves), encoding="utf-8")
    return file


@pytest.mark.parametrize(
    "question", ["What happens in stave two?", "Summarise chapter 2 of the Tale.", "О чём часть II?"]
)
def test_an_overview_of_a_section_quotes_it_alone(tmp_path: Path, question: str) -> None:
    with sync.open(tmp_path / "index") as kb:
        kb.add(_tale(tmp_path))
        (document,) = kb.documents()
        assert document.n_chunks > 6
        answer = kb.query(question)
        assert answer.is_supported and answer.text.startswith("The Tale › STAVE TWO\n")
        assert len(answer.citations) > 2
        assert all("silk" in citation.quote or "They rested" in citation.quote for citation in answer.citations)
        assert not any(ware in citation.quote for citation in answer.citations for ware in ("salt", "amber"))
        assert not kb.query("What happens in stave four?").is_supported
