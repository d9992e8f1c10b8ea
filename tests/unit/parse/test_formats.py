"""Tests of the list of formats."""

import subprocess
import sys
from importlib import import_module

from quipu.parse import MEDIA_TYPE_BY_SUFFIX, PARSERS
from quipu.parse.formats import FORMATS, IMAGES


def test_each_formats_module_has_a_parser_of_its_media_types() -> None:
    offered = {each.module: import_module(f"quipu.parse.{each.module}").PARSER.media_types for each in FORMATS}
    assert [each.name for each in FORMATS if not each.media_types <= offered[each.module]] == []


def test_no_suffix_and_no_media_type_is_listed_twice() -> None:
    types = [(media_type, suffix) for each in FORMATS for media_type, suffixes in each.types for suffix in suffixes]
    assert len(MEDIA_TYPE_BY_SUFFIX) == len(types)
    assert len(PARSERS) == sum(len(each.types) for each in (*FORMATS, IMAGES))
    assert all(media_type == media_type.lower() and suffix == suffix.lower() for media_type, suffix in types)


def test_no_library_of_a_format_is_loaded_before_a_file_of_it_is_read() -> None:
    libraries = ("markdown_it", "selectolax", "yaml", "pypdfium2", "xml.etree.ElementTree", "email.parser", "csv")
    script = f"import sys, quipu.parse; print([name for name in {libraries} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-S", "-c", _on_path(script)], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def _on_path(script: str) -> str:
    """Return `script` with this interpreter's path set by itself: its start-up files import libraries of their own."""
    return f"import sys; sys.path[:] = {sys.path!r}; {script}"
