"""Plants the bugs of `bugs.py` one by one into a copy of the checkout, and asks whether the tests of CI notice.

    python -m tests.planted.plant [--only NAME ..] [--without-spark] [--jobs N] [--seconds N] [--json]

A bug is caught by a test that fails with it and passes without it. What caught it when it was last planted, or is
thought to (`caught_by.json`), runs before everything else, in a process of its own; then what usually catches bugs, and
then all the rest, until a test fails; what a property fails with is not made smaller. If none does the bug is MISSED,
and the exit status is 1. All of them are tests of `make test`: a hint that runs at night only finds nothing. A hint
that is wrong costs time and nothing else.

First, what is in that file runs without any bug. Where such a test fails without one it cannot tell anything, so the
bugs that it is thought to catch are not planted; any other test that fails with a bug has to pass without it, too, or
is left out from then on. Bugs that were not planted for this reason, or because `--seconds` were over, are listed at
the end, and the exit status is 3. What caught a bug is written into the file, beside what others have written there
meanwhile.

`--without-spark` is for a machine that has no Java: tests that need it do not run, and the bugs that are known to be
caught by one of them are left out and listed. Packages may come from folders on PYTHONPATH, behind the sources of the
copy; pyspark has to be among them, but not its jars. Files of tests that import what is not there are left out like the
tests on Spark. So where there are many cores and no Java most are planted with

    PYTHONPATH=packages python -m tests.planted.plant --without-spark --jobs 16

and the rest, whose names it ends with, where Java is, with `--only`.

A copy always lies in the same folder and files keep their times, so that Numba finds what it compiled before. It looks
at the file of a loop only, though, not at the files of the loops that are compiled into it, so those are thrown away
into which something is compiled that the bug changes.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from tests.planted.bug import Bug
from tests.planted.bugs import BUGS
from tests.planted.compiled import changed_loops, compiled_name, read_module, take_compiled

ROOT: Final = Path(__file__).parents[2]
NOT_COPIED: Final = shutil.ignore_patterns(".*", "__pycache__", "build", "dist")
STAGES: Final = (
    ("tests/conformance", "tests/cases"),
    ("tests/properties",),
    ("src/transom", "tests/kernels", "tests/pipeline", "tests/plan", "tests/planner", "tests/state"),
    ("tests",),
)
CACHE: Final = ".numba-cache"
CAUGHT_BY: Final = Path(__file__).with_name("caught_by.json")
LONGEST_TEST: Final = 900
LONGEST_STAGE: Final = 7_200
"""Seconds. A bug may make a loop endless, which nobody fails to notice."""
NEEDS_SPARK: Final = "spark"
FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
FAILS_ANYWAY: Final = "its test fails here without a bug"
NO_TIME: Final = "the time was over"


@dataclass(frozen=True)
class Found:
    """What became of a bug: the first test that failed, or None; or why it was not planted, or not to the end."""

    bug: Bug
    caught_by: str | None = None
    seconds: float = 0.0
    not_planted: str | None = None

    def __str__(self) -> str:
        if self.not_planted is not None:
            return f"{self.bug.name}: not planted: {self.not_planted}"
        reported = "MISSED" if self.caught_by is None else f"caught by {self.caught_by}"
        return f"{self.bug.name}: {reported} ({self.seconds:.0f} s)"


class Broken(Exception):
    """The tests could not be run, so nothing is known about the bug."""


class OutOfTime(Exception):
    """No more tests may run."""


def planted(bug: Bug, source: str) -> str:
    """The source of the bug's file with the bug in it."""
    if source.count(bug.old) != 1:
        raise ValueError(f"{bug.name}: the old text is {source.count(bug.old)} times in {bug.file}, not once")
    return source.replace(bug.old, bug.new)


