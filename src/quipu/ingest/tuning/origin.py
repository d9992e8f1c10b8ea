"""Origin: what a suggestion is made from, in words a reader of the file can compare with an index and its settings."""

from quipu.ingest.documents import IngestConfig
from quipu.ingest.tuning.means import Means
from quipu.ingest.tuning.sampling import Pool, Sample, Sizes
from quipu.model.graph import Chunk
from quipu.model.ids import digest
from quipu.model.tuning import TuningOrigin

_DIGITS = 12  # of a digest that is shown


def origin_of(sample: Sample, pool: Pool, sizes: Sizes, means: Means) -> TuningOrigin:
    """Return what is made from a sample of a pool with these means."""
    looked_at = (_told(chunk) for chunk in (*sample.read, *sample.compared, *sample.counted))
    return TuningOrigin(
        revision=pool.revision,
        n_documents=pool.n_documents,
        sample=digest("sample", str(len(sample.read)), str(len(sample.compared)), *looked_at)[:_DIGITS],
        settings=(
            ("sample", str(sizes.n_sample)),
            ("compare", str(sizes.n_compare)),
            *_settings(means),
            ("chunking", _chunking(means.ingest_config)),
        ),
    )


def _told(chunk: Chunk) -> str:
    """Return what identifies a chunk and all that is read of it, which is more than its text."""
    return digest(chunk.document_id, chunk.text_hash, chunk.title, chunk.header, *chunk.headings)


def _settings(means: Means) -> tuple[tuple[str, str], ...]:
    """Return what reads chunks, with a digest of all it depends on, and what of that is set by a user."""
    if means.reader is None:
        return (("extractor", means.ingest_config.extractor.identity),)
    options = means.options
    ontology = options.ontology
    return (
        ("extractor", means.ingest_config.extractor.identity),
        ("extraction_format", options.format),
        ("max_gleaning", str(options.max_gleaning)),
        ("always_glean", str(options.always_glean).lower()),
        ("claims", str(options.with_claims).lower()),
        ("language", options.language or "that of the text"),
        (
            "ontology",
            f"{len(ontology.types)} types, {len(ontology.relations)} relations, {len(ontology.glossary)} terms",
        ),
        ("ontology_mode", "strict" if ontology.is_strict else "soft"),
    )


def _chunking(ingest_config: IngestConfig) -> str:
    return "; ".join(
        (
            *(f"{rule.match}: {rule.chunking.to_json()}" for rule in ingest_config.rules),
            ingest_config.chunking.to_json(),
        )
    )
