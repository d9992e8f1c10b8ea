"""Settings: precedence, origins, and errors a person can act on."""

import os
from pathlib import Path

import pytest

from quipu.errors import InvalidInput
from quipu.model.chat import Role
from quipu.model.chunking import Chunking, ChunkingRule
from quipu.model.usage import Price, SpendingLimit
from quipu.settings import EffectiveSetting, Settings, effective, unknown_variables
from quipu.settings.sources import find_key, find_secrets
from quipu.settings.tables import ModelPrice, fields_of_tables, is_database_address


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [each for each in os.environ if each.startswith("QUIPU_")]:
        monkeypatch.delenv(name)


def _setting(settings: Settings, name: str) -> EffectiveSetting:
    return next(each for each in effective(settings) if each.name == name)


def test_without_anything_given_every_setting_is_its_default() -> None:
    assert {each.origin for each in effective(Settings())} == {"default"}
    assert Settings().index == Path(".quipu")


def test_an_argument_wins_over_the_environment_that_over_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("quipu.toml").write_text("# ours\ntop_k = 3\nchunk_top_k = 4\nrelated_chunks = 5\n")
    monkeypatch.setenv("QUIPU_TOP_K", "6")
    monkeypatch.setenv("QUIPU_CHUNK_TOP_K", "7")
    settings = Settings(top_k=8)
    query = settings.query("Who?")
    assert (query.top_k, query.chunk_top_k, query.related_chunks) == (8, 7, 5)
    assert _setting(settings, "top_k").origin == "argument"
    assert _setting(settings, "chunk_top_k").origin == "environment QUIPU_CHUNK_TOP_K"
    assert _setting(settings, "related_chunks").origin == "quipu.toml:4"


def test_none_as_an_argument_counts_as_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIPU_TOP_K", "6")
    assert Settings(top_k=None).query("Who?").top_k == 6


def test_an_empty_variable_counts_as_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIPU_TOP_K", "")
    assert _setting(Settings(), "top_k").origin == "default"


def test_the_file_beside_the_index_is_read_where_the_current_folder_has_none(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "quipu.toml").write_text("top_k = 9\n")
    settings = Settings(index="data/kb")
    assert settings.query("Who?").top_k == 9
    assert _setting(settings, "top_k").origin == str(Path("data/quipu.toml")) + ":1"


def test_the_current_folders_file_wins_over_the_one_beside_the_index(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "quipu.toml").write_text("top_k = 9\n")
    Path("quipu.toml").write_text("top_k = 3\n")
    assert Settings(index="data/kb").query("Who?").top_k == 3


def test_a_named_file_is_read_instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("quipu.toml").write_text("top_k = 3\n")
    Path("other.toml").write_text("top_k = 4\n")
    monkeypatch.setenv("QUIPU_CONFIG", "other.toml")
    assert Settings().query("Who?").top_k == 4


def test_a_path_in_a_file_is_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "mine.toml").write_text('index = "kb"\nrecord = "tape"\n')
    settings = Settings(config="conf/mine.toml")
    assert (settings.index, settings.record) == (Path("conf/kb"), Path("conf/tape"))