# --- one bug ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bed:
    """A folder of one worker: `warm` is a copy of the checkout after a run without a bug, `copy` has the bug."""

    folder: Path

    @property
    def warm(self) -> Path:
        return self.folder / "warm"

    @property
    def copy(self) -> Path:
        return self.folder / "copy"

    def prepare(self, tests: list[str], jobs: int, until: float) -> set[str]:
        """Run these tests without a bug; those that fail."""
        files = sorted({test.split("::")[0] for test in tests})
        there = sorted(collected(self.copy, files).intersection(tests)) if tests else []
        for test in sorted(set(tests).difference(there)):
            report(f"no test of make test, so of no use: {test}")
        failed = (
            run_stage(self.copy, [*there, "-n", str(jobs), "--dist=worksteal"], until, first=False) if there else []
        )
        shutil.copytree(self.copy, self.warm)
        return {named(test, there) for test in failed}

    def begin(self, checkout: Path) -> None:
        shutil.copytree(checkout, self.copy)
        if "NUMBA_CACHE_DIR" in os.environ:  # what was compiled at installation
            take_compiled(Path(os.environ["NUMBA_CACHE_DIR"]), ROOT, self.copy / CACHE, self.copy)

    def be_like(self, other: Bed) -> None:
        shutil.copytree(other.warm, self.warm, ignore=shutil.ignore_patterns(CACHE))
        take_compiled(other.warm / CACHE, other.copy, self.warm / CACHE, self.copy)
        shutil.copytree(self.warm, self.copy)

    def plant(self, bug: Bug, caught_by: str | None, chosen: list[str], failing: set[str], until: float) -> Found:
        """`caught_by` is the test that caught it before, and that passes without it; `chosen` says which tests run.

        Tests that turn out to fail without a bug are added to `failing`, of which none runs.
        """
        started = time.monotonic()
        self._plant(bug)
        catching: list[str] = []
        if caught_by is not None and (self.copy / caught_by.split("::")[0]).exists():
            catching = run_stage(self.copy, [caught_by], until, LONGEST_TEST, may_be_gone=True)
        while not catching:
            failed = run_tests(self.copy, [*chosen, *(f"--deselect={test}" for test in sorted(failing))], until)
            if failed is None:
                break
            if "::" in failed:
                self._renew()
                if run_stage(self.copy, [failed], until):
                    report(f"left out, as it fails without a bug: {failed}")
                    failing.add(failed)
                    self._plant(bug)
                    continue
            catching = [failed]
        return Found(bug, catching[0] if catching else None, time.monotonic() - started)

    def _plant(self, bug: Bug) -> None:
        self._renew()
        file = self.copy / "src" / "transom" / bug.file
        source = file.read_text(encoding="utf-8")
        file.write_text(planted(bug, source), encoding="utf-8")
        self._throw_away(file, source)

    def _throw_away(self, file: Path, source: str) -> None:
        """What is compiled differently with the bug, in other files than its own, which Numba looks at itself; tests
        have loops as well."""
        sources = (self.copy / "src", self.copy / "src" / "transom"), (self.copy, self.copy / "tests")
        names = {
            ".".join(path.relative_to(within).with_suffix("").parts): path
            for within, folder in sources
            for path in folder.rglob("*.py")
        }
        read = {name: read_module(path.read_text(encoding="utf-8")) for name, path in names.items() if path != file}
        (own,) = names.keys() - read.keys()
        changed = changed_loops(read | {own: read_module(source)}, own, file.read_text(encoding="utf-8"))
        for module, name in changed:
            path = names[module]
            for compiled in (self.copy / CACHE / compiled_name(path.parent)).glob(f"{path.stem}.{name}-*"):
                compiled.unlink()

    def _renew(self) -> None:
        """Without any bug."""
        mirror(self.warm, self.copy)


def mirror(source: Path, target: Path) -> None:
    """The files of a folder as they are in another one, with their times: those alone are copied that differ."""
    there = {entry.name: entry for entry in os.scandir(source)}
    for entry in os.scandir(target):
        other = there.get(entry.name)
        if other is None or other.is_dir() != entry.is_dir():
            shutil.rmtree(entry) if entry.is_dir() else os.unlink(entry)
    for name, entry in there.items():
        at = target / name
        if entry.is_dir():
            at.mkdir(exist_ok=True)
            mirror(Path(entry), at)
        elif not at.exists() or _stamp(at.stat()) != _stamp(entry.stat()):
            shutil.copy2(entry, at)


def _stamp(status: os.stat_result) -> tuple[int, int]:
    return status.st_mtime_ns, status.st_size


def run_tests(copy: Path, chosen: list[str], until: float) -> str | None:
    """The first test that fails in a copy of the checkout, with the examples of CI; None when all pass."""
    done = ["tests/planted"]  # the list of bugs is not true of a copy that has one
    for stage in STAGES:
        others = [f"--ignore={path}" for path in done if path not in stage]
        failed = run_stage(copy, [*stage, *others, *chosen], until, LONGEST_STAGE)
        if failed:
            return failed[0]
        done += stage
    return None


