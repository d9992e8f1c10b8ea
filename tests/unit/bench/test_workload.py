"""The texts and replies that both sides of the comparison are given."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from benchmarks.speed import workload
from benchmarks.speed.workload import CHUNKS_PER_DOCUMENT, ENTITIES_PER_CHUNK, OVERLAP, STRIDE, WINDOW, Embedding, Texts


@pytest.fixture(scope="module")
def texts() -> Texts:
    return Texts()


def windows(text: str) -> list[str]:
    """Return the windows of a text as LightRAG cuts them."""
    tokens = workload.tokens(text)
    return ["".join(tokens[start : start + WINDOW]) for start in range(0, len(tokens), STRIDE)]


def test_a_document_is_exactly_ten_windows_of_about_67_kb(texts: Texts) -> None:
    text = texts.document(7)
    assert "".join(workload.tokens(text)) == text
    assert len(workload.tokens(text)) == 11_000
    assert len(windows(text)) == CHUNKS_PER_DOCUMENT
    assert 64_000 < len(text.encode()) < 71_000
    assert len(windows(texts.document(7, 1))) == 1


def test_a_document_depends_on_its_number_alone(texts: Texts) -> None:
    assert Texts().document(7) == texts.document(7)
    assert texts.document(7) != texts.document(8)
    assert Texts(seed=2).document(7) != texts.document(7)


def test_windows_and_paragraphs_name_the_same_eight(texts: Texts) -> None:
    text = texts.document(7)
    by_window = [workload.names(window) for window in windows(text)]
    assert by_window == [workload.names(paragraph) for paragraph in text.split("\n\n")]
    assert {len(set(found)) for found in by_window} == {ENTITIES_PER_CHUNK}
    assert not workload.names("".join(workload.tokens(text)[STRIDE : STRIDE + OVERLAP]))


def test_some_names_are_named_far_more_often_than_others(texts: Texts) -> None:
    counts = Counter(name for number in range(40) for name in workload.names(texts.document(number)))
    (_, most), *_ = counts.most_common(1)
    assert most > 50
    assert sum(1 for n in counts.values() if n == 1) > len(counts) / 2


def test_a_name_is_described_by_the_sentence_it_stands_in(texts: Texts) -> None:
    text = texts.document(7)
    found = workload.entities(windows(text)[3])
    assert [one.name for one in found] == workload.names(windows(text)[3])
    for one in found:
        assert one.name in one.description
        assert one.description in text
        assert one.description.count(".") == 1


def test_relations_go_round_in_a_ring(texts: Texts) -> None:
    found = workload.entities(windows(texts.document(7))[3])
    ring = workload.relations(found)
    assert [one.source for one in ring] == [one.name for one in found]
    assert [one.target for one in ring] == [one.name for one in (*found[1:], found[0])]
    assert all(one.source in one.description and one.target in one.description for one in ring)


def test_questions_differ_and_name_what_is_in_the_first_documents(texts: Texts) -> None:
    known = {name for number in range(20) for name in workload.names(texts.document(number))}
    questions = texts.questions()
    assert len(set(questions)) == len(questions) == workload.N_QUESTIONS
    assert Counter(len(workload.names(question)) for question in questions).keys() == {1, 2, 3}
    assert {name for question in questions for name in workload.names(question)} <= known


def test_vectors_are_units_depend_on_their_text_alone_and_are_never_far_apart(texts: Texts) -> None:
    chunks = [*windows(texts.document(7)), *texts.questions(3)]
    vectors = Embedding().vectors(chunks)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    assert np.array_equal(Embedding().vectors(chunks[5:6])[0], vectors[5])
    assert (vectors @ vectors.T).min() > 0.2
    assert np.isfinite(Embedding().vectors([""])).all()


def test_documents_are_written_once(tmp_path: Path, texts: Texts) -> None:
    paths = workload.document_paths(tmp_path, 20)
    workload.write(paths, CHUNKS_PER_DOCUMENT, texts)
    assert [path.read_text("utf-8") for path in paths] == [texts.document(0), texts.document(1)]
    paths[0].write_text("kept", "utf-8")
    workload.write(paths, CHUNKS_PER_DOCUMENT, texts)
    assert paths[0].read_text("utf-8") == "kept"
    assert not set(paths) & set(workload.addition_paths(tmp_path, 5, 1))