def test_a_value_out_of_range_names_setting_value_origin_and_range(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIPU_TOP_K", "0")
    with pytest.raises(InvalidInput) as raised:
        Settings()
    assert raised.value.message == "top_k = '0' (environment QUIPU_TOP_K) is not allowed."
    assert raised.value.remedy == "Use a whole number from 1 to 1,000."


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("top_k", "many"),
        ("top_k", 1.5),
        ("community_level", True),
        ("min_similarity", False),
        ("chunk_tokens", True),
        ("min_similarity", float("nan")),
        ("chunk_tokens", 3),
        ("strategy", ""),
        ("extractor", "gpt"),
        ("ocr_languages", "deu,eng"),
        ("index", ""),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(name: str, value: str | float) -> None:
    with pytest.raises(InvalidInput, match=rf"^{name} = .* \(argument\) is not allowed\. Use "):
        Settings(**{name: value})


def test_auto_chunk_tokens_undo_a_number_in_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("quipu.toml").write_text("chunk_tokens = 800\n")
    assert Settings().chunk_tokens == 800
    monkeypatch.setenv("QUIPU_CHUNK_TOKENS", "auto")
    assert Settings().chunk_tokens is None


def test_an_unknown_key_in_the_file_names_the_line_and_the_closest_setting() -> None:
    Path("quipu.toml").write_text("top_k = 3\n\nchunk-top-k = 4\n")
    with pytest.raises(InvalidInput, match=r"no setting chunk-top-k \(quipu\.toml:3\)\. Did you mean chunk_top_k\?"):
        Settings()


def test_an_option_that_is_several_settings_names_them_all() -> None:
    Path("quipu.toml").write_text("mix_weights = 2\n")
    with pytest.raises(InvalidInput, match=r"mix_weights .*Set entity_weight, relation_weight and vector_weight\.$"):
        Settings()


def test_an_unknown_table_in_the_file_is_refused() -> None:
    Path("quipu.toml").write_text("[query]\ntop_k = 3\n")
    with pytest.raises(InvalidInput, match=r"no setting query \(quipu\.toml:1\)"):
        Settings()


def test_an_unknown_argument_names_the_closest_setting() -> None:
    with pytest.raises(InvalidInput, match=r"no setting topk \(argument\)\. Did you mean top_k\?"):
        Settings(topk=3)


def test_a_file_that_is_not_toml_is_refused_with_the_place() -> None:
    Path("quipu.toml").write_text("top_k = \n")
    with pytest.raises(InvalidInput, match=r"^quipu\.toml cannot be read: .*line 1"):
        Settings()


def test_a_named_file_that_is_missing_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"config = 'none\.toml' \(argument\) is not a file"):
        Settings(config="none.toml")


def test_a_file_cannot_name_another_file() -> None:
    Path("quipu.toml").write_text('config = "other.toml"\n')
    with pytest.raises(InvalidInput, match="config cannot be set in a settings file"):
        Settings()


def test_variables_that_name_no_setting_are_found_with_the_closest_that_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIPU_TOPK", "3")
    assert ("QUIPU_TOPK", "QUIPU_TOP_K") in unknown_variables()


def test_a_query_takes_its_options_from_the_settings() -> None:
    query = Settings(strategy="naive", top_k=3, entity_tokens=10, total_tokens=99).query("Who?")
    assert (query.text, query.strategy, query.top_k) == ("Who?", "naive", 3)
    assert (query.budget.entities, query.budget.total) == (10, 99)


RULES = """\
top_k = 3

[[chunking]]
match = "minutes/*.md"
chunker = "separator"
chunk_separator = "\\n---\\n"

[[chunking]]
match = "logs/*"
chunker = "fixed"
chunk_tokens = 512
chunk_overlap = 64
"""


