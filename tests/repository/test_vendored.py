"""The libraries of others that lie in the repository."""

from __future__ import annotations

from scripts.vendored import LIBRARIES, hashes


def test_vendored_files_are_those_of_the_pinned_packages() -> None:
    assert hashes() == {name: digest for library in LIBRARIES for name, (_, digest) in library.files.items()}


def test_every_vendored_library_has_its_licence_beside_it() -> None:
    names = {name for library in LIBRARIES for name in library.files}
    assert {f"{library.name}.LICENSE.txt" for library in LIBRARIES} <= names
