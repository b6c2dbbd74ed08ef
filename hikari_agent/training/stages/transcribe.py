"""Stage `transcribe`: what is said and when each word ends, by a Whisper with word times (faster-whisper)."""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...tokens import LANGUAGES_WITHOUT_BLANKS
from ..corpus import custom_with, stored
from .resumable import Result, run_stage, spread
from .sentences import TimedText, in_order, joined_pieces, split, times_for
from .sound import load_audio

if TYPE_CHECKING:
    from lhotse import MonoCut, SupervisionSegment

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Recogniser:
    """How speech is recognised. `model` is a CTranslate2 folder or a name that faster-whisper knows.

    With `keep_text` the corpus's own sentences are timed, and a recording of whose words fewer than the share `min_match`
    were recognised is dropped: it says something else. `language` None: the corpus's, else as detected.
    """

    model: str
    language: str | None = None
    keep_text: bool = False
    min_match: float = 0.5
    beam: int = 5
    compute_type: str = "int8"
    threads: int = 1


def transcribe(source: Path, target: Path, recogniser: Recogniser, jobs: int = 1) -> dict[str, Any]:
    """Corpus `source` with sentences and word times as `target`; returns the report.

    A Hugging Face Whisper folder is converted into `target`'s neighbour first. Raises ValueError for a language the model
    does not know or that is written without blanks, FileNotFoundError for a model that is not there.
    """
    settings = asdict(recogniser) | {"model": model_identity(recogniser.model)}
    del settings["threads"]
    ready = Recogniser(**{**asdict(recogniser), "model": ready_model(recogniser.model)})
    _check_language(ready)
    return run_stage(
        "transcribe", source, target, settings,
        lambda cuts: spread(functools.partial(transcribed, recogniser=ready), cuts, jobs),
    )  # fmt: skip


def transcribed(cut: MonoCut, recogniser: Recogniser) -> Result:
    """One recording with its sentences and their words' times."""
    samples = load_audio(cut)
    language = recogniser.language or next((s.language for s in cut.supervisions if s.language), None)
    segments, information = _model(recogniser.model, recogniser.compute_type, recogniser.threads).transcribe(
        samples, language=language, beam_size=recogniser.beam, word_timestamps=True, vad_filter=True,
        condition_on_previous_text=False,
    )  # fmt: skip
    language = language or str(information.language)
    if language in LANGUAGES_WITHOUT_BLANKS:
        return Result(cut.id, None, [(f"speech in {language}, whose words have no blanks between them", cut.id)])
    # A word at the start of a segment begins a word whatever it looks like.
    pieces = [
        TimedText(f" {word.word.lstrip()}" if i == 0 else word.word, float(word.start), float(word.end))
        for segment in segments
        for i, word in enumerate(segment.words or ())
    ]
    heard = in_order(joined_pieces(pieces), cut.duration)
    if not heard:
        return Result(cut.id, None, [("no speech was recognised", cut.id)])
    if recogniser.keep_text:
        return _kept(cut, heard, language, recogniser.min_match)
    made = [supervision(cut, i, sentence, language) for i, sentence in enumerate(split(heard))]
    return Result(cut.id, with_sentences(cut, made), figures={"n_words": len(heard)})


def supervision(cut: MonoCut, number: int, sentence: Sequence[TimedText], language: str) -> SupervisionSegment:
    """A new sentence of a recording."""
    from lhotse import SupervisionSegment

    blank = SupervisionSegment(f"{cut.id}-{number}", cut.recording.id, 0.0, 0.0, language=language)
    return timed(blank, sentence)


def timed(old: SupervisionSegment, sentence: Sequence[TimedText], **custom: Any) -> SupervisionSegment:
    """The supervision with words and times; its custom fields stay, but for `custom`."""
    from lhotse.supervision import AlignmentItem
    from lhotse.utils import fastcopy

    start, end = sentence[0].start_s, sentence[-1].end_s
    items = [AlignmentItem(w.text, round(w.start_s, 3), round(w.end_s - w.start_s, 3), None) for w in sentence]
    text = " ".join(word.text for word in sentence)
    return fastcopy(
        old, start=round(start, 3), duration=round(end - start, 3), text=text, alignment={"word": items},
        custom=custom_with(old, **custom) or None,
    )  # fmt: skip


