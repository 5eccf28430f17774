"""A hook of mkdocs: links of Markdown files lead to pages of the site, or to the file in the repository where it is no page."""

from __future__ import annotations

import os
import posixpath
import re
from typing import Any

from scripts.site.pages import ROOT, shown_at

__all__ = ["on_page_markdown", "relinked"]

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
        elif (ROOT / path).exists() and not path.startswith("docs/"):
            repository = os.environ.get(_REPOSITORY)
            if not repository:
                return words
            there = f"{repository.rstrip('/')}/blob/main/{path}"
        else:
            return found[0]  # a picture beside the page; or a broken link, which mkdocs reports
        return f"[{words}]({there}{anchor})"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else _LINK.sub(link, part) for part in parts)


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """The Markdown of a page of docs/; pages that `generate` makes have their links already."""
    path = page.file.src_uri
    if page.file.generated_by is not None or not os.path.exists(ROOT / "docs" / path):
        return markdown
    return relinked(markdown, f"docs/{path}", path)
