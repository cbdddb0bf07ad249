"""Many models on the command line: searching, order, processes, files, statuses."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from commandline import Run, start

from zerostride.errors import ZerostrideError
from zerostride.models.audit.many import _Worker, audit_many, cores
from zerostride.models.findings import Report, Unread
from zerostride.models.formats.file_search import find_models, is_single
from zerostride.models.options import ModelOptions
from zerostride.system.child import Child

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
CLEAN, VISION = EXAMPLES / "clean.onnx", EXAMPLES / "tiny_vision.onnx"
#: Audits for ncnn, op for op.
NCNN = ("--target", "ncnn", "--via", "none")


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A folder of models, with what is no model beside them."""
    pytest.importorskip("onnx", reason="the models are ONNX files")
    folder = tmp_path / "models"
    (folder / "b" / "deep").mkdir(parents=True)
    (folder / ".git").mkdir()
    for name in ("z.onnx", "a.ONNX", "b/c.onnx", "b/deep/d.onnx", ".git/x.onnx", ".hidden.onnx"):
        shutil.copy(CLEAN, folder / name)
    (folder / "b" / "weights.bin").write_bytes(b"x")
    (folder / "README.md").write_text("no model")
    (folder / "onnx").write_text("no model")
    return folder


def names(found: list[str | Unread], folder: Path) -> list[str]:
    return [os.path.relpath(one, folder) if isinstance(one, str) else "-" for one in found]


# What is found.


def test_folder_is_searched(models: Path) -> None:
    found = names(find_models([str(models)]), models)
    assert found == ["a.ONNX", "z.onnx", "b/c.onnx", "b/deep/d.onnx"]


