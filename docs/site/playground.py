"""The playground: a page that runs the library in the browser, by Pyodide.

Pyodide comes from npm by name and version, and is not in the repository. Without npm or a network
the page says so, and the rest of the site is built.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import stage

from zerostride.core.rules import RULES
from zerostride.derive.code import TARGETS
from zerostride.engines import ENGINES
from zerostride.ops import OPS

#: Pyodide's release on npm, and the checksum that npm has of it.
PYODIDE = "pyodide@314.0.7"
CHECKSUM = (
    "0YvXxEhfEdpLfb/XkM2BFAeMROq0iMUX2bzzH9pOttyMcWkwq+HbE5uyuGD82LN7y2q+SNvi/6V5JEsOlD2R1A=="
)
#: Where the page has the questions about shapes, and where the audit of a file.
PLACES = ("<!-- the site has the playground here -->", "<!-- the site has the audit here -->")
#: The files of Pyodide that a page without packages loads, and the one with its licence.
FILES = (
    "pyodide.mjs",
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    "python_stdlib.zip",
    "pyodide-lock.json",
    "package.json",
)
#: The files of questions about shapes: rooms that need the standard library alone, and what
#: `import zerostride` loads.
ROOMS = (
    "*.py",
    "arrays/__init__.py",
    "arrays/torch/__init__.py",
    "arrays/torch/watch.py",
    "core/**/*.py",
    "derive/**/*.py",
    "engines/**/*.py",
    "engines/learnt/rows/*",
    "lint/__init__.py",
    "lint/torch_watch.py",
    "ops/**/*.py",
    "sizes/**/*.py",
    "system/**/*.py",
)
#: The files of an audit of ncnn's text.
AUDIT = (
    "attention/**/*.py",
    "compute/*.py",
    "models/*.py",
    "models/audit/*.py",
    "models/execute/*.py",
    "models/flow/*.py",
    "models/formats/*.py",
    "models/formats/ncnn/**/*.py",
    "models/formats/onnx/*.py",
    "models/ir/*.py",
    "models/layout/*.py",
    "models/onnx_ops/**/*.py",
    "models/transport/*.py",
    "quantisation/*.py",
    "report/*",
    "runtimes/__init__.py",
    "runtimes/runners/__init__.py",
    "runtimes/task.py",
)
#: Modules of the page under the names that the library imports.
STAND_INS = {"numpy_names.py": "numpy/__init__.py", "numpy_typing.py": "numpy/typing.py"}
#: Questions that the page offers: the fields of its address, and their name.
EXAMPLES = {
    "s=5,5&s=5": "a vector and a square",
    "s=1,16,8,8&s=16,1,1": "a bias by channel",
    "s=2,3,4&s=3&rule=pdpd&axis=1": "an axis",
    "s=H,W&s=W": "open sizes",
    "s=N,1,H&s=C,H&facts=N >= 2&code=torch": "facts",
    "s=8,1&s=8": "an outer sum",
    "s=2,3,4&s=3": "refused",
    "s=2,3,4&s=4&op=prelu": "a slope",
}


def write(page: Path, static: Path) -> None:
    """Puts the playground into a page, and its files into the folder of static files."""
    fault = vendor(static / "pyodide")
    if not fault:
        (static / "zerostride.zip").write_bytes(library())
        (static / "audit.zip").write_bytes(audit())
        (static / "snapshot.gz").write_bytes(gzip.compress(snapshot(static), mtime=0))
    else:
        print(f"the site has no playground: {fault}", file=sys.stderr)
    text = page.read_text("utf-8")
    for place, parts in zip(PLACES, (widget(), audit_widget()), strict=True):
        note = f"This copy of the site has no playground: {fault}."
        text = text.replace(place, note if fault else f"```{{raw}} html\n{parts}\n```")
    page.write_text(text, "utf-8")


def vendor(folder: Path) -> str:
    """Puts Pyodide's files into a new folder. Returns what is missing, or "".

    Raises:
        SystemExit: npm's file is not the one with the checksum.
    """
    npm = shutil.which("npm")
    if npm is None:
        return "npm is not installed"
    with tempfile.TemporaryDirectory() as work:
        command = [npm, "pack", "--silent", "--prefer-offline", PYODIDE]
        done = subprocess.run(command, cwd=work, capture_output=True, text=True)
        packed = list(Path(work).glob("*.tgz"))
        if done.returncode or len(packed) != 1:
            return f"npm did not fetch {PYODIDE}"
        data = packed[0].read_bytes()
    if base64.b64encode(hashlib.sha512(data).digest()).decode() != CHECKSUM:
        raise SystemExit(f"{PYODIDE} from npm has another checksum than docs/site/playground.py")
    folder.mkdir()
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for name in FILES:
            file = archive.extractfile(f"package/{name}")
            if file is None:
                raise SystemExit(f"{PYODIDE} has no file {name}")
            (folder / name).write_bytes(file.read())
    return ""


def snapshot(static: Path) -> bytes:
    """Python's memory after the first questions, or nothing: the page then starts more slowly."""
    script = Path(__file__).with_name("snapshot.mjs")
    with tempfile.TemporaryDirectory() as work:
        file = Path(work, "snapshot")
        words = [script, static / "pyodide", static / "zerostride.zip", file]
        done = subprocess.run(["node", *map(str, words)], capture_output=True, text=True)
        if done.returncode:
            print(f"the playground has no snapshot: {done.stderr[-400:]}", file=sys.stderr)
            return b""
        return file.read_bytes()


