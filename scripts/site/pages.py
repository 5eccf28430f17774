"""Which pages the site has, where the files of the repository are shown, and in which order."""

from __future__ import annotations

from pathlib import Path

from scripts.requirements import ROOT, tomllib

__all__ = ["BESIDE", "GUIDES", "ROOT", "packages", "shown_at"]

#: The pages of docs/, by group, in the order of the navigation. `generate` refuses a page of docs/ that no group has.
GUIDES: dict[str, list[str]] = {
    "Running models": [
        "migrating.md",
        "gallery.md",
        "try.md",
        "command.md",
        "values.md",
        "compiled-model.md",
        "language-models.md",
        "many-inputs.md",
        "metadata.md",
        "predictor.md",
        "serving.md",
        "ray.md",
        "beam.md",
        "spark-and-dask.md",
        "async.md",
        "choosing-an-engine.md",
        "gpus.md",
        "comparing.md",
        "profiles.md",
        "model-explorer.md",
        "select-tf-ops.md",
        "text-classifier.md",
        "selective-builds.md",
        "cookbook.md",
    ],
    "Writing operators": [
        "tutorial.md",
        "writing-an-op.md",
        "quantization.md",
        "kernels-by-example.md",
        "fusing-a-function.md",
        "native-ops.md",
        "writing-models.md",
        "plugins.md",
        "public-names.md",
    ],
    "Writing delegates": ["writing-a-delegate.md", "native-delegates.md"],
    "How it works": [
        "how-it-runs.md",
        "glossary.md",
        "operators.md",
        "options.md",
        "numerics.md",
        "slow-operators.md",
        "differences.md",
        "reliability.md",
        "figures.md",
    ],
    "Decisions": [
        "decisions/README.md",
        "decisions/0001-contexts-are-held.md",
        "decisions/0002-segments-and-folding.md",
        "decisions/0003-tiers-and-precedence.md",
        "decisions/0004-compiled-operators.md",
        "decisions/0005-commands-and-files-of-plugins.md",
        "decisions/0006-plans-on-disk.md",
        "decisions/0007-five-packages.md",
        "decisions/0008-oplet-and-oplet-core.md",
        "decisions/0009-builds-of-whole-modules.md",
    ],
    "About": ["packages.md", "directory.md", "versions.md", "licences.md"],
}

#: Files beside docs/ that are pages too.
BESIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "CONTRIBUTING.md": "contributing.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "directory/README.md": "directory-entries.md",
}


def packages() -> dict[str, Path]:
    """The folder of each package of the repository, by the package's name; the core is first."""
    folders = [ROOT / "core", *sorted(path.parent for path in (ROOT / "plugins").glob("*/pyproject.toml")), ROOT / "metapackage"]
    return {tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]["name"]: folder for folder in folders}


def shown_at() -> dict[str, str]:
    """The page of each Markdown file of the repository, by the file's path."""
    pages = {
        f"docs/{path.relative_to(ROOT / 'docs')}": str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")
    }
    pages |= {name: page for name, page in BESIDE.items() if (ROOT / name).exists()}
    for name, folder in packages().items():
        if (folder / "README.md").exists():
            pages[f"{folder.relative_to(ROOT)}/README.md"] = f"packages/{name}.md"
    return pages
