"""A hook of mkdocs: links of Markdown files lead to pages of the site, or to the file in the repository where it is no page; and the search
finds guides before the reference, and no page that is none.
"""

from __future__ import annotations

import os
import posixpath
import re
from typing import Any

from scripts.site.pages import ROOT, shown_at

__all__ = ["boost_of", "on_page_markdown", "relinked"]

#: How much a page counts in the search, by how its path begins; guides count most, and of them those that teach. The search takes a word for the
#: beginning of others: "op" would else find every page that says "oplet" often.
_BOOSTS = (
    ("SUMMARY", None),
    ("index", 4.0),
    ("tutorial", 8.0),
    ("writing-an-op", 6.0),
    ("migrating", 4.0),
    ("cookbook", 4.0),
    ("command", 4.0),
    ("reference/", 0.5),
    ("packages/", 0.7),
    ("decisions/", 0.3),
    ("changelog", 0.1),
    ("contributing", 0.5),
    ("public-names", 0.3),
    ("operators", 0.5),
    ("options", 0.5),
    ("licences", 0.2),
    ("", 2.0),
)

_LINK = re.compile(r"\[([^][]+)\]\(([^)\s#]+)(#[^)\s]*)?\)")

#: The environment variable with the address of the repository, below which its files are shown.
_REPOSITORY = "OPLET_REPOSITORY_URL"


def relinked(text: str, source: str, page: str) -> str:
    """The text of a Markdown file with links that hold on the site; a file that is no page is a link where the repository has an address.

    Args:
        source: the file's path in the repository.
        page: the path of its page in the site.
    """
    pages = shown_at()

    def link(found: re.Match[str]) -> str:
        words, target, anchor = found[1], found[2], found[3] or ""
        if ":" in target:
            return found[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if path in pages:
            there = posixpath.relpath(pages[path], posixpath.dirname(page) or ".")
        elif path.startswith("docs/") and (ROOT / path).is_file():  # a picture
            there = posixpath.relpath(path.removeprefix("docs/"), posixpath.dirname(page) or ".")
        elif (ROOT / path).exists() and not path.startswith("docs/"):
            repository = os.environ.get(_REPOSITORY)
            if not repository:
                return words
            there = f"{repository.rstrip('/')}/blob/main/{path}"
        else:
            return found[0]  # a broken link, which mkdocs reports
        return f"[{words}]({there}{anchor})"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else _LINK.sub(link, part) for part in parts)


def boost_of(path: str) -> float | None:
    """How much a page counts in the search; None for a page that it leaves out."""
    return next(boost for start, boost in _BOOSTS if path.startswith(start))


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """The Markdown of a page of docs/; pages that `generate` makes have their links already."""
    path = page.file.src_uri
    boost = boost_of(path)
    page.meta.setdefault("search", {"exclude": True} if boost is None else {"boost": boost})
    if path == "index.md":
        page.meta.setdefault("hide", ["navigation"])  # its column would be empty
    if page.file.generated_by is not None or not os.path.exists(ROOT / "docs" / path):
        return markdown
    return relinked(markdown, f"docs/{path}", path)
