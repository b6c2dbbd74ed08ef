"""The tree is what the README says, and imports point one way."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import time

import pytest
from harness import ROOT

PACKAGES = ("hikari_agent", "baselines", "testsets", "reports", "scripts")
# Who may import whom (ARCHITECTURE.md). baselines and reports meet on disk, in the run folder.
ARROWS = {
    "hikari_agent": set(),
    "testsets": set(),
    "baselines": {"hikari_agent"},
    "reports": {"testsets"},
    "scripts": {"hikari_agent", "baselines", "testsets", "reports"},
}
FORBIDDEN = {"reports": {"torch", "simuleval", "transformers"}, "testsets": {"torch", "simuleval", "transformers"}}
FILES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
COMMANDS = sorted(
    path.stem
    for path in (ROOT / "scripts").glob("*.py")
    if 'if __name__ == "__main__"' in path.read_text(encoding="utf-8")
)


def imported_packages(path) -> set[str]:
    """Top-level packages a file imports, inside functions too; relative imports stay within the package."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.split(".")[0])
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_one_way(path):
    package = path.relative_to(ROOT).parts[0]
    ours = imported_packages(path) & set(PACKAGES) - {package}
    assert ours <= ARROWS[package], f"{package} may import {ARROWS[package] or 'nothing of ours'}"
    assert not imported_packages(path) & FORBIDDEN.get(package, set())


def test_only_the_agent_module_of_the_package_knows_simuleval():
    users = {p.name for p in (ROOT / "hikari_agent").rglob("*.py") if "simuleval" in imported_packages(p)}
    assert users == {"agent.py"}


def test_the_readme_shows_the_tree_there_is():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = next(part for part in re.findall(r"```text\n(.*?)```", text, re.S) if "hikari_agent/" in part)
    shown, folder = set(), ""
    for line in block.splitlines():
        name = line.split()[0] if line.strip() else ""
        if name.endswith("/") and not line.startswith(" "):
            folder = name
        elif name.endswith(".py"):
            shown.add(folder + name)
    there = {str(path.relative_to(ROOT)) for path in FILES if path.name != "__init__.py"}
    assert shown == there


def test_no_file_is_two_ideas():
    long = {str(p.relative_to(ROOT)): n for p in FILES if (n := len(p.read_text(encoding="utf-8").splitlines())) > 400}
    assert not long


def test_nothing_reads_beyond_the_checkout():
    texts = {p: p.read_text(encoding="utf-8") for p in [*FILES, ROOT / "Makefile", ROOT / ".ci" / "run"]}
    assert [str(p) for p, text in texts.items() if re.search(r"\bshared/|\.\./", text)] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_help_answers_at_once_and_loads_nothing_heavy(command):
    code = (
        f"import sys; from scripts.{command} import main\n"
        "try: main(['--help'])\n"
        "except SystemExit as end: assert end.code == 0\n"
        "heavy = {'torch', 'transformers', 'simuleval', 'pandas', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "usage:" in done.stdout
    assert time.perf_counter() - started < 1  # 0.1 s on an idle machine


@pytest.mark.parametrize("agent", ["hikari_agent.agent.HikariAgent", "baselines.agent.PolicyAgent"])
def test_agents_build_their_parser_without_torch(agent):
    module, name = agent.rsplit(".", 1)
    code = (
        f"import argparse, sys; from {module} import {name}\n"
        f"{name}.add_args(argparse.ArgumentParser())\n"
        "assert not {'torch', 'transformers', 'onnxruntime'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_agent_options_never_shadow_those_of_simuleval():
    from argparse import ArgumentParser

    from simuleval import options

    from baselines.agent import PolicyAgent
    from hikari_agent.agent import HikariAgent

    parser = options.general_parser()
    options.add_evaluator_args(parser)
    options.add_scorer_args(parser, [])
    options.add_slurm_args(parser)
    options.add_dataloader_args(parser, [])
    known = {flag for action in parser._actions for flag in action.option_strings}
    assert {"--source", "--output", "--device", "--quality-metrics"} <= known
    for agent in (HikariAgent, PolicyAgent):
        own = ArgumentParser(add_help=False)
        agent.add_args(own)
        flags = [flag for action in own._actions for flag in action.option_strings]
        assert all(flag.startswith(f"--{agent.option_prefix}-") for flag in flags)
        assert not known & set(flags)


def test_both_sides_of_the_run_folder_agree_on_languages_without_blanks():
    from hikari_agent.tokens import LANGUAGES_WITHOUT_BLANKS
    from reports.quality import CHARACTER_LANGUAGES

    assert set(CHARACTER_LANGUAGES) == set(LANGUAGES_WITHOUT_BLANKS)
