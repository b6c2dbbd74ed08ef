"""What a test set promises: the embedded one, the format on disk, and the loaders on small made-up packages."""

from __future__ import annotations

import json
import re
import struct
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import yaml

from testsets import loaders, manifest
from testsets.manifest import Recording, Segment, TestSet


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def tiny():
    return manifest.load("tiny")


@pytest.fixture
def made_up(tmp_path):
    """Two recordings, three segments, one of them without a German text."""
    root = tmp_path / "made-up"
    root.mkdir()
    recordings = []
    for id_, spans in {"a": [(0, 500, "one"), (500, 500, "two")], "b": [(0, 1000, "three")]}.items():
        soundfile.write(root / f"{id_}.flac", np.zeros(16000, np.int16), 16000)
        segments = tuple(
            Segment(start, length, text, {"it": text[::-1]} | ({"de": text.upper()} if id_ == "a" else {}))
            for start, length, text in spans
        )
        sha256 = manifest.file_sha256(root / f"{id_}.flac")
        recordings.append(Recording(id_, f"{id_}.flac", sha256, 1000.0, segments))
    test_set = TestSet("made-up", "en", "none", "this test", tuple(recordings), root)
    manifest.save(test_set)
    return test_set


def test_tiny_is_what_its_manifest_says(tiny):
    tiny.verify()
    assert [r.id for r in tiny.recordings] == [
        *(f"sense-{n}" for n in ("0870", "0880", "0890", "0920", "0930")),
        "sonnet-1",
    ]
    for recording in tiny.recordings:
        audio = soundfile.info(tiny.audio_path(recording))
        assert (audio.samplerate, audio.channels) == (16000, 1)
        assert recording.duration_ms == audio.frames / 16


def test_every_file_in_tiny_is_named_by_the_manifest_or_the_licence(tiny):
    known = {r.audio for r in tiny.recordings} | {"manifest.json", "LICENCE.md"}
    assert {path.name for path in tiny.root.iterdir()} == known


def test_segments_of_tiny_follow_one_another_inside_the_audio(tiny):
    for recording in tiny.recordings:
        end_ms = 0.0
        for segment in recording.segments:
            assert segment.offset_ms == pytest.approx(end_ms, abs=1e-6)
            end_ms = segment.offset_ms + segment.duration_ms
        assert end_ms == pytest.approx(recording.duration_ms, abs=50)


def test_references_are_one_line_a_segment_in_the_manifests_order(tiny):
    references = tiny.references("en")
    assert list(references) == [r.id for r in tiny.recordings]
    assert references["sense-0920"][0].startswith("had he married a more a amiable woman")
    assert references["sonnet-1"][:2] == ["One.", "From fairest creatures we desire increase,"]
    assert len(references["sonnet-1"]) == 15


def test_a_missing_translation_is_an_error_that_names_the_languages(made_up):
    assert made_up.languages() == ["en", "it"]
    assert made_up.references("it") == {"a": ["eno", "owt"], "b": ["eerht"]}
    with pytest.raises(KeyError, match=r"no 'de' for 1 segments, the first in recording 'b'. Languages: en, it"):
        made_up.references("de")


def test_an_unknown_test_set_is_an_error_that_names_the_known_ones():
    with pytest.raises(KeyError, match=r"no test set 'tinny'. Here: .*\btiny\b.*scripts.fetch"):
        manifest.load("tinny")


def test_a_saved_test_set_reads_back_equal_from_a_folder_and_from_the_cache(made_up, tmp_path):
    assert manifest.load("anything", made_up.root) == made_up
    assert manifest.load(str(made_up.root)) == made_up
    cached = tmp_path / "cache" / "hikari-simulst" / "testsets" / "made-up"
    manifest.save(replace(made_up, root=cached))
    assert manifest.load("made-up") == replace(made_up, root=cached)
    assert not list(made_up.root.glob("*.part"))


