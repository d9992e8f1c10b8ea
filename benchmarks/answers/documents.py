"""Fetch the documents of the questions: `python benchmarks/answers/documents.py [--folder DIR] [--check]`.

`manifest.tsv` names every document: Debian package, path in it, name in our folder. The packages are downloaded with
`apt-get download` and unpacked with `dpkg-deb`; nothing is installed, and no document is stored in the project. The
documents go to DIR/documents, their plain text to DIR/plain.jsonl.
"""

import argparse
import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # so that it runs as a file, too

from benchmarks.answers.plain import write_plain  # noqa: E402

MANIFEST = Path(__file__).with_name("manifest.tsv")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "quipu-bench" / "manuals"
FOLDER = Path(os.environ.get("QUIPU_MANUALS") or CACHE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestRow:
    """One document: the package, the version seen when the questions were written, and the two paths."""

    package: str
    version: str
    path: str
    name: str
    digest: str


def main() -> int:
    """Fetch what is absent and print what differs; return 1 where documents are missing, 2 without apt."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=FOLDER, help=f"default: QUIPU_MANUALS, or {CACHE}")
    parser.add_argument("--check", action="store_true", help="only compare the folder with the manifest")
    options = parser.parse_args()
    rows, documents = read_manifest(), options.folder / "documents"
    missing = [row for row in rows if not (documents / row.name).is_file()]
    if missing and not options.check:
        if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
            sys.stderr.write("Skipped: apt-get and dpkg-deb are needed. Run this on Debian 12 or a derivative.\n")
            return 2
        fetch(missing, documents)
        write_plain(documents, options.folder / "plain.jsonl")
    return report(rows, documents)


def read_manifest(path: Path = MANIFEST) -> list[ManifestRow]:
    """Return the documents of the manifest in its order."""
    lines = [line.split("\t") for line in path.read_text("utf-8").splitlines() if not line.startswith("#")]
    return [ManifestRow(package=p, version=v, path=s, name=n, digest=d) for p, v, s, n, d in lines]


def fetch(rows: list[ManifestRow], folder: Path) -> None:
    """Download the packages of `rows`, one after the other, and copy their documents into `folder`."""
    by_package: dict[str, list[ManifestRow]] = {}
    for row in rows:
        by_package.setdefault(row.package, []).append(row)
    for package, package_rows in by_package.items():
        with tempfile.TemporaryDirectory() as temporary:
            if not unpack(package, Path(temporary)):
                continue
            for row in package_rows:
                copy_document(Path(temporary) / "unpacked" / row.path, folder / row.name)


def unpack(package: str, folder: Path) -> bool:
    """Download `package` and unpack it below `folder`; say on stderr why that failed."""
    download = subprocess.run(["apt-get", "download", package], cwd=folder, capture_output=True, text=True, check=False)
    archives = sorted(folder.glob("*.deb"))
    if download.returncode or not archives:
        reason = (download.stderr.strip().splitlines() or ["nothing was downloaded"])[-1]
        sys.stderr.write(f"{package}: {reason} (does `apt-get update` help?)\n")
        return False
    subprocess.run(["dpkg-deb", "-x", str(archives[0]), str(folder / "unpacked")], check=True)
    return True


def copy_document(source: Path, target: Path) -> None:
    """Copy one document; what is compressed only in the package (`x.pdf.gz` for `x.pdf`) is decompressed."""
    if not source.is_file():
        return
    content = source.read_bytes()
    if source.suffix == ".gz" and source.name.endswith(".pdf.gz") and target.suffix == ".pdf":
        content = gzip.decompress(content)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)


def report(rows: list[ManifestRow], folder: Path) -> int:
    """Print how the folder differs from the manifest; return 1 where a document is missing."""
    missing, changed = [], []
    for row in rows:
        path = folder / row.name
        if not path.is_file():
            missing.append(row)
        elif hashlib.sha256(path.read_bytes()).hexdigest()[:12] != row.digest:
            changed.append(row)
    for row in missing:
        print(f"missing: {row.name} ({row.package} {row.version})")
    for row in changed:
        print(f"other text than when the questions were written: {row.name} ({row.package} {row.version})")
    print(f"{len(rows) - len(missing)} of {len(rows)} documents in {folder}, {len(changed)} with another text")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