def test_rules_say_how_some_documents_are_cut() -> None:
    Path("quipu.toml").write_text(RULES)
    settings = Settings()
    assert settings.chunking == (
        ChunkingRule(match="minutes/*.md", chunking=Chunking(method="separator", separator="\n---\n")),
        ChunkingRule(match="logs/*", chunking=Chunking(method="fixed", max_tokens=512, overlap=64)),
    )
    assert settings.default_chunking == Chunking()
    shown = _setting(settings, "chunking")
    assert (shown.value, shown.origin) == ("minutes/*.md: separator, logs/*: fixed", "quipu.toml:3")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("chunk_tokens = 512", "chunk_tokens = 5", r"^chunk_tokens = 5 \(quipu\.toml:8\) is not allowed\. Use a whole"),
        (
            "chunk_tokens = 512",
            "chunk_token = 5",
            r"no chunking rule setting chunk_token \(quipu\.toml:8\)\. Did you mean",
        ),
        ('chunker = "fixed"', "", r"^A chunking rule needs chunker \(quipu\.toml:8\)\. Give structure or fixed or"),
        ('"fixed"', '"fixd"', r"^chunker = 'fixd' \(quipu\.toml:8\) is not allowed"),
        (
            "overlap = 64",
            "overlap = 512",
            r"chunks of 512 tokens \(quipu\.toml:8\)\. Use an overlap that is smaller",
        ),
        ('match = "minutes/*.md"', "", r"^A chunking rule needs match \(quipu\.toml:3\)"),
        ("top_k = 3", "top_k = 3\nchunking = 3", "quipu.toml cannot be read"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused_with_its_place(old: str, new: str, complaint: str) -> None:
    Path("quipu.toml").write_text(RULES.replace(old, new))
    with pytest.raises(InvalidInput, match=complaint):
        Settings()


@pytest.mark.parametrize("text", ["chunking = 3", "chunking = [3]", '[chunking]\nmatch = "x"'])
def test_rules_that_are_no_tables_are_refused(text: str) -> None:
    Path("quipu.toml").write_text(text)
    with pytest.raises(InvalidInput, match=r"(^chunking = .*|^3) \(quipu\.toml:1\) is not"):
        Settings()


def test_rules_stand_in_a_file_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIPU_CHUNKING", "[]")
    with pytest.raises(InvalidInput, match=r"environment QUIPU_CHUNKING.*Use \[\[chunking\]\] tables in quipu.toml"):
        Settings()


def test_a_chunker_takes_of_the_settings_what_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("quipu.toml").write_text('chunker = "fixed"\nchunk_tokens = 512\nchunk_overlap = 64\n')
    assert Settings().default_chunking == Chunking(method="fixed", max_tokens=512, overlap=64)
    monkeypatch.setenv("QUIPU_CHUNKER", "structure")
    assert Settings().default_chunking == Chunking(max_tokens=512)


def test_settings_of_a_chunker_that_do_not_fit_together_name_where_each_came_from() -> None:
    Path("quipu.toml").write_text("chunk_tokens = 64\nchunk_overlap = 64\n")
    assert Settings().default_chunking == Chunking(max_tokens=64)
    with pytest.raises(InvalidInput) as raised:
        Settings(chunker="fixed")
    assert raised.value.message == (
        "An overlap of 64 tokens is too large for chunks of 64 tokens"
        " (chunker: argument, chunk_tokens: quipu.toml:1, chunk_overlap: quipu.toml:2)."
    )


def test_every_setting_has_a_description_and_says_what_it_takes() -> None:
    assert all(each.description.endswith(".") and each.allowed for each in effective(Settings()))


def test_a_model_in_a_folder_beside_the_file_is_found_and_a_name_stays_one(tmp_path: Path) -> None:
    (tmp_path / "models/tuned").mkdir(parents=True)
    for value, expected in (("models/tuned", str(tmp_path / "models/tuned")), ("some/model", "some/model")):
        file = tmp_path / "quipu.toml"
        file.write_text(f'embedder = "sentence-transformers"\nembedder_model = "{value}"\n', encoding="utf-8")
        assert Settings(config=file).embedder_model == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5.00", SpendingLimit(cost=5_000_000)),
        ("$0.5", SpendingLimit(cost=500_000)),
        ("2M tokens", SpendingLimit(tokens=2_000_000)),
        ("200_000 tokens, 1.25", SpendingLimit(tokens=200_000, cost=1_250_000)),
        ("1 call", SpendingLimit(calls=1)),
        ("1.5k calls", SpendingLimit(calls=1_500)),
    ],
)
def test_budgets_are_read_as_people_write_them(text: str, expected: SpendingLimit) -> None:
    assert Settings(budget=text).spending == expected


@pytest.mark.parametrize(
    "text", ["", "much", "5 francs", "5, 6", "-1", "3 tokens, 4 tokens", "1e9", "1,5M tokens", "1,000 tokens", "5,00"]
)
def test_a_budget_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(
        InvalidInput,
        match=r"^budget = .* \(argument\) is not allowed\. Use money in the setting currency, tokens or calls",
    ):
        Settings(budget=text)


ROLE_TABLES = """\
llm = "openai/gpt-4.1-mini"

[role.extract]
llm = "ollama/qwen3:8b"
concurrency = 2
extra = { options = { num_ctx = 16384 } }

[role.answer]
fallback = "openai/gpt-4.1"

[[price]]
model = "ollama/*"
input = 0
output = 0.5
"""


def test_a_role_may_have_a_model_of_its_own() -> None:
    Path("quipu.toml").write_text(ROLE_TABLES)
    settings = Settings()
    extract, answer = settings.role
    assert (extract.role, extract.llm, extract.concurrency) == (Role.EXTRACT, "ollama/qwen3:8b", 2)
    assert extract.extra == '{"options": {"num_ctx": 16384}}'
    assert (answer.llm, answer.fallback) == (None, "openai/gpt-4.1")
    assert settings.price == (ModelPrice(model="ollama/*", price=Price(input=0, output=0.5)),)
    shown = {each.name: each.value for each in effective(settings)}
    assert shown["role"] == "extract: ollama/qwen3:8b, answer: as llm"


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("[role.extract]", "[role.extrakt]", r"no role extrakt \(quipu\.toml:3\)\. Did you mean extract"),
        ("concurrency = 2", "concurrency = true", r"^concurrency = True \(quipu\.toml:3\) is not allowed"),
        ("input = 0", "input = true", r"^input = True \(quipu\.toml:11\) is not allowed"),
        ("concurrency = 2", "concurrency = 0", r"^concurrency = 0 \(quipu\.toml:3\) is not allowed"),
        ("concurrency = 2", "concurency = 2", r"no role setting concurency \(quipu\.toml:3\)\. Did you mean"),
        ("input = 0", "", r"^A price needs input \(quipu\.toml:11\)"),
        ("input = 0", "input = -1", r"^input = -1 \(quipu\.toml:11\) is not allowed"),
        ("[role.extract]", "[role]\nextract = 3\n[other]", r"^3 \(quipu\.toml:\d\) is not a role"),
    ],
)
def test_a_role_or_price_that_cannot_be_meant_is_refused_with_its_place(old: str, new: str, complaint: str) -> None:
    Path("quipu.toml").write_text(ROLE_TABLES.replace(old, new))
    with pytest.raises(InvalidInput, match=complaint):
        Settings()