def test_the_checksum_depends_on_the_content_and_not_on_the_place(made_up, tmp_path):
    assert replace(made_up, root=tmp_path).sha256 == made_up.sha256
    assert made_up.select(["b", "a"]).sha256 != made_up.sha256
    assert made_up.select(["a", "b"]).sha256 == made_up.sha256


def test_an_unknown_recording_cannot_be_selected(made_up):
    with pytest.raises(KeyError, match=r"no recording 'c' in test set 'made-up'\. Known: a, b"):
        made_up.select(["c"])


def test_changed_audio_is_refused(made_up):
    made_up.verify()
    path = made_up.root / "b.flac"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=re.escape(str(path))):
        made_up.verify()


def test_missing_audio_is_refused(made_up):
    (made_up.root / "a.flac").unlink()
    with pytest.raises(FileNotFoundError, match=r"a\.flac of test set 'made-up' is missing"):
        made_up.verify()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"name": "x"}', '{"recordings": [{"id": "a"}]}'])
def test_a_broken_manifest_is_refused_with_its_path(tmp_path, content):
    (tmp_path / "manifest.json").write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=r"manifest\.json is not a test set manifest"):
        manifest.load("broken", tmp_path)


def test_simuleval_inputs_hold_every_recording_and_segment_once(made_up, tmp_path):
    folder = tmp_path / "inputs"
    made_up.write_simuleval_inputs(folder, "it")
    lines = {name: (folder / name).read_text(encoding="utf-8").splitlines() for name in ("source.txt", "target.txt")}
    assert [soundfile.info(path).frames for path in lines["source.txt"]] == [16000, 16000]
    assert lines["target.txt"] == ["eno owt", "eerht"]
    assert (folder / "references.txt").read_text(encoding="utf-8") == "eno\nowt\neerht\n"
    assert yaml.safe_load((folder / "segments.yaml").read_text(encoding="utf-8")) == [
        {"wav": "a.flac", "offset": 0.0, "duration": 0.5},
        {"wav": "a.flac", "offset": 0.5, "duration": 0.5},
        {"wav": "b.flac", "offset": 0.0, "duration": 1.0},
    ]


def catalogue(texts: dict[str, str]) -> bytes:
    """A GNU .mo file (gettext manual, "The Format of GNU MO Files")."""
    pairs = sorted({"": "Content-Type: text/plain; charset=UTF-8\n", **texts}.items())
    data, tables, position = b"", [[], []], 28 + 16 * len(pairs)
    for side in (0, 1):
        for pair in pairs:
            text = pair[side].encode()
            tables[side] += [len(text), position + len(data)]
            data += text + b"\0"
    header = struct.pack("<7I", 0x950412DE, 0, len(pairs), 28, 28 + 8 * len(pairs), 0, 0)
    return header + struct.pack(f"<{4 * len(pairs)}I", *tables[0], *tables[1]) + data