def test_installed_packages_are_left_out(models: Path) -> None:
    for place in ("venv/lib/tests", "web/node_modules/x", "here/site-packages/onnx"):
        (models / place).mkdir(parents=True)
        shutil.copy(CLEAN, models / place / "theirs.onnx")
    (models / "venv" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    assert not [one for one in find_models([str(models)]) if "theirs" in str(one)]
    named = names(find_models([str(models / "venv")]), models)
    assert named == ["venv/lib/tests/theirs.onnx"]  # what somebody names is searched


def test_links_out_of_a_folder_are_not_followed(models: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    shutil.copy(CLEAN, outside / "secret.onnx")
    try:
        (models / "link.onnx").symlink_to(outside / "secret.onnx")
        (models / "folder").symlink_to(outside)
        (models / "loop").symlink_to(models)
        (models / "inside.onnx").symlink_to(models / "z.onnx")
        (models / "dangling.onnx").symlink_to(models / "nothing.onnx")
    except OSError as error:
        pytest.skip(f"no links here: {error}")
    found = names(find_models([str(models)]), models)
    assert found == ["a.ONNX", "inside.onnx", "z.onnx", "b/c.onnx", "b/deep/d.onnx"]
    # What somebody names is taken.
    assert names(find_models([str(models / "link.onnx")]), models) == ["link.onnx"]


def test_patterns_are_expanded(models: Path) -> None:
    def matches(pattern: str) -> list[str]:
        return names(find_models([str(models / pattern)]), models)

    assert matches("*.onnx") == ["z.onnx"]
    assert matches("**/*.onnx") == ["b/c.onnx", "b/deep/d.onnx", "z.onnx"]
    assert matches("b/*") == ["b/c.onnx", "b/deep/d.onnx"]
    assert matches("[az].*") == ["a.ONNX", "z.onnx"]
    odd = models / "odd[1].onnx"
    shutil.copy(CLEAN, odd)
    assert matches("odd[1].onnx") == ["odd[1].onnx"], "a file of that very name comes first"


def test_model_is_listed_once_in_argument_order(models: Path) -> None:
    words = [str(models / "z.onnx"), str(models), str(models / "b" / ".." / "z.onnx")]
    assert names(find_models(words), models) == ["z.onnx", "a.ONNX", "b/c.onnx", "b/deep/d.onnx"]


def test_empty_search_is_reported(tmp_path: Path) -> None:
    for word in (str(tmp_path), str(tmp_path / "*.onnx")):
        (found,) = find_models([word])
        assert isinstance(found, Unread)
        assert "no model files there (.onnx" in found.detail
    (named,) = find_models([str(tmp_path / "nope.onnx")])
    assert isinstance(named, str), "the reader says what is wrong with a file"


def test_other_programs_files_in_a_folder_are_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "zerostride.models.formats.file_search.suffixes", lambda: (".xml", ".param")
    )
    (tmp_path / "pom.xml").write_text("<project/>")
    (tmp_path / "model.xml").write_text('<?xml version="1.0"?>\n<net name="x" version="11">')
    (tmp_path / "other.param").write_text("learning rate 1")
    (tmp_path / "net.param").write_text("7767517\n1 1\n")
    (tmp_path / "net.pnnx.param").write_text("7767517\n1 1\n")
    assert names(find_models([str(tmp_path)]), tmp_path) == ["model.xml", "net.param"]
    assert len(find_models([str(tmp_path / "pom.xml")])) == 1


def test_too_many_models_are_refused(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zerostride.models.formats.file_search.MOST_MODELS", 3)
    with pytest.raises(ZerostrideError, match="more than 3 models"):
        find_models([str(models)])
    monkeypatch.setattr("zerostride.models.formats.file_search.MOST_ENTRIES", 3)
    with pytest.raises(ZerostrideError, match="more than 3 files"):
        find_models([str(models)])


def test_unreadable_folder_does_not_hide_models(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.scandir

    def scandir(path: Any) -> Any:
        if str(path).endswith("deep"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    *found, last = find_models([str(models)])
    assert names(found, models) == ["a.ONNX", "z.onnx", "b/c.onnx"]
    assert isinstance(last, Unread)
    assert last.detail.endswith("deep: Permission denied")


def test_one_file_counts_as_single() -> None:
    assert is_single([str(CLEAN)])
    assert is_single(["nope.onnx"])
    assert not is_single([str(EXAMPLES)])
    assert not is_single(["*.onnx"])
    assert not is_single([str(CLEAN), str(CLEAN)])


# Processes.


def documents(answers: list[Report | Unread]) -> list[dict[str, Any]]:
    return [answer.as_dict() for answer in answers]


def test_results_do_not_depend_on_processes(models: Path) -> None:
    shutil.copy(VISION, models / "vision.onnx")
    (models / "broken.onnx").write_bytes(b"nonsense")
    found = find_models([str(models), str(models / "nope.onnx"), str(models / "*.none")])
    alone = audit_many(found, "ncnn", jobs=1)
    assert [type(one) for one in alone].count(Unread) == 3
    seen: list[tuple[int, int]] = []
    for jobs in (2, 50):
        seen.clear()
        many = audit_many(found, "ncnn", jobs=jobs, progress=lambda *at: seen.append(at))
        assert json.dumps(documents(many), default=str) == json.dumps(documents(alone), default=str)
        assert seen[-1] == (len(found), len(found))
        assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert audit_many([], "ncnn") == []
    assert cores() >= 1


_CRASHES = """
import os, signal
import zerostride.models.audit.many as many
real = many.judged
def judged(model, target, options):
    name = os.path.basename(model)
    if "crash" in name:
        os.kill(os.getpid(), signal.SIGSEGV)
    if "exit" in name:
        os.write(2, b"first line\\nlast \\x1b[31mwords\\n")
        os._exit(7)
    if "noise" in name:
        os.write(1, b"a library prints\\n" * 1000)
    return real(model, target, options)
many.judged = judged
many.serve()
"""


def test_crashed_worker_loses_only_its_own_model(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("crash.onnx", "exit.onnx", "noise.onnx"):
        shutil.copy(CLEAN, models / name)
    monkeypatch.setattr("zerostride.models.audit.many._CHILD", f"load_package()\n{_CRASHES}")
    found = find_models([str(models)])
    answers = audit_many(found, "ncnn", jobs=2)
    failed = {Path(one.model).name: one.detail for one in answers if isinstance(one, Unread)}
    assert failed.keys() == {"crash.onnx", "exit.onnx"}
    assert "was ended by SIGSEGV" in failed["crash.onnx"]
    assert failed["exit.onnx"].endswith("was ended with status 7: last \\x1b[31mwords")
    good = [one for one in answers if isinstance(one, Report)]
    assert len(good) == len(found) - 2
    assert all(report.ok for report in good)


def test_workers_that_cannot_start_are_reported(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zerostride.models.audit.many._CHILD", "import nothing_of_that_name")
    answers = audit_many(find_models([str(models)]), "ncnn", jobs=2)
    assert all("No module named" in one.detail for one in answers if isinstance(one, Unread))
    assert all(isinstance(one, Unread) for one in answers)


def test_script_needs_no_main_guard(models: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from zerostride.models.audit.many import audit_many\n"
        f"print(len(audit_many([{str(CLEAN)!r}] * 3, 'ncnn', jobs=2)))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.stderr, done.returncode) == ("3\n", "", 0)


@pytest.mark.skipif(
    not list(Path("/proc/self/task").glob("*/children")), reason="/proc tells of children"
)
def test_interrupt_leaves_no_processes(models: Path) -> None:
    for k in range(200):  # far more than are done before the interrupt, however busy the machine
        shutil.copy(EXAMPLES / "transformer_dynamic_script.onnx", models / f"m{k}.onnx")
    process = start(["audit", str(models), *NCNN, "--jobs", "2"], start_new_session=True)
    deadline = time.monotonic() + 300
    while len(children(process.pid)) < 2:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    workers = children(process.pid)
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130, out + err
    assert b"Traceback" not in out + err
    deadline = time.monotonic() + 300
    while any(alive(pid) for pid in workers):
        assert time.monotonic() < deadline, "a worker is still there"
        time.sleep(0.05)


def children(pid: int) -> list[int]:
    """The processes that any thread of a process has started."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread has ended since
            found += [int(word) for word in task.read_text().split()]
    return found


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


# The command line.


def test_folders_patterns_and_files_share_one_report(run: Run, models: Path) -> None:
    answer = run("audit", models, VISION, *NCNN)
    assert answer.status == 1
    assert answer.err == ""
    assert "5 models: 64 same, 3 same here, 10 different, 7 refused" in answer.out
    table = answer.out[answer.out.rindex("5 models") :].splitlines()
    assert len(table) == 9
    assert table[-2:] == ["", f"next: zerostride audit {VISION} --target ncnn --via none"]
    assert table[1].split() == ["model", "same", "same", "here", "different", "refused"]
    again = run("audit", models / "**" / "*", VISION, *NCNN, "--jobs", "1")
    assert again.status == 1
    assert "in the model:" in run("audit", models, VISION, *NCNN, "--details").out
    assert run("audit", models, *NCNN).status == 0
    assert run("audit", models / "none*", *NCNN).status == 2


def test_next_command_of_many_models_is_the_worst_alone(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="the models are ONNX files")
    worse, known = EXAMPLES / "bugs" / "ncnn-4930.onnx", tmp_path / "known.json"
    refused = EXAMPLES / "bugs" / "openvino-33620.onnx"
    audit = ("audit", CLEAN, refused, worse, *NCNN)
    repeated = f"next: zerostride audit {worse} --target ncnn --via none"
    assert run(*audit).out.splitlines()[-1] == repeated
    assert "next: " not in run(*audit, "--summary").out
    assert "next: " not in run(*audit, "--write-baseline", known).out
    more = run(*audit, VISION, "--baseline", known)
    last = f"next: zerostride audit {VISION} --target ncnn --via none --baseline {known}"
    assert more.out.splitlines()[-1] == last


def test_json_is_a_list_unless_one_file_is_named(run: Run, models: Path) -> None:
    one = json.loads(run("audit", CLEAN, *NCNN, "--json").out)
    assert one["model"] == str(CLEAN)
    for words in ([models / "b" / "deep"], [models / "z*"], [CLEAN, CLEAN]):
        data = json.loads(run("audit", *words, *NCNN, "--json").out)
        assert isinstance(data, list)
        assert len(data) == 1
    bad = models / "bad.onnx"
    bad.write_text("nonsense")
    answer = run("audit", models, *NCNN, "--json")
    assert answer.status == 2
    (error,) = [row for row in json.loads(answer.out) if "findings" not in row]
    assert error["model"] == str(bad)
    assert error["ok"] is False


def test_report_format_follows_the_files_suffix(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="audits read ONNX files")
    files = [tmp_path / f"report{end}" for end in (".html", ".json", ".md", ".txt")]
    wanted = [word for file in files for word in ("-o", file)]
    answer = run("audit", VISION, *NCNN, *wanted)
    assert answer.status == 1
    assert answer.out == run("audit", VISION, *NCNN).out
    page, data, comment, plain = (file.read_text("utf-8") for file in files)
    assert page.startswith("<!doctype html>")
    assert json.loads(data) == json.loads(run("audit", VISION, *NCNN, "--json").out)
    assert comment == run("audit", VISION, *NCNN, "--markdown").out
    assert "stem/column_scale" in plain
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f.name for f in files)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-o", "report.pdf"], "a report's name ends in one of .html .json .md .sarif .txt"),
        (["-o", "nowhere/report.html"], "there is no folder nowhere"),
        (["--baseline", "nope.json"], "there is no such baseline yet; --write-baseline nope.json"),
        (["--fail-on", "diferent"], "'diferent' is no verdict that can fail; known: same_here, "),
        (["--fail-on", "same"], "'same' is no verdict that can fail"),
        (["--fail-on", ""], "is no verdict that can fail"),
        (["--fail-on", "none,unknown"], "'none' goes with no other verdict"),
        (["also.onnx", "--given", "N >"], "N >"),
        (["--jobs", "0"], "--jobs"),
        (["--jobs", "x"], "--jobs"),
        (["--json", "--markdown"], "--json and --format markdown are two"),
    ],
)
def test_wrong_options_are_reported_before_any_work(
    run: Run, words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = run("audit", "missing.onnx", *NCNN, *words)
    assert answer.status == 2
    assert said in answer.err
    assert "missing.onnx" not in answer.err
    assert list(tmp_path.iterdir()) == []


def test_output_that_cannot_be_written_is_one_line(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="audits read ONNX files")
    (tmp_path / "folder.html").mkdir()
    answer = run("audit", CLEAN, *NCNN, "-o", tmp_path / "folder.html")
    assert answer.status == 2
    assert len(answer.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("verdicts", "status"),
    [
        ("any", 1),
        ("different", 1),
        ("refused,unknown", 1),
        ("same_here", 1),
        ("unknown", 0),
        (" different , refused", 1),
        ("none", 0),
    ],
)
def test_fail_on_decides_the_status(run: Run, verdicts: str, status: int) -> None:
    pytest.importorskip("onnx", reason="audits read ONNX files")
    assert run("audit", VISION, *NCNN, "--fail-on", verdicts).status == status


def test_unknown_findings_fail_only_if_named(run: Run) -> None:
    pytest.importorskip("onnx", reason="audits read ONNX files")
    model = str(EXAMPLES / "functions_and_subgraphs.onnx")
    assert run("audit", model, "--target", "tosa", "--fail-on", "unknown").status == 1


def test_same_here_findings_fail_only_if_named(run: Run) -> None:
    pytest.importorskip("onnx", reason="audits read ONNX files")
    dynamic = EXAMPLES / "dynamic.onnx"  # nothing but same_here
    assert run("audit", dynamic, *NCNN, "--fail-on", "different,refused").status == 0
    assert run("audit", dynamic, *NCNN, "--fail-on", "same_here").status == 1
    bad = run("audit", dynamic, "nope.onnx", *NCNN, "--fail-on", "none")
    assert bad.status == 2, "a model that cannot be read always fails"


def test_baseline_works_on_the_command_line(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="audits read ONNX files")
    known = tmp_path / "known.json"
    bug = EXAMPLES / "bugs" / "ncnn-4930.onnx"
    audit = ("audit", *NCNN)
    assert run(*audit, VISION, "--write-baseline", known).status == 0
    before = entries(known)
    answer = run(*audit, VISION, "--baseline", known)
    assert answer.status == 0
    assert answer.out.count("\n") == 1
    assert "20 known, 0 new" in answer.out
    assert run(*audit, VISION, "--baseline", known, "--full").out.count("DIFFERENT") == 2
    answer = run(*audit, VISION, bug, "--baseline", known)
    assert answer.status == 1
    assert "0 known, 1 new" in answer.out
    # Another folder, the same model; another model under that name, and what was known is gone.
    (tmp_path / "moved").mkdir()
    moved = tmp_path / "moved" / "tiny_vision.onnx"
    shutil.copy(VISION, moved)
    assert run(*audit, moved, "--baseline", known).status == 0
    shutil.copy(CLEAN, moved)
    answer = run(*audit, moved, "--baseline", known)
    assert answer.status == 0
    assert answer.out.count("stale: can be removed from the baseline: tiny_vision.onnx on ncnn") > 9
    data = json.loads(run(*audit, moved, "--baseline", known, "--json").out)
    assert len(data["baseline"]["stale"]) > 9
    assert data["baseline"]["accepted"] == []
    # Writing again keeps the entries of other models.
    assert run(*audit, bug, "--write-baseline", known).status == 0
    assert set(before[2:-3]) <= set(entries(known))
    assert run(*audit, VISION, bug, "--baseline", known).status == 0
    known.write_text("precious notes")
    answer = run(*audit, VISION, "--write-baseline", known)
    assert answer.status == 2
    assert known.read_text() == "precious notes", "what is no baseline is not written over"


def entries(path: Path) -> list[str]:
    return [line.rstrip(",") for line in path.read_text().splitlines()]


def test_verdicts_are_completed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def offered(typed: str) -> set[str]:
        monkeypatch.setenv("_ZEROSTRIDE_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", typed)
        monkeypatch.setenv("COMP_CWORD", str(typed.count(" ")))
        return {line.partition(",")[2] for line in run().out.splitlines()}

    assert offered("zerostride audit --fail-on d") == {"different"}
    assert offered("zerostride audit --fail-on different,re") == {"different,refused"}
    assert "unknown" in offered("zerostride audit --fail-on ")
    assert {"--baseline", "--write-baseline"} & offered("zerostride audit --b") == {"--baseline"}


def test_stopped_worker_answers_how_it_ended() -> None:
    # An interrupt stops the workers while other threads wait for their answers.
    worker = _Worker()
    worker._child = Child([sys.executable, "-c", "import time; time.sleep(60)"])
    timer = threading.Timer(0.3, worker.stop)
    timer.start()
    answer = worker.ask("m.onnx", "ncnn", ModelOptions())
    timer.join()
    assert isinstance(answer, Unread)
    assert "was ended by SIGKILL" in str(answer)
    again = worker.ask("m.onnx", "ncnn", ModelOptions())
    assert "could not be started" in str(again)