def named(failed: str, tests: list[str]) -> str:
    """The one of these tests that a summary says failed: what is behind a dash may still be of its name."""
    return next((test for test in tests if test == failed or test.startswith(f"{failed} - ")), failed)


def collected(copy: Path, files: Sequence[str], *chosen: str) -> set[str]:
    """The tests of `make test` in these files and folders, or those of them that the arguments choose."""
    there = [file for file in files if (copy / file).exists()]
    if not there:
        return set()
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", *there, *chosen]
    run = subprocess.run(command, cwd=copy, env=environment_of(copy), capture_output=True, text=True)
    if run.returncode not in (0, 5):  # 5: there are none
        raise Broken("\n".join(run.stdout.splitlines()[-15:]))
    return set(run.stdout.splitlines())


def not_importable(copy: Path) -> list[str]:
    """The files of tests that need packages which are not installed here."""
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", "--tb=line"]
    command += ["--continue-on-collection-errors", "src/transom", "tests"]
    run = subprocess.run(command, cwd=copy, env=environment_of(copy), capture_output=True, text=True)
    if run.returncode not in (0, 1):
        raise Broken("\n".join([*run.stdout.splitlines()[-15:], *run.stderr.splitlines()[-15:]]))
    return FAILED.findall(run.stdout)


def environment_of(copy: Path) -> dict[str, str]:
    ours = ("PYTEST_", "HYPOTHESIS_", "TRANSOM_TESTS")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    path = os.pathsep.join(filter(None, [str(copy / "src"), os.environ.get("PYTHONPATH")]))
    return environment | {
        "PYTHONPATH": path,
        "NUMBA_CACHE_DIR": str(copy / CACHE),
        "COLUMNS": "200",
        "TRANSOM_TESTS": "planted",
    }


def run_stage(
    copy: Path,
    arguments: list[str],
    until: float,
    longest: float = math.inf,
    *,
    first: bool = True,
    may_be_gone: bool = False,
) -> list[str]:
    """The `first` test that fails, or all that do."""
    command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-rfE", "-p", "no:cacheprovider", *arguments]
    command += ["-x"] if first else []
    left = until - time.monotonic()
    if left <= 0:
        raise OutOfTime
    seconds = min(longest, left)
    try:
        run = subprocess.run(
            command,
            cwd=copy,
            env=environment_of(copy),
            capture_output=True,
            text=True,
            timeout=None if math.isinf(seconds) else seconds,
        )
    except subprocess.TimeoutExpired:
        if left < longest:
            raise OutOfTime from None
        return [f"tests that do not end ({longest:.0f} s)"]
    if run.returncode == 0:
        return []
    if run.returncode < 0:
        return [f"a crash (signal {-run.returncode})"]
    if run.returncode in (4, 5) and may_be_gone:
        return []
    failed = FAILED.findall(run.stdout)
    if run.returncode != 1 or not failed:
        raise Broken("\n".join([*run.stdout.splitlines()[-15:], *run.stderr.splitlines()[-15:]]))
    return failed[:1] if first else failed


# --- all of them -----------------------------------------------------------------------------------------------------


