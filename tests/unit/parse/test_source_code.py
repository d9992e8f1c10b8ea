"""Tests of the parser of source code and configuration."""

import pytest

from quipu.model.document import ParsedDocument
from tests.unit.parse.files import read, texts


def labels(parsed: ParsedDocument) -> list[str]:
    return [" > ".join(block.headings) for block in parsed.blocks]


def test_each_function_is_a_block_under_its_name() -> None:
    parsed = read(
        "src/roads.py",
        b'"""Roads."""\n\nimport os\n\n\n# Comment.\n@cached\ndef build(n):\n    if n:\n        x = 1\n'
        b"\n    return x\n\n\nMAX = 3\n",
    )
    assert parsed.title == "roads.py"
    assert labels(parsed) == ["", "", "build", ""]
    assert texts(parsed)[2] == "# Comment.\n@cached\ndef build(n):\n    if n:\n        x = 1\n\n    return x"
    assert {block.kind for block in parsed.blocks} == {"code"}


def test_a_short_class_is_whole_and_a_long_one_is_a_block_for_each_method() -> None:
    short = b"class Road:\n    def a(self):\n        pass\n\n    def b(self):\n        pass\n"
    assert labels(read("a.py", short)) == ["Road"]
    methods = "".join(f"\n    def m{n}(self):\n        x = {n}\n\n        return x\n" for n in range(30))
    assert labels(read("a.py", b"class Road:\n" + methods.encode()))[:3] == ["Road", "Road > m0", "Road > m1"]


@pytest.mark.parametrize(
    ("name", "code", "label"),
    [
        ("a.c", "int\nmain(int argc)\n{\n  f();\n\n  return 0;\n}\n", "main"),
        ("a.go", "func (r *Road) Build(n int) error {\n\treturn nil\n}\n", "Build"),
        ("a.rs", "pub fn build<T>(n: T) -> T {\n    n\n}\n", "build"),
        ("a.ts", "export const build = (n: number) => {\n  return n;\n};\n", "build"),
        ("a.java", "public final class Road {\n}\n", "Road"),
        ("a.sql", "CREATE TABLE roads (\n  id INT\n);\n", "roads"),
        ("a.sh", "build() {\n  make\n}\n", "build"),
        ("a.rb", "def build\n  1\nend\n", "build"),
    ],
)
def test_a_definition_is_found_in_many_languages(name: str, code: str, label: str) -> None:
    parsed = read(name, code.encode())
    assert labels(parsed) == [label]
    assert texts(parsed) == [code.strip()]


def test_configuration_is_divided_at_its_keys_and_sections() -> None:
    yaml = read("a.yaml", b"# Top.\nname: x\n# Steps to run.\nsteps:\n  - run: a\n\n  - run: b\n'quoted': 1\n")
    assert labels(yaml) == ["name", "steps", "quoted"]
    assert texts(yaml)[1] == "# Steps to run.\nsteps:\n  - run: a\n\n  - run: b"
    toml = read("a.toml", b"x = 1\n\n[tool.road]\nn = 2\n\n[[part]]\nn = 3\n")
    assert labels(toml) == ["", "tool.road", "part"]
    assert labels(read("a.ini", b"; all\n[server]\nport = 1\n")) == ["server"]


def test_lines_of_signs_are_read_at_once() -> None:
    assert labels(read("a.c", b"x " + b"*&" * 50_000 + b"\n")) == [""]
    assert labels(read("a.c", b"char **roads(int n)\n{\n}\n")) == ["roads"]