def library() -> bytes:
    """The files of questions about shapes, and the playground's answers, as a zip file."""
    return _zipped(ROOMS, {"questions.py": "questions.py"})


def audit() -> bytes:
    """The further files of an audit, and the stand-in for NumPy, as a zip file."""
    return _zipped(AUDIT, STAND_INS)


def _zipped(patterns: Sequence[str], pages: Mapping[str, str]) -> bytes:
    """Files of the package by pattern and modules of the page by their new names."""
    package = stage.ROOT / "src" / "zerostride"
    paths = sorted({path for pattern in patterns for path in package.glob(pattern)})
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, there in pages.items():
            archive.write(Path(__file__).with_name(name), there)
        for path in filter(Path.is_file, paths):
            archive.write(path, path.relative_to(package.parent).as_posix())
    return memory.getvalue()


def widget() -> str:
    """The playground's form and the places of its answers, as HTML."""
    rules = [name for name, rule in RULES.items() if not rule.to_target]
    ops = [op.name for op in OPS.values() if op.tensors > 1]
    examples = "".join(
        f'<a href="#{html.escape(fields)}">{name}</a> ' for fields, name in EXAMPLES.items()
    )
    return f"""<link rel="stylesheet" href="_static/playground.css">
<div id="pg">
<p class="pg-examples">Examples: {examples}</p>
<form id="pg-form">
<div id="pg-shapes" role="group" aria-label="Shapes"></div>
<button type="button" id="pg-add">Add an operand</button>
<div class="pg-fields" role="group" aria-label="What is meant">
{_select("rule", "Rule", {"": "the default", **dict(zip(rules, rules, strict=True))})}
{_select("engine", "Engine", {"": "none: the rule alone", **{name: name for name in ENGINES}})}
{_select("op", "Op", {"": "any element-wise op", **dict(zip(ops, ops, strict=True))})}
<div><label for="pg-axis">Axis</label>
<input id="pg-axis" inputmode="numeric" autocomplete="off"></div>
<div><label for="pg-facts">Known of open sizes</label>
<input id="pg-facts" placeholder="N &gt;= 2" spellcheck="false" autocomplete="off"></div>
</div>
</form>
<p id="pg-status" role="status">Loading Python …</p>
<section aria-label="The plan"><div id="pg-drawing" class="zs-drawing"></div>
<pre id="pg-text" tabindex="0" aria-label="Explanation"></pre></section>
<section aria-label="Engines side by side"><p id="pg-summary" aria-live="polite"></p>
<div id="pg-engines"></div>
<p>The rules of documents:</p>
<div id="pg-rules"></div></section>
<section aria-label="Code">
<div class="pg-fields">{_select("code", "Code for", {name: name for name in TARGETS})}
<button type="button" id="pg-copy-code">Copy the code</button></div>
<pre id="pg-source" tabindex="0" aria-label="Source"></pre></section>
<section aria-label="Link"><div class="pg-fields">
<div><label for="pg-link">A link that opens this question again</label>
<input id="pg-link" readonly></div>
<button type="button" id="pg-copy-link">Copy the link</button></div></section>
</div>
<script type="module" src="_static/playground.js"></script>"""


def audit_widget() -> str:
    """The place for a file, the choice of engines, and the place of the audit, as HTML."""
    engines = {"": "every engine", **{name: name for name in ENGINES}}
    # No `accept`: phones then offer no .param, and a reader of another file is told what reads it.
    return f"""<div id="pg-model">
<div id="pg-drop" class="pg-drop">
<p>Drop a <code>.param</code> here, or
<input id="pg-file" type="file"><label for="pg-file">choose a file</label></p>
{_select("target", "Audit it for", engines)}
</div>
<p id="pg-model-status" role="status"></p>
<div id="pg-audits"></div>
</div>
<script type="module" src="_static/playground_model.js"></script>"""


def _select(name: str, label: str, options: dict[str, str]) -> str:
    rows = "".join(f'<option value="{value}">{text}</option>' for value, text in options.items())
    return (
        f'<div><label for="pg-{name}">{label}</label><select id="pg-{name}">{rows}</select></div>'
    )
