"""espeak-ng in this process, through libespeak-ng: every English accent, variant, rate and pitch, with word times.

The library keeps global state: what was said before changes the next sentence by up to a sample in length, and
`espeak_Terminate` does not reset it (speaking after a second `espeak_Initialize` hangs). So the library is loaded
anew for every sentence (about 2 ms), which makes a sentence depend on its voice and words alone. One sentence at a time
in a process: threads wait for each other; for speed use processes, with fork or spawn.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .speech import OTHER, SILENCE, Speech, checked_speech, checked_words, to_16_khz

LIBRARY = "libespeak-ng.so.1"
NO_DATA = "espeak-ng finds no voice data: apt-get install espeak-ng-data"

ACCENTS: tuple[str, ...] = (
    *("en-us", "en-us-nyc", "en-gb", "en-gb-scotland"),
    *("en-gb-x-gbclan", "en-gb-x-gbcwmd", "en-gb-x-rp", "en-029"),
)

# The voice variants of Debian's espeak-ng-data 1.51, by file name. Left out: whisper, whisperf, croak, Demonic (hardly
# intelligible), robosoft (very rough), RicishayMax, RicishayMax2, RicishayMax3 (an echo at full strength: words do not
# end), fast (a test of speed), caleb and klatt (sample for sample klatt6).
FEMALE_VARIANTS: tuple[str, ...] = (
    *("Alicia", "Andrea", "Annie", "anika", "anikaRobot", "aunty", "belinda", "f1", "f2", "f3", "f4", "f5"),
    *("grandma", "linda", "steph", "steph2", "steph3"),
)
MALE_VARIANTS: tuple[str, ...] = (
    *("Alex", "Andy", "AnxiousAndy", "Denis", "Diogo", "Gene", "Gene2", "Henrique", "Hugo", "Jacky", "Lee", "Marco"),
    *("Mario", "Michael", "Mike", "Mr serious", "Nguyen", "Storm", "Tweaky", "UniRobot", "adam", "announcer"),
    *("antonio", "benjamin", "boris", "david", "ed", "edward", "edward2", "grandpa", "gustave", "iven", "iven2"),
    *("iven3", "iven4", "john", "kaukovalta", "klatt2", "klatt3", "klatt4", "klatt5", "klatt6", "m1", "m2", "m3"),
    *("m4", "m5", "m6", "m7", "m8", "marcelo", "max", "michel", "miguel", "norbert", "pablo", "paul", "pedro"),
    *("quincy", "rob", "robert", "robosoft2", "robosoft3", "robosoft4", "robosoft5", "robosoft6", "robosoft7"),
    *("robosoft8", "sandro", "shelby", "travis", "victor", "zac"),
)
VARIANTS: tuple[str, ...] = FEMALE_VARIANTS + MALE_VARIANTS

# espeak's mnemonics for English -> our classes. They name lexical sets ("a" is trap in every accent), so one table does,
# but for the few sets that an accent merges with another of our classes.
_CLASSES: dict[str, str] = {
    **{c: c for c in ("p", "b", "t", "d", "k", "g", "f", "v", "s", "z", "x", "m", "n", "l", "r", "w")},
    **{"tS": "ch", "dZ": "jh", "T": "th", "D": "dh", "S": "sh", "Z": "zh", "N": "ng", "j": "y", "h": "hh"},
    **{"t#": "dx", "?": "q", "t2": "t", "t[": "t", "r-": "r", "w#": "w", "@L": "el", "n-": "en"},
    **{"i:": "iy", "i": "ii", "I": "ih", "I2": "ih", "I#": "ix", "E": "eh", "a": "ae", "aa": "ae", "A:": "aa"},
    **{"0": "oh", "O:": "ao", "O2": "ao", "V": "ah", "U": "uh", "u:": "uw", "3:": "er", "VR": "er", "IR": "er"},
    **{"3": "axr", "@": "ax", "@-": "ax", "@2": "ax", "@5": "ax", "a#": "ax", "eI": "ey", "aI": "ay", "aI2": "ay"},
    **{"OI": "oy", "aU": "aw", "oU": "ow", "i@": "ear", "i@3": "ear", "e@": "air", "U@": "ure", "A@": "ar"},
    **{"O@": "or", "o@": "or", "aI@": "fire", "aI3": "fire"},
}
_CLASSES_OF_ACCENT: dict[str, dict[str, str]] = {"en-us": {"0": "aa"}, "en-gb-x-rp": {"aa": "aa"}}
_GLIDE = ";"  # links "the other", "create": no sound of its own

# espeak-ng's speak_lib.h
_SYNCHRONOUS = 2
_PHONEME_EVENTS, _DO_NOT_EXIT = 0x1, 0x8000
_BUFFER_MS = 2000  # of audio a callback; espeak's default, 60, is a fifth slower here
_RATE, _PITCH, _RANGE = 1, 3, 4
_CHARS_UTF8 = 1
_LIST_END, _WORD, _PHONEME = 0, 1, 7


class _EventId(ctypes.Union):
    _fields_ = (("number", ctypes.c_int), ("name", ctypes.c_char_p), ("string", ctypes.c_char * 8))


class _Event(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),  # in characters, from 1
        ("length", ctypes.c_int),  # in characters
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", _EventId),
    )


_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event))
_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class EspeakVoice:
    """One speaker of espeak-ng.

    `accent` is one of ACCENTS, `variant` one of VARIANTS; `rate_wpm` 80-450 words a minute; `pitch` and `pitch_range`
    0-99, 50 is the variant's own; `resampling` 0.5-2 plays the speech that much faster, which raises formants and pitch.
    Raises KeyError for an unknown accent or variant, ValueError for a number out of range.
    """

    accent: str = "en-us"
    variant: str = "m3"
    rate_wpm: int = 165
    pitch: int = 50
    pitch_range: int = 50
    resampling: float = 1.0

    def __post_init__(self) -> None:
        if self.accent not in ACCENTS:
            raise KeyError(f"no espeak accent {self.accent!r}. Known: {', '.join(ACCENTS)}")
        if self.variant not in VARIANTS:
            raise KeyError(f"no espeak variant {self.variant!r}. Known: {', '.join(VARIANTS)}")
        for what, value, low, high in (
            ("rate_wpm", self.rate_wpm, 80, 450),
            ("pitch", self.pitch, 0, 99),
            ("pitch_range", self.pitch_range, 0, 99),
            ("resampling", self.resampling, 0.5, 2.0),
        ):
            if not low <= value <= high:
                raise ValueError(f"{what} {value}: expected {low} to {high}")

    @property
    def engine(self) -> str:
        """The synthesiser."""
        return "espeak"

    @property
    def name(self) -> str:
        """The speaker with all parameters: espeak/en-us/m3/rate165/pitch50/range50/x1.00"""
        return (
            f"espeak/{self.accent}/{self.variant.replace(' ', '_')}/rate{self.rate_wpm}/pitch{self.pitch}"
            f"/range{self.pitch_range}/x{self.resampling:.2f}"
        )

    def speak(self, words: Sequence[str]) -> Speech:
        """Speak one sentence. Word times are those of espeak's own events.

        A word ends where the next begins, or at the pause before it. Words that espeak reads as one ("of the") share one
        span. Raises ValueError where a word has no event, ImportError without libespeak-ng.
        """
        words = checked_words(words)
        sentence = " ".join(words)
        raw, events, rate = _synthesise(self, sentence)
        rate *= self.resampling
        samples = to_16_khz(raw.astype(np.float32) / 32768, rate)
        spans = _word_spans(words, events, len(raw))
        return checked_speech(
            samples,
            [(start / rate, end / rate) for start, end in spans],
            [(label, sample / rate) for label, sample in _phonemes(events, self.accent)],
            sentence,
        )


class _Mark(NamedTuple):
    """A WORD (its position and length in characters) or PHONEME (its mnemonic) event."""

    sample: int
    position: int
    length: int
    mnemonic: str | None

    @property
    def is_pause(self) -> bool:
        return self.mnemonic is not None and self.mnemonic.startswith("_")


def _synthesise(voice: EspeakVoice, text: str) -> tuple[np.ndarray, list[_Mark], float]:
    """int16 (n,) samples, the events in order, and the sample rate in Hz."""
    pieces: list[np.ndarray] = []
    marks: list[_Mark] = []

    def receive(wave: Any, n_samples: int, events: Any) -> int:
        if wave and n_samples > 0:
            pieces.append(np.ctypeslib.as_array(wave, (n_samples,)).copy())
        i = 0
        while events[i].type != _LIST_END:
            event = events[i]
            if event.type == _WORD:
                marks.append(_Mark(event.sample, event.text_position, event.length, None))
            elif event.type == _PHONEME:
                mnemonic = event.id.string.decode("utf-8", "replace")
                marks.append(_Mark(event.sample, event.text_position, event.length, mnemonic))
            i += 1
        return 0

    callback = _Callback(receive)
    encoded = text.encode()
    file_name = "en" if voice.accent == "en-gb" else voice.accent
    with _one_at_a_time:
        data = os.fsencode(_english_data())
        with _fresh_library() as library:
            rate = library.espeak_Initialize(_SYNCHRONOUS, _BUFFER_MS, data, _PHONEME_EVENTS | _DO_NOT_EXIT)
            if rate <= 0:
                raise FileNotFoundError(NO_DATA)
            try:
                library.espeak_SetSynthCallback(callback)
                if library.espeak_SetVoiceByName(f"gmw/{file_name}+{voice.variant}".encode()) != 0:
                    raise KeyError(f"this espeak-ng has no accent {voice.accent!r}: use Debian's espeak-ng-data 1.51")
                for parameter, value in ((_RATE, voice.rate_wpm), (_PITCH, voice.pitch), (_RANGE, voice.pitch_range)):
                    library.espeak_SetParameter(parameter, value, 0)
                library.espeak_Synth(encoded, len(encoded) + 1, 0, 1, 0, _CHARS_UTF8, None, None)
            finally:
                library.espeak_Terminate()
    if not pieces:
        raise ValueError(f"espeak-ng says nothing to {text!r}; drop the sentence")
    return np.concatenate(pieces), marks, float(rate)


@functools.cache
def _english_data() -> Path:
    """A folder of links to espeak's data, in which the accents' files have lower-case names; made once, in the cache.

    espeak_SetVoiceByName lowers the name and, where no file is called so, reads all 250 voices to find it: 5 ms each time.
    """
    try:
        import platformdirs
    except ImportError as error:
        raise ImportError("espeak voices need platformdirs: pip install -e '.[synth]'") from error
    for dependency in ("libpcaudio.so.0", "libsonic.so.0"):  # loaded once, where there are: 1 ms a sentence
        with contextlib.suppress(OSError):
            ctypes.CDLL(dependency)
    path = ctypes.c_char_p()
    with _fresh_library() as library:
        if library.espeak_Initialize(_SYNCHRONOUS, _BUFFER_MS, None, _DO_NOT_EXIT) <= 0:
            raise FileNotFoundError(NO_DATA)
        library.espeak_Info.restype = ctypes.c_char_p
        library.espeak_Info(ctypes.byref(path))
        data = Path(os.fsdecode(path.value or b""))
        library.espeak_Terminate()
    cache = platformdirs.user_cache_path("hikari-simulst") / "espeak-ng"
    folder = cache / hashlib.sha256(os.fsencode(data)).hexdigest()[:12]
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=cache))
    links = unfinished / "espeak-ng-data"
    (links / "lang" / "gmw").mkdir(parents=True)
    for file in data.iterdir():
        if file.name != "lang":
            (links / file.name).symlink_to(file)
    for file in (data / "lang" / "gmw").iterdir():
        (links / "lang" / "gmw" / file.name.lower()).symlink_to(file)
    try:
        unfinished.rename(folder)
    except OSError:  # another process was first
        shutil.rmtree(unfinished)
    return folder


@contextlib.contextmanager
def _fresh_library() -> Iterator[ctypes.CDLL]:
    """libespeak-ng with its state as at the start of a program; unloaded at the end."""
    if _is_loaded():
        raise RuntimeError(f"something else in this process has loaded {LIBRARY}: synthesise in a process of its own")
    library = _load()
    process = ctypes.CDLL(None)
    process.srand(0)  # its breath noise is the C library's rand()
    try:
        yield library
    finally:
        process.dlclose(ctypes.c_void_p(library._handle))


def _is_loaded() -> bool:
    try:
        library = ctypes.CDLL(LIBRARY, mode=os.RTLD_NOLOAD)
    except OSError:
        return False
    ctypes.CDLL(None).dlclose(ctypes.c_void_p(library._handle))
    return True


def _load() -> ctypes.CDLL:
    try:
        return ctypes.CDLL(LIBRARY, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError as error:
        raise ImportError(f"espeak voices need {LIBRARY}: apt-get install libespeak-ng1 ({error})") from error


def _word_spans(words: Sequence[str], marks: Sequence[_Mark], n_samples: int) -> list[tuple[int, int]]:
    """Start and end of every word, in samples. Raises ValueError if a word's event is missing, unless it was merged."""
    first_characters = np.cumsum([1] + [len(word) + 1 for word in words[:-1]])
    starts: dict[int, int] = {}  # word -> sample
    ends: dict[int, int] = {}
    current, pause = -1, None  # pause: where the one that now lasts began
    leading = False  # no sound since the WORD event
    for mark in marks:
        if mark.is_pause:
            pause = mark.sample if pause is None else pause
        elif mark.mnemonic is not None:
            if leading and pause is not None:
                starts[current] = mark.sample
            pause, leading = None, False
        elif mark.length > 0:
            word = int(np.searchsorted(first_characters, mark.position, side="right")) - 1
            # An event that does not advance is a part of a word ("twenty" "five") or a stray one at the end of a clause.
            if word > current:
                ends[current] = mark.sample if pause is None else pause
                current, starts[word] = word, mark.sample
                pause, leading = None, True
    ends[current] = n_samples if pause is None else pause
    spans: list[tuple[int, int]] = []
    for i in range(len(words)):
        if i in starts:
            spans.append((starts[i], ends[i]))
        elif spans:  # merged with the word before
            spans.append(spans[-1])
        else:
            raise ValueError(f"espeak-ng gives no time for {words[i]!r} in {' '.join(words)!r}; drop the sentence")
    return spans


def _phonemes(marks: Sequence[_Mark], accent: str) -> list[tuple[str, int]]:
    """Classes and their start in samples; a class that goes on is one entry."""
    found: list[tuple[str, int]] = []
    for mark in marks:
        if mark.mnemonic is None or mark.mnemonic == _GLIDE:
            continue
        label = SILENCE if mark.is_pause else _class_of(mark.mnemonic, accent)
        if found and found[-1][1] >= mark.sample:  # it had no length
            found.pop()
        if not (found and found[-1][0] == label == SILENCE):
            found.append((label, mark.sample))
    return found


@functools.cache
def _class_of(mnemonic: str, accent: str) -> str:
    """The class of a mnemonic; one that is not in the table, by its longest known beginning: "t:" is "t"."""
    table = _CLASSES | _CLASSES_OF_ACCENT.get(accent, {})
    for length in range(len(mnemonic), 0, -1):
        if mnemonic[:length] in table:
            return table[mnemonic[:length]]
    return OTHER