def test_the_text_of_a_prompt_stands_in_the_settings_or_in_a_file_beside_them() -> None:
    Path("conf").mkdir()
    Path("conf/rewrite.txt").write_text("Mach die Frage vollständig: {format}\n", encoding="utf-8")
    Path("conf/quipu.toml").write_text('[prompts]\nrewrite.file = "rewrite.txt"\nhypothetical_report = "Invent it."\n')
    settings = Settings(config="conf/quipu.toml")
    rewrite, report = settings.prompts
    assert (rewrite.prompt, rewrite.text) == ("rewrite", "Mach die Frage vollständig: {format}")
    assert (report.prompt, report.text) == ("hypothetical_report", "Invent it.")
    assert settings.query("Who?").prompts == settings.prompts
    assert _setting(settings, "prompts").value == "rewrite, hypothetical_report"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('sumary = "x"', r"no prompt sumary \(quipu\.toml:2\)\. Did you mean summary"),
        ('report = "Be brief. {format}"', r"report lacks \{language\}, \{max_words\} \(quipu\.toml:2\)"),
        ('rewrite = "{format} {question}"', r"rewrite has no placeholder \{question\} \(quipu\.toml:2\)"),
        (
            'rewrite.file = "absent.txt"',
            r"absent\.txt, the text of the prompt rewrite \(quipu\.toml:2\), cannot",
        ),
        ("rewrite = 3", r"rewrite = 3 \(quipu\.toml:2\) is not a text\. Use text, or rewrite\.file"),
    ],
)
def test_a_prompt_that_cannot_be_used_is_refused_with_its_place(line: str, complaint: str) -> None:
    Path("quipu.toml").write_text(f"[prompts]\n{line}\n")
    with pytest.raises(InvalidInput, match=complaint):
        Settings()