def with_sentences(cut: MonoCut, sentences: Sequence[SupervisionSegment]) -> dict[str, Any]:
    """The cut with other sentences, as the dictionary that is stored."""
    from lhotse.utils import fastcopy

    return stored(fastcopy(cut, supervisions=list(sentences)))


def model_identity(model: str) -> str:
    """What stands for a model in the settings of an output: a name, or the checksum of a folder's weights."""
    folder = Path(model)
    for name in ("model.bin", "model.safetensors"):
        if (folder / name).is_file():
            with (folder / name).open("rb") as file:
                return f"{name} {sha256(file.read()).hexdigest()[:16]}"
    if os.sep in model and model.count("/") != 1:
        raise FileNotFoundError(
            f"no model in {model}: give a folder with model.bin (CTranslate2) or model.safetensors (Hugging Face Whisper), "
            "or a name that faster-whisper knows, such as small"
        )
    return model


def ready_model(model: str) -> str:
    """A model that faster-whisper loads: a Hugging Face folder is converted to CTranslate2 (float16) in the cache, once.

    Raises ImportError if the converter's package is missing, ValueError if it refuses the folder.
    """
    folder = Path(model)
    if not (folder / "model.safetensors").is_file() or (folder / "model.bin").is_file():
        return model
    import platformdirs

    try:
        from ctranslate2.converters import TransformersConverter
        from transformers.utils.logging import disable_progress_bar
    except ImportError as error:
        raise ImportError(
            "transcribing needs faster-whisper and ctranslate2, which come with the extra train: pip install -e '.[train]'"
        ) from error

    name = f"{folder.resolve().name}-{model_identity(model).split()[-1]}"
    ready = platformdirs.user_cache_path("hikari-simulst") / "ctranslate2" / name
    if not (ready / "model.bin").is_file():
        logger.info("converting %s for faster-whisper", folder)
        disable_progress_bar()
        temporary = ready.with_name(f".{name}.{os.getpid()}")
        files = [file for file in ("tokenizer.json", "preprocessor_config.json") if (folder / file).is_file()]
        try:
            converter = TransformersConverter(str(folder), copy_files=files, load_as_float16=True)
            converter.convert(str(temporary), quantization="float16")
        except (ValueError, KeyError, OSError) as error:
            raise ValueError(f"{folder} cannot be converted for faster-whisper ({error}): is it a Whisper?") from error
        temporary.rename(ready)
    return str(ready)


@functools.lru_cache(maxsize=1)
def _model(model: str, compute_type: str, threads: int) -> Any:
    try:
        from faster_whisper import WhisperModel
    except ImportError as error:
        raise ImportError(
            "transcribing needs faster-whisper, which comes with the extra train: pip install -e '.[train]'"
        ) from error
    try:
        return WhisperModel(model, device="auto", compute_type=compute_type, cpu_threads=threads)
    except Exception as error:  # the engine, the file system and the model hub each raise their own
        raise ValueError(f"model {model} cannot be loaded ({error}): give a CTranslate2 Whisper folder") from error


def _check_language(recogniser: Recogniser) -> None:
    language = recogniser.language
    if language is None:
        return
    known = _model(recogniser.model, recogniser.compute_type, recogniser.threads).supported_languages
    if language not in known:
        raise ValueError(f"unknown language '{language}'. The model knows: {', '.join(sorted(known))}")
    if language in LANGUAGES_WITHOUT_BLANKS:
        raise ValueError(f"speech in {language} has no blanks between words, which the corpus counts by: not supported")


def _kept(cut: MonoCut, heard: Sequence[TimedText], language: str, min_match: float) -> Result:
    """The recording with its own text at the times of what was heard."""
    texts = [(sentence.text or "").split() for sentence in cut.supervisions]
    if not texts:
        return Result(cut.id, None, [("no transcript to keep", cut.id)])
    times, n_matched = times_for([word for text in texts for word in text], heard, cut.duration)
    figures = {"n_words": len(times), "n_matched": n_matched}
    if n_matched < min_match * len(times):
        return Result(
            cut.id,
            None,
            [("the transcript is not what is said", f"{cut.id}: {n_matched} of {len(times)} words")],
            figures,
        )
    sentences, at = [], 0
    for old, text in zip(cut.supervisions, texts, strict=True):
        old.language = old.language or language
        sentences.append(timed(old, times[at : at + len(text)], targets=None))
        at += len(text)
    return Result(cut.id, with_sentences(cut, sentences), figures=figures)
