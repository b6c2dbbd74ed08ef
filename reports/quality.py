"""How good the words are: BLEU and chrF on resegmented segments, word (or character) error rate on recordings.

Every value is in percent and carries a signature: equal signatures are comparable numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from reports.bootstrap import bootstrap_interval
from reports.extras import needs_extra

if TYPE_CHECKING:
    import numpy as np

# sacreBLEU's names; 13a is its default, made for languages with blanks between words.
TOKENIZERS = {"ja": "ja-mecab", "zh": "zh", "yue": "zh"}
# Written without blanks: errors are counted in characters.
CHARACTER_LANGUAGES = ("ja", "zh", "yue")


@dataclass(frozen=True)
class Quality:
    """A value in percent over `n` items (segments for BLEU and chrF, recordings for WER), with its 95 % interval."""

    metric: str
    value: float
    signature: str
    n: int
    interval: tuple[float, float] | None


def base_language(language: str) -> str:
    """The language without its region.

    >>> base_language("zh-CN")
    'zh'
    """
    return language.replace("_", "-").split("-")[0].lower()


def bleu(hypotheses: Sequence[str], references: Sequence[str], language: str, rng: np.random.Generator) -> Quality:
    """Corpus BLEU by sacreBLEU with the tokenizer of `language`, one hypothesis and one reference a segment.

    The interval resamples segments. Raises ValueError if the lengths differ or nothing is written, MissingExtra
    without sacreBLEU (or MeCab, for Japanese).
    """
    tokenizer = TOKENIZERS.get(base_language(language), "13a")
    with needs_extra("score"):
        from sacrebleu import BLEU

        if tokenizer == "ja-mecab":
            import ipadic  # noqa: F401
            import MeCab  # noqa: F401
    # force: do not warn about hypotheses that look tokenized, as systems do write " ." at times.
    return _corpus_score("BLEU", BLEU(tokenize=tokenizer, force=True), hypotheses, references, rng)


def chrf(hypotheses: Sequence[str], references: Sequence[str], rng: np.random.Generator) -> Quality:
    """chrF2 (character 6-grams, no words, beta 2) by sacreBLEU; as `bleu` otherwise."""
    with needs_extra("score"):
        from sacrebleu import CHRF
    return _corpus_score("chrF2", CHRF(), hypotheses, references, rng)


def _corpus_score(
    name: str, metric: Any, hypotheses: Sequence[str], references: Sequence[str], rng: np.random.Generator
) -> Quality:
    import numpy as np

    _check(hypotheses, references, name)
    result = metric.corpus_score(list(hypotheses), [list(references)])
    # sacreBLEU's own bootstrap takes its seed from the environment and keeps the interval private: same counts,
    # our draws. `(n_segments, n_counts)`
    counts = np.array(metric._extract_corpus_statistics(list(hypotheses), [list(references)]))

    def resampled(drawn: np.ndarray) -> float:
        return float(metric._compute_score_from_stats(counts[drawn].sum(axis=0).tolist()).score)

    return Quality(
        metric=name,
        value=float(result.score),
        signature=str(metric.get_signature()),
        n=len(hypotheses),
        interval=bootstrap_interval(resampled, len(hypotheses), rng),
    )


def error_rate(
    hypotheses: Sequence[str], references: Sequence[str], language: str, rng: np.random.Generator
) -> Quality:
    """Word error rate by jiwer, one hypothesis and one transcript a recording; of characters (CER) for languages
    without blanks.

    All errors over all reference words, after Whisper's normaliser (the English one for English, the basic one
    otherwise, which keeps accents). The interval resamples recordings. Raises ValueError if the lengths differ,
    nothing is written or the transcripts are empty, MissingExtra without jiwer or whisper-normalizer.
    """
    with needs_extra("score"):
        import jiwer
    import numpy as np

    characters = base_language(language) in CHARACTER_LANGUAGES
    name = "CER" if characters else "WER"
    _check(hypotheses, references, name)
    normalise, normaliser = _normaliser(language)
    process = jiwer.process_characters if characters else jiwer.process_words
    errors, lengths = [], []
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        said, expected = normalise(hypothesis).split(), normalise(reference).split()
        blank = "" if characters else " "
        counted = process(blank.join(expected), blank.join(said))
        errors.append(counted.substitutions + counted.deletions + counted.insertions)
        lengths.append(counted.hits + counted.substitutions + counted.deletions)
    if not sum(lengths):
        raise ValueError(f"{name}: the transcripts are empty after normalisation ({normaliser})")
    n_errors, n_units = np.array(errors), np.array(lengths)

    def resampled(drawn: np.ndarray) -> float:
        total = n_units[drawn].sum()
        return float(100 * n_errors[drawn].sum() / total) if total else float("nan")

    return Quality(
        metric=name,
        value=100 * sum(errors) / sum(lengths),
        signature=f"norm:{normaliser}-{version('whisper-normalizer')}|pooled:yes|jiwer:{version('jiwer')}",
        n=len(errors),
        interval=bootstrap_interval(resampled, len(errors), rng),
    )


def _normaliser(language: str) -> tuple[Callable[[str], str], str]:
    """Whisper's normaliser for `language` and its name in signatures."""
    with needs_extra("score"):
        if base_language(language) == "en":
            from whisper_normalizer.english import EnglishTextNormalizer

            return EnglishTextNormalizer(), "whisper-english"
        from whisper_normalizer.basic import BasicTextNormalizer

        return BasicTextNormalizer(), "whisper-basic"


def _check(hypotheses: Sequence[str], references: Sequence[str], name: str) -> None:
    if len(hypotheses) != len(references):
        raise ValueError(f"{name}: {len(hypotheses)} hypotheses for {len(references)} references, expected as many")
    if not any(hypothesis.strip() for hypothesis in hypotheses):
        raise ValueError(f"{name}: nothing is written in any of {len(hypotheses)} hypotheses")