def plant_all(bugs: list[Bug], jobs: int, without_spark: bool = False, seconds: float = math.inf) -> Iterator[Found]:
    """Every bug, as they are done; `without_spark` not those that a test on Spark is to catch."""
    until = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="planted-") as folder, ThreadPoolExecutor(jobs) as workers:
        checkout = Path(folder) / "checkout"  # somebody may go on working in the real one
        shutil.copytree(ROOT, checkout, ignore=NOT_COPIED)
        for bug in bugs:
            planted(bug, (checkout / "src" / "transom" / bug.file).read_text(encoding="utf-8"))
        free: SimpleQueue[Bed] = SimpleQueue()
        beds = [Bed(Path(folder) / f"bed{i}") for i in range(jobs)]
        hints: dict[str, str] = json.loads(CAUGHT_BY.read_text(encoding="utf-8"))
        beds[0].begin(checkout)
        chosen: list[str] = []
        if without_spark:
            cannot_run = not_importable(beds[0].copy)
            chosen = [f"--ignore={file}" for file in cannot_run]
            on_spark = collected(beds[0].copy, ["src/transom", "tests"], "-m", NEEDS_SPARK, *chosen)
            chosen += ["-m", f"not {NEEDS_SPARK}"]
            left_out = [
                bug.name
                for bug in bugs
                if bug.name in hints and (hints[bug.name] in on_spark or hints[bug.name].split("::")[0] in cannot_run)
            ]
            bugs = [bug for bug in bugs if bug.name not in left_out]
            report(f"without Spark {len(left_out)} bugs are left out: {' '.join(left_out)}")
        tests = sorted({hints[bug.name] for bug in bugs if bug.name in hints})
        report(f"{len(bugs)} bugs; first the {len(tests)} tests that are thought to catch them, without any")
        try:
            failing = beds[0].prepare(tests, jobs, until)
        except OutOfTime:
            yield from (Found(bug, not_planted=NO_TIME) for bug in bugs)
            return
        report(f"without a bug {len(failing)} of them fail" + "".join(f"\n  {test}" for test in sorted(failing)))
        for bed in beds[1:]:
            bed.be_like(beds[0])
        for bed in beds:
            free.put(bed)

        def plant_bug(bug: Bug) -> Found:
            hint = hints.get(bug.name)
            if hint in failing:
                return Found(bug, not_planted=FAILS_ANYWAY)
            with taken(free) as bed:
                try:
                    return bed.plant(bug, hint, chosen, failing, until)
                except OutOfTime:
                    return Found(bug, not_planted=NO_TIME)
                except Broken as error:
                    return Found(bug, not_planted=f"its tests could not be run\n{error}")

        for done in as_completed([workers.submit(plant_bug, bug) for bug in bugs]):
            yield done.result()


def renewed(hints: Mapping[str, str], caught: Mapping[str, str]) -> dict[str, str]:
    """The hints as they are by now with those that a run has found, in the order of the list; what is behind them is
    of bugs that came while it went on."""
    known = {**hints, **caught}
    in_order = [bug.name for bug in BUGS if bug.name in known]
    return {name: known[name] for name in dict.fromkeys([*in_order, *known])}


@contextmanager
def taken(free: SimpleQueue[Bed]) -> Iterator[Bed]:
    bed = free.get()
    try:
        yield bed
    finally:
        free.put(bed)


def report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.planted.plant", description="Do the tests notice bugs?")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=[bug.name for bug in BUGS], help="these bugs")
    parser.add_argument("--without-spark", action="store_true", help="not those that tests on Spark are to catch")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="so many at once (default 1)")
    parser.add_argument("--seconds", type=float, default=math.inf, metavar="N", help="what is not done then is listed")
    parser.add_argument("--json", action="store_true", help="the result as JSON on standard output")
    arguments = parser.parse_args()
    bugs = [bug for bug in BUGS if arguments.only is None or bug.name in arguments.only]
    results: list[Found] = []
    try:
        for done in plant_all(bugs, max(arguments.jobs, 1), arguments.without_spark, arguments.seconds):
            results.append(done)
            report(f"[{len(results)}/{len(bugs)}] {done}")
    except (Broken, ValueError) as error:
        report(str(error))
        return 2
    ended = [done for done in results if done.not_planted is None]
    missed = [done.bug.name for done in ended if done.caught_by is None]
    not_planted = {done.bug.name: done.not_planted for done in results if done.not_planted is not None}
    caught = {done.bug.name: done.caught_by for done in ended if done.caught_by and "::" in done.caught_by}
    hints = renewed(json.loads(CAUGHT_BY.read_text(encoding="utf-8")), caught)
    CAUGHT_BY.write_text(json.dumps(hints, indent=2) + "\n", encoding="utf-8")
    if arguments.json:
        bugs_reported = [
            {"name": f.bug.name, "file": f.bug.file, "caught_by": f.caught_by, "seconds": round(f.seconds, 1)}
            for f in ended
        ]
        summary = {
            "planted": len(ended),
            "caught": len(ended) - len(missed),
            "missed": missed,
            "not_planted": not_planted,
        }
        print(json.dumps({"bugs": bugs_reported, "summary": summary}, indent=2))
    for why in dict.fromkeys(not_planted.values()):
        names = [name for name, each in not_planted.items() if each == why]
        report(f"{len(names)} not planted: {why}" + "".join(f"\n  {name}" for name in names))
    report(f"{len(ended) - len(missed)} of {len(ended)} bugs were caught" + "".join(f"\n  MISSED {m}" for m in missed))
    return 1 if missed else 3 if not_planted else 0


if __name__ == "__main__":
    sys.exit(main())
