"""Run recorded cases in one process, where no other can be started: in a browser, or under node by scripts/browser/run.mjs.

Its arguments are a corpus' folder of zip files and a file for the results. The corpus' own program, run.py beside its folder, grades.
"""

from __future__ import annotations

import collections
import json
import sys
import time
import zipfile
from pathlib import Path


def cases_of(corpus: Path) -> list[tuple[str, str]]:
    """Return (zip file, case's name) of all cases."""
    found = []
    for archive in sorted(corpus.glob("*.zip")):
        with zipfile.ZipFile(archive) as names:
            found += [(str(archive), name.removesuffix("/case.json")) for name in names.namelist() if name.endswith("/case.json")]
    return found


def main() -> int:
    """Print each case that is not exact and the counts; the status is 1 when a case is wrong or fails."""
    corpus, results = Path(sys.argv[1]), Path(sys.argv[2])
    sys.path.insert(0, str(corpus.parent))
    from run import run_case

    counts: collections.Counter[str] = collections.Counter()
    started = time.perf_counter()
    with results.open("w") as file:
        for archive, name in cases_of(corpus):
            try:
                verdict, detail, seconds = run_case("oplet:Interpreter", archive, name)
            except Exception as error:
                verdict, detail, seconds = "error", f"{type(error).__name__}: {error}", 0.0
            counts[verdict] += 1
            case = f"{Path(archive).stem}/{name}"
            file.write(json.dumps({"case": case, "verdict": verdict, "detail": detail, "seconds": round(seconds, 4)}) + "\n")
            if verdict not in ("exact", "near"):
                print(verdict, case, detail[:300], flush=True)
    words = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    print(f"{words} of {sum(counts.values())} in {time.perf_counter() - started:.0f} s on {sys.platform}")
    return int(any(verdict not in ("exact", "near") for verdict in counts))


if __name__ == "__main__":
    sys.exit(main())
