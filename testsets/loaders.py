"""Build the test sets that may not lie in this repository (GPL), each from unpacked Debian packages.

A loader reads folders made by `dpkg -x`, writes 16 kHz mono FLAC, the packages' licences and a manifest into a folder,
and returns the test set. `python -m scripts.fetch warzone` downloads, unpacks and calls them.
"""

from __future__ import annotations

import gettext
import io
import json
import logging
import re
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from testsets.files import file_sha256
from testsets.manifest import Recording, Segment, TestSet, save

if TYPE_CHECKING:
    import numpy as np

logger = logging.getLogger(__name__)

SAMPLE_RATE = 16000
PAUSE_S = 0.5  # between the joined clips of warzone-long, and after the last

WARZONE = "warzone2100-data"
WARZONE_LOCALE = "usr/share/locale/{language}/LC_MESSAGES/warzone2100.mo"
WARZONE_LANGUAGES = ("de", "ru", "it", "cs")
# Clips whose actor says something else than the text on the screen (warzone2100-data 4.3.3-3): Whisper base's word
# error rate against the text is over 0.34. What Whisper base heard is the reason given.
WARZONE_EXCLUDED = {
    "tut4": "Then left-click the oil pool indicated by the radar pulse.",
    "tut5": "The oil Derek is currently dormant.",
    "tut16": "Move the pointer over the artifact.",
    "tut28": "The researched machine gun can be used to design a new vehicle using the Viper body.",
    "tut34": "Then let's click the machine gun to complete your design.",
    "tut40": "Then left click, the factory.",
    "tut41": "Now position it at your base.",
    "tut43": "This is initially positioned next to your factory.",
    "tut45": "Then left click where you want to position it.",
    "tut47": "Manufacture a Viper.",
    "tut50": "Then left click the truck.",
    "tut51": "Your factory will now produce one viper and one truck.",
}
_MESSAGE = re.compile(r'"audio":\s*"(tut\d+)\.ogg"[^}\n]*?"message":\s*_\("((?:[^"\\]|\\.)*)"\)')

FILLETS, FILLETS_CZECH = "fillets-ng-data", "fillets-ng-data-cs"
FILLETS_ROOT = "usr/share/games/fillets-ng"
FILLETS_LANGUAGES = ("en", "de", "ru", "it")
_STRING = r'"((?:[^"\\]|\\.)*)"'
_DIALOG = re.compile(
    rf"^\s*dialogId\(\s*{_STRING}\s*,\s*{_STRING}\s*,\s*{_STRING}\s*\)|^\s*dialogStr\(\s*{_STRING}\s*\)", re.MULTILINE
)


@dataclass(frozen=True)
class _Clip:
    """A piece of speech before it is written: its name, encoded audio, transcript and translations."""

    id: str
    audio: bytes
    source: str
    targets: dict[str, str]


def warzone_clips(package: Path, folder: Path, version: str) -> TestSet:
    """The tutorial of Warzone 2100 as one recording a clip: English with human de, ru, it and, mostly, cs texts.

    `package` is the unpacked Debian package warzone2100-data of `version`. 30 clips, 87 s in version 4.3.3-3.
    Raises FileNotFoundError or ValueError naming the file and the package.
    """
    recordings = []
    for clip in _progress(_warzone(package), "warzone-clips"):
        samples = _samples(clip)
        segment = Segment(0.0, _ms(len(samples)), clip.source, clip.targets)
        recordings.append(_write(folder, clip.id, samples, [segment]))
    return _save("warzone-clips", "en", "GPL-2+", version, recordings, folder, {WARZONE: package})


def warzone_long(package: Path, folder: Path, version: str) -> TestSet:
    """The clips of `warzone_clips` in one recording, each followed by 0.5 s of silence; a segment is a clip.

    102 s in version 4.3.3-3. Parameters and errors as there.
    """
    import numpy as np

    pieces: list[np.ndarray] = []
    segments: list[Segment] = []
    n_samples = 0
    for clip in _progress(_warzone(package), "warzone-long"):
        samples = _samples(clip)
        segments.append(Segment(_ms(n_samples), _ms(len(samples)), clip.source, clip.targets))
        pieces += [samples, np.zeros(round(PAUSE_S * SAMPLE_RATE), samples.dtype)]
        n_samples += len(pieces[-2]) + len(pieces[-1])
    recording = _write(folder, "longform", np.concatenate(pieces), segments)
    return _save("warzone-long", "en", "GPL-2+", version, [recording], folder, {WARZONE: package})


def fillets(package: Path, czech_package: Path, folder: Path, version: str) -> TestSet:
    """The dialogues of Fish Fillets: Czech, acted, one recording a line, with human en, de, ru and it texts.

    `package` and `czech_package` are the unpacked Debian packages fillets-ng-data (texts) and fillets-ng-data-cs
    (speech) of `version`. Every recording has an English text; a translation that is missing is left out of
    `targets`. Translations are free, as in subtitles. 1,714 clips, 5,857 s in version 1.0.1-1.1.
    Raises FileNotFoundError or ValueError naming the file and the package.
    """
    recordings = []
    for clip in _progress(_fillets(package, czech_package), "fillets"):
        samples = _samples(clip)
        segment = Segment(0.0, _ms(len(samples)), clip.source, clip.targets)
        recordings.append(_write(folder, clip.id, samples, [segment]))
    packages = {FILLETS: package, FILLETS_CZECH: czech_package}
    return _save("fillets", "cs", "GPL-2", version, recordings, folder, packages)