def test_keys_come_from_the_environment_or_the_secrets_and_are_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = Path("secrets.toml")
    secrets.write_text('openai = "sk-file"\nJINA_API_KEY = "jina-file"\n')
    variables = ("QUIPU_LLM_KEY", "OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    found = find_key(variables, ("openai", *variables), find_secrets(None, Path("kb")))
    assert found is not None
    assert found.value == "sk-file"
    assert "sk-file" not in repr(found)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-environment")
    found = find_key(variables, ("openai",), secrets)
    assert found is not None
    assert (found.value, found.origin) == ("sk-environment", "environment OPENAI_API_KEY")
    jina = find_key((), ("jina", "JINA_API_KEY"), secrets)
    assert jina is not None and jina.value == "jina-file"
    assert find_key(("COHERE_API_KEY",), ("cohere",), secrets) is None
    secrets.write_text('openai = "sk-secret')
    with pytest.raises(InvalidInput, match="cannot be read") as error:
        find_key(("COHERE_API_KEY",), ("openai",), secrets)
    assert "sk-secret" not in str(error.value)


ADDRESS = "https://user:hunter22@gate.example:8443/v1?key=topsecret"


@pytest.mark.parametrize("name", ["llm_base_url", "embedder_base_url", "reranker_base_url"])
def test_an_address_is_shown_without_what_is_secret_in_it(name: str) -> None:
    settings = Settings(**{name: ADDRESS})
    (shown,) = [each.value for each in effective(settings) if each.name == name]
    assert shown == "https://***@gate.example:8443/v1?***"
    assert getattr(settings, name) == ADDRESS
    assert "hunter22" not in repr(settings) and "topsecret" not in repr(settings)


@pytest.mark.parametrize(
    "address",
    [
        "ftp://user:hunter22@gate.example?key=topsecret",
        "user:hun/ter22@gate.example",
        "http://user:hunter22@[gate.example/v1?key=topsecret",
        "http://user:hunter22@gate.example:99999/v1",
    ],
)
def test_an_address_that_is_refused_is_shown_without_what_is_secret_in_it(address: str) -> None:
    with pytest.raises(InvalidInput, match=r"gate\.example.* is not allowed") as caught:
        Settings(llm_base_url=address)
    Path("quipu.toml").write_text(f'[role.answer]\nllm_base_url = "{address}"\n')
    with pytest.raises(InvalidInput, match=r"gate\.example.* is not allowed") as of_role:
        Settings()
    shown = f"{caught.value} {of_role.value}"
    assert "ter22" not in shown and "topsecret" not in shown


def test_a_role_shows_neither_its_address_nor_what_is_sent_besides() -> None:
    Path("quipu.toml").write_text(f'[role.answer]\nllm_base_url = "{ADDRESS}"\nextra = {{ user = "kober" }}\n')
    shown = f"{Settings().role!r} {Settings()!r} {effective(Settings())}"
    assert "hunter22" not in shown and "topsecret" not in shown and "kober" not in shown


def test_auto_in_a_table_is_what_is_left_out() -> None:
    Path("quipu.toml").write_text('[role.answer]\nllm = "ollama/q"\ntemperature = "auto"\ntimeout_s = "auto"\n')
    (answer,) = Settings().role
    assert (answer.temperature, answer.timeout_s) == (None, None)


def test_the_fields_of_every_kind_of_table_are_told_with_what_they_allow() -> None:
    fields = fields_of_tables()
    assert list(fields) == ["[[chunking]]", "[role.NAME]", "[[price]]", "[prompts]"]
    assert fields["[role.NAME]"]["temperature"] == "a number from 0.0 to 2.0, or auto"
    assert all(allowed for table in fields.values() for allowed in table.values())


@pytest.mark.parametrize(
    ("text", "names_model"),
    [
        ("", False),
        ('embedder = "openai"', False),
        ('llm = "ollama/q"', True),
        ('reranker = "jina/r"', True),
        ('[role.answer]\nllm = "ollama/q"', True),
        ("[role.answer]\ntemperature = 0.5", False),
    ],
)
def test_whether_a_model_is_named_and_how_to_go_without(text: str, names_model: bool) -> None:
    Path("quipu.toml").write_text(text)
    settings = Settings()
    assert settings.names_model is names_model
    without = settings.without_models()
    assert not without.names_model
    assert without.embedder == settings.embedder


def test_the_model_of_a_role_is_its_own_or_that_of_all() -> None:
    Path("quipu.toml").write_text(ROLE_TABLES)
    settings = Settings()
    assert [settings.model_of(role) for role in (Role.EXTRACT, Role.ANSWER)] == [
        "ollama/qwen3:8b",
        "openai/gpt-4.1-mini",
    ]
    assert Settings(config=None, llm=None).without_models().model_of(Role.ANSWER) is None


@pytest.mark.parametrize("name", ["QUIPU_LLM_KEY", "QUIPU_DATA"])
def test_variables_that_are_no_settings_are_known(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "sk-1")
    assert unknown_variables() == []


@pytest.mark.parametrize("text", ["kb", "./postgresql", "postgresql", "mysql://db/notes", Path("kb")])
def test_anything_else_is_a_folder(text: str | Path) -> None:
    assert not is_database_address(text)


def test_an_address_made_a_path_is_refused() -> None:
    with pytest.raises(InvalidInput, match="as a text"):
        is_database_address(Path("postgresql://me@db/notes"))


def test_an_index_in_a_database_is_named_by_its_address(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    address = "postgresql://me@db/notes?workspace=w"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quipu.toml").write_text(f'index = "{address}"')
    assert Settings().index == address
    monkeypatch.setenv("QUIPU_INDEX", "postgres://db/others")
    settings = Settings()
    assert settings.index == "postgres://db/others?workspace=default"
    assert (settings.folder, settings.outer_folder) == (None, Path())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert settings.cache_folder == tmp_path / "quipu"
    assert Settings(cache=tmp_path / "c").cache_folder == tmp_path / "c"


def test_a_password_in_the_address_of_the_index_is_refused_and_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIPU_INDEX", "postgresql://me:hunter2@db/notes")
    with pytest.raises(InvalidInput, match="password") as caught:
        Settings()
    assert "hunter2" not in str(caught.value)
