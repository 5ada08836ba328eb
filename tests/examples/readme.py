"""The README of an example, followed to the letter in a copy of its folder.

The lines behind `$ ` in its console blocks are commands; what follows one is what it prints. `python`, `transom` and
`head` are known, and `| head -5` behind one of them.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from tests.cli.commands import command, environment

EXAMPLES = Path(__file__).parents[2] / "examples"


def follow(name: str, folder: Path) -> dict[str, str]:
    """All that the commands print, by command without its `| head`; the answers are left in the folder."""
    shutil.copytree(EXAMPLES / name, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("data", "out"))
    text = (folder / "README.md").read_text(encoding="utf-8")
    printed: dict[str, str] = {}
    for block in re.findall(r"^```console\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL):
        parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
        assert parts[0] == "" and len(parts) > 2, f"{name}: a command is written behind '$ '"
        for line, shown in zip(parts[1::2], parts[2::2], strict=True):
            whole, _, head = line.partition(" | head -")
            printed[whole] = run(whole, folder)
            given = printed[whole] if not head else "".join(printed[whole].splitlines(keepends=True)[: int(head)])
            assert given == shown, f"{name}: '{line}' prints\n{given}"
    assert printed, f"{name}: the README shows no command"
    return printed


def run(line: str, folder: Path) -> str:
    program, *arguments = shlex.split(line)
    if program == "head":
        count, path = arguments
        return "".join((folder / path).read_text(encoding="utf-8").splitlines(keepends=True)[: int(count[1:])])
    programs = {"python": [sys.executable, "-W", "error", *arguments], "transom": command(*arguments)}
    ended = subprocess.run(
        programs[program], cwd=folder, env=environment(), capture_output=True, text=True, encoding="utf-8"
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