def _warzone(package: Path) -> list[_Clip]:
    """The clips that have a text and say it, in the tutorial's order."""
    archive = _file(package / "usr/share/games/warzone2100/base.wz", WARZONE)
    catalogues = {}
    for language in WARZONE_LANGUAGES:
        with _file(package / WARZONE_LOCALE.format(language=language), WARZONE).open("rb") as file:
            catalogues[language] = gettext.GNUTranslations(file)
    clips = []
    try:
        with zipfile.ZipFile(archive) as members:
            script = members.read("script/tutorial.js").decode("utf-8")
            for name, escaped in _MESSAGE.findall(script):
                if name in WARZONE_EXCLUDED:
                    continue
                text = json.loads(f'"{escaped}"')
                # gettext gives the English text itself for one that is not translated
                translated = {language: catalogues[language].gettext(text) for language in WARZONE_LANGUAGES}
                targets = {language: _line(said) for language, said in translated.items() if said not in ("", text)}
                clips.append(_Clip(name, members.read(f"audio/tutorial/{name}.ogg"), _line(text), targets))
    except zipfile.BadZipFile as error:
        raise ValueError(f"{archive} of Debian package {WARZONE} is no zip file ({error}): unpack it again") from error
    except KeyError as error:
        raise FileNotFoundError(f"{archive} of Debian package {WARZONE}: {error.args[0]}") from error
    return clips


def _fillets(package: Path, czech_package: Path) -> list[_Clip]:
    """The lines that have Czech speech, a Czech text and an English one, by level, in each level's order."""
    scripts = package / FILLETS_ROOT / "script"
    sounds = czech_package / FILLETS_ROOT / "sound"
    for folder, name in ((scripts, FILLETS), (sounds, FILLETS_CZECH)):
        if not folder.is_dir():
            raise FileNotFoundError(f"{folder} is missing: it comes with Debian package {name}, unpacked by dpkg -x")
    clips = []
    for level in sorted(path.parent for path in scripts.glob("*/dialogs_en.lua")):
        english, _ = _dialogs(level / "dialogs_en.lua")
        texts = {"en": english} | {
            language: _dialogs(level / f"dialogs_{language}.lua")[1]
            for language in ("cs", *FILLETS_LANGUAGES)
            if language != "en" and (level / f"dialogs_{language}.lua").is_file()
        }
        for id_, text in english.items():
            audio, czech = sounds / level.name / "cs" / f"{id_}.ogg", texts.get("cs", {}).get(id_)
            if text and czech and audio.is_file():
                targets = {k: texts[k][id_] for k in FILLETS_LANGUAGES if texts.get(k, {}).get(id_)}
                clips.append(_Clip(f"{level.name}__{id_}", audio.read_bytes(), czech, targets))
    return clips


def _dialogs(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """A level's texts by line id: the English ones it names, and its own language's; comments are passed over."""
    english: dict[str, str] = {}
    own: dict[str, str] = {}
    id_ = ""
    for name, _font, text, translated in _DIALOG.findall(path.read_text(encoding="utf-8")):
        if name:
            id_ = name
            english[id_] = _unescape(text)
        elif id_:
            own[id_] = _unescape(translated)
    return english, own


def _unescape(text: str) -> str:
    r"""A Lua string without its escapes: `\n` becomes a space, `\"` and `\\` the character."""
    return _line(re.sub(r"\\(.)", lambda match: " " if match[1] in "nt" else match[1], text, flags=re.DOTALL))


def _line(text: str) -> str:
    """The text in one line: a reference file has one line a segment."""
    return " ".join(text.split())


def _file(path: Path, package: str) -> Path:
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: it comes with Debian package {package}, unpacked by dpkg -x")
    return path


def _samples(clip: _Clip) -> np.ndarray:
    """16-bit samples, mono, 16 kHz. Raises ValueError if the clip is no audio."""
    import numpy as np
    import soundfile
    import soxr

    try:
        samples, rate = soundfile.read(io.BytesIO(clip.audio), dtype="float32", always_2d=True)
    except soundfile.LibsndfileError as error:
        raise ValueError(f"clip '{clip.id}' cannot be read as audio ({error}): unpack the package again") from error
    mono = soxr.resample(samples.mean(axis=1), rate, SAMPLE_RATE)
    return np.round(np.clip(mono, -1, 1) * 32767).astype(np.int16)


def _ms(n_samples: int) -> float:
    return n_samples * 1000 / SAMPLE_RATE


def _write(folder: Path, id_: str, samples: np.ndarray, segments: list[Segment]) -> Recording:
    import soundfile

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{id_}.flac"
    soundfile.write(path, samples, SAMPLE_RATE, subtype="PCM_16")
    return Recording(id_, path.name, file_sha256(path), _ms(len(samples)), tuple(segments))


def _save(
    name: str,
    language: str,
    licence: str,
    version: str,
    recordings: list[Recording],
    folder: Path,
    packages: Mapping[str, Path],
) -> TestSet:
    """Copy the packages' licences and write the manifest."""
    for package, root in packages.items():
        shutil.copyfile(_file(root / "usr/share/doc" / package / "copyright", package), folder / f"LICENCE.{package}")
    origin = f"Debian {' and '.join(packages)} {version}"
    test_set = TestSet(name, language, licence, origin, tuple(recordings), folder)
    save(test_set)
    return test_set


def _progress(clips: list[_Clip], name: str) -> Iterator[_Clip]:
    """The clips, with a bar on a terminal. Raises ValueError if there are none."""
    from tqdm import tqdm

    if not clips:
        raise ValueError(f"no clip for test set '{name}' in the Debian package: has its layout changed?")
    silent = None if logger.isEnabledFor(logging.INFO) else True  # None: silent unless stderr is a terminal
    yield from tqdm(clips, desc=name, unit="clip", disable=silent)
