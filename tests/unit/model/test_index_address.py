"""Tests of addresses of indexes in a database."""

import pytest

from quipu.errors import InvalidInput
from quipu.model.index_address import DatabaseAddress, parse_database_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("postgresql://me@db/notes", DatabaseAddress("postgresql://me@db/notes", "default")),
        ("postgres://db/notes?workspace=a-1", DatabaseAddress("postgres://db/notes", "a-1")),
        ("PostgreSQL:///notes", DatabaseAddress("postgresql:///notes", "default")),
        (
            "postgresql://a:1,b:2/notes?sslmode=verify-full&workspace=w&sslrootcert=/etc/ca.pem",
            DatabaseAddress("postgresql://a:1,b:2/notes?sslmode=verify-full&sslrootcert=/etc/ca.pem", "w"),
        ),
        (
            "postgresql://[::1]:5432/notes?user=me%40realm",
            DatabaseAddress("postgresql://[::1]:5432/notes?user=me%40realm"),
        ),
        ("postgresql://?service=notes", DatabaseAddress("postgresql://?service=notes", "default")),
    ],
)
def test_an_address_names_a_database_and_a_workspace(text: str, address: DatabaseAddress) -> None:
    assert parse_database_address(text) == address
    assert parse_database_address(str(address)) == address


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://me:hunter2@db/notes",
        "postgresql://me:@db/notes?x=hunter2",
        "postgresql://me@db/notes?password=hunter2",
        "postgresql://me@db/notes?sslpassword=hunter2&workspace=w",
        "postgresql://:hunter2@db/notes",
        "postgresql://me:hunter2@x@db/notes",
        "postgresql://me:hunter2/x@db/notes",
        "postgresql://me:12/hunter2@db/notes",
        "postgresql://me:hunter2?x@db/notes",
        "postgresql://me:hunter2?x=1@db/notes",
    ],
)
def test_a_password_in_an_address_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(InvalidInput, match="password") as caught:
        parse_database_address(text)
    assert "hunter2" not in str(caught.value)
    assert ".pgpass" in caught.value.remedy


@pytest.mark.parametrize("name", ["", "A", "-a", "a b", "ä", "a" * 51, 'a"b', "a;b"])
def test_a_workspace_has_a_short_plain_name(name: str) -> None:
    with pytest.raises(InvalidInput, match="cannot name a workspace"):
        parse_database_address(f"postgresql://db/notes?workspace={name}")


@pytest.mark.parametrize("text", ["postgresql://", "postgresql:///?workspace=a", "postgres://@/"])
def test_an_address_of_nothing_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="names no database"):
        parse_database_address(text)