def write(path: Path, content: bytes | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def speech(path: Path, seconds: float, rate: int = 11025, n_channels: int = 1) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    tone = 0.5 * np.sin(np.arange(round(seconds * rate)) * 2 * np.pi * 440 / rate)
    soundfile.write(path, np.repeat(tone[:, None], n_channels, axis=1), rate, format="OGG", subtype="VORBIS")
    return path


TUTORIAL = r"""
consoleVar = [
    {"audio": "tut1.ogg", "clear": false, "message": _("You'll learn \"this\""), "state": 0},
    {"audio": "tut4.ogg", "clear": false, "message": _("The actor says something else"), "state": 1},
    {"audio": "tut6.ogg", "clear": false, "message": undefined, "state": 2},
    {"audio": "tut7.ogg", "clear": false, "message": _("Left click"), "state": 2, "func": "f"},
];
"""


@pytest.fixture
def warzone_package(tmp_path):
    package = tmp_path / "warzone2100-data"
    archive = package / "usr/share/games/warzone2100/base.wz"
    archive.parent.mkdir(parents=True)
    with zipfile.ZipFile(archive, "w") as members:
        members.writestr("script/tutorial.js", TUTORIAL)
        for name, seconds in {"tut1": 1.0, "tut4": 3.0, "tut6": 3.0, "tut7": 2.0}.items():
            members.write(speech(tmp_path / "clip.ogg", seconds), f"audio/tutorial/{name}.ogg")
    for language in loaders.WARZONE_LANGUAGES:
        texts = {'You\'ll learn "this"': f"{language} eins"} | ({} if language == "cs" else {"Left click": "zwei"})
        write(package / loaders.WARZONE_LOCALE.format(language=language), catalogue(texts))
    write(package / "usr/share/doc/warzone2100-data/copyright", "GPL-2+")
    return package


def test_warzone_clips_leave_out_what_has_no_text_or_another_one(warzone_package, tmp_path):
    built = loaders.warzone_clips(warzone_package, tmp_path / "clips", "4.3.3-3")
    assert built == manifest.load("warzone-clips", tmp_path / "clips")
    built.verify()
    assert built.references("en") == {"tut1": ['You\'ll learn "this"'], "tut7": ["Left click"]}
    assert built.references("de") == {"tut1": ["de eins"], "tut7": ["zwei"]}
    assert built.languages() == ["en", "de", "it", "ru"]  # no cs text for tut7
    assert built.recordings[0].segments[0].targets["cs"] == "cs eins"
    assert (tmp_path / "clips" / "LICENCE.warzone2100-data").read_text() == "GPL-2+"
    assert built.origin == "Debian warzone2100-data 4.3.3-3"


def test_built_audio_is_16_khz_mono_of_the_length_the_manifest_says(warzone_package, tmp_path):
    built = loaders.warzone_clips(warzone_package, tmp_path / "clips", "1")
    for recording, seconds in zip(built.recordings, (1.0, 2.0), strict=True):
        audio = soundfile.info(built.audio_path(recording))
        assert (audio.samplerate, audio.channels, audio.subtype) == (16000, 1, "PCM_16")
        assert recording.duration_ms == audio.frames / 16 == pytest.approx(1000 * seconds, abs=1)


def test_the_long_form_is_the_clips_with_half_a_second_of_silence_after_each(warzone_package, tmp_path):
    clips = loaders.warzone_clips(warzone_package, tmp_path / "clips", "1")
    long = loaders.warzone_long(warzone_package, tmp_path / "long", "1")
    samples, _ = soundfile.read(long.audio_path(long.recordings[0]), dtype="int16")
    pause = np.zeros(8000, np.int16)
    pieces = [soundfile.read(clips.audio_path(r), dtype="int16")[0] for r in clips.recordings]
    np.testing.assert_array_equal(samples, np.concatenate([pieces[0], pause, pieces[1], pause]))
    segments = long.recordings[0].segments
    assert [s.offset_ms for s in segments] == [0.0, clips.recordings[0].duration_ms + 500]
    assert [replace(s, offset_ms=0.0) for s in segments] == [r.segments[0] for r in clips.recordings]


@pytest.mark.parametrize(
    "path",
    [
        "usr/share/games/warzone2100/base.wz",
        "usr/share/locale/it/LC_MESSAGES/warzone2100.mo",
        "usr/share/doc/warzone2100-data/copyright",
    ],
)
def test_a_file_missing_from_a_package_is_named_with_the_package(warzone_package, tmp_path, path):
    (warzone_package / path).unlink()
    with pytest.raises(FileNotFoundError, match=f"{path} is missing: it comes with Debian package warzone2100-data"):
        loaders.warzone_clips(warzone_package, tmp_path / "clips", "1")


def test_a_clip_missing_from_the_archive_is_named(warzone_package, tmp_path):
    with zipfile.ZipFile(warzone_package / "usr/share/games/warzone2100/base.wz", "w") as members:
        members.writestr("script/tutorial.js", TUTORIAL)
    with pytest.raises(FileNotFoundError, match=r"base.wz of Debian package warzone2100-data: .*tut1\.ogg"):
        loaders.warzone_clips(warzone_package, tmp_path / "clips", "1")


def test_a_package_without_any_clip_is_refused(warzone_package, tmp_path):
    with zipfile.ZipFile(warzone_package / "usr/share/games/warzone2100/base.wz", "w") as members:
        members.writestr("script/tutorial.js", "// moved elsewhere")
    with pytest.raises(ValueError, match="no clip for test set 'warzone-clips'"):
        loaders.warzone_clips(warzone_package, tmp_path / "clips", "1")


@pytest.fixture
def fillets_packages(tmp_path):
    texts, sounds = tmp_path / "fillets-ng-data", tmp_path / "fillets-ng-data-cs"
    scripts = texts / loaders.FILLETS_ROOT / "script"
    names = {"hi": "Hello", "quote": r"A \"fish\",\nC:\\X", "mute": "No speech", "raw": "No Czech text", "old": ""}
    heads = {name: f'dialogId("{name}", "font_big", "{text}")\n' for name, text in names.items()}
    write(scripts / "room" / "dialogs_en.lua", "".join(heads.values()) + '-- dialogId("gone", "f", "Commented out")\n')
    czech = {"hi": "Ahoj", "quote": r"\"Ryba\"", "mute": "Ticho", "old": "Staré"}
    write(
        scripts / "room" / "dialogs_cs.lua",
        "".join(f'{heads[k]}dialogStr(\n"{v}")\n' for k, v in czech.items()) + heads["raw"],
    )
    write(scripts / "room" / "dialogs_de.lua", f'{heads["hi"]}dialogStr("Hallo")\n{heads["quote"]}dialogStr("")\n')
    write(scripts / "aaa" / "dialogs_en.lua", 'dialogId("first", "font_small", "First")')
    write(scripts / "aaa" / "dialogs_cs.lua", 'dialogId("first", "font_small", "First")\ndialogStr("První")')
    for level, name, rate, n_channels in (
        ("aaa", "first", 44100, 2),
        *(("room", name, 22050, 1) for name in ("hi", "quote", "raw", "old", "gone")),
    ):
        speech(sounds / loaders.FILLETS_ROOT / "sound" / level / "cs" / f"{name}.ogg", 1.0, rate, n_channels)
    for package in (texts, sounds):
        write(package / "usr/share/doc" / package.name / "copyright", f"GPL-2 {package.name}")
    return texts, sounds


def test_fillets_are_the_lines_with_czech_speech_a_czech_and_an_english_text(fillets_packages, tmp_path):
    built = loaders.fillets(*fillets_packages, tmp_path / "fillets", "1.0.1-1.1")
    built.verify()
    assert built == manifest.load("fillets", tmp_path / "fillets")
    assert built.references("cs") == {"aaa__first": ["První"], "room__hi": ["Ahoj"], "room__quote": ['"Ryba"']}
    assert [r.segments[0].targets for r in built.recordings] == [
        {"en": "First"},
        {"en": "Hello", "de": "Hallo"},
        {"en": 'A "fish", C:\\X'},
    ]
    assert [r.duration_ms for r in built.recordings] == pytest.approx([1000] * 3, abs=1)
    for package in fillets_packages:
        assert (tmp_path / "fillets" / f"LICENCE.{package.name}").read_text() == f"GPL-2 {package.name}"


def test_fillets_without_the_speech_package_name_it(fillets_packages, tmp_path):
    with pytest.raises(FileNotFoundError, match="it comes with Debian package fillets-ng-data-cs"):
        loaders.fillets(fillets_packages[0], tmp_path / "elsewhere", tmp_path / "fillets", "1")


def test_a_clip_that_is_no_audio_is_named(fillets_packages, tmp_path):
    write(fillets_packages[1] / loaders.FILLETS_ROOT / "sound/room/cs/hi.ogg", b"not audio")
    with pytest.raises(ValueError, match="clip 'room__hi' cannot be read as audio"):
        loaders.fillets(*fillets_packages, tmp_path / "fillets", "1")


def test_the_manifest_is_readable_text_with_characters_as_they_are(made_up):
    text = manifest.save(replace(made_up, origin="Žluťoučký")).read_text(encoding="utf-8")
    assert "Žluťoučký" in text
    assert "root" not in json.loads(text)
