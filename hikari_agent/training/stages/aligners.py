"""Which word of a translation comes from which word of its source: the aligners behind one interface, and units.

Each learns from the pairs it is given and then links any of them. `systran` is fast_align in process, `eflomal` is better
and a program, which draws samples, so it may link a little otherwise when it is run again; `simalign` reads a
multilingual BERT. Words are compared in lower case without their punctuation.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from ...tokens import LANGUAGES_WITHOUT_BLANKS

Words = tuple[str, ...]
Links = list[tuple[int, int]]  # source word, target word
Link = Callable[[Words, Words], Links]
ALIGNERS = ("systran", "eflomal", "simalign", "gold")


def units_of(text: str, language: str) -> list[str]:
    """A text's words; in a language without blanks the pieces that make it up: MeCab's for ja, characters otherwise.

    >>> units_of("Das ist gut.", "de"), "".join(units_of("今日は AI です。", "ja"))
    (['Das', 'ist', 'gut.'], '今日は AI です。')

    Raises ImportError if Japanese is to be cut and MeCab is missing.
    """
    if language not in LANGUAGES_WITHOUT_BLANKS:
        return text.split()
    pieces = _tagger().parse(text).split() if language == "ja" else list(text)
    units, at = [], 0
    for piece in pieces:
        if not piece.strip():
            continue
        end = text.index(piece, at) + len(piece)
        units.append(text[at:end])  # with the blanks before it, which MeCab leaves out
        at = end
    if units:
        units[-1] += text[at:]
    return units


def plain(words: Sequence[str]) -> Words:
    """The words as they are compared."""
    return tuple(word.strip(_PUNCTUATION + " ").casefold().replace(" ", "") or word.strip() or "_" for word in words)


def learnt(aligner: str, pairs: Iterable[tuple[Words, Words]], more: Iterable[tuple[Words, Words]] = ()) -> Link:
    """A function that links any of `pairs` (plain words), learnt from them and from `more`.

    Raises KeyError for an unknown aligner, ImportError, saying what to install, if its package is missing.
    """
    makers = {"systran": _systran, "eflomal": _eflomal, "simalign": _simalign}
    if aligner not in makers:
        raise KeyError(f"no aligner '{aligner}'. Known: {', '.join(ALIGNERS)}")
    return makers[aligner](pairs, more)


def symmetrised(forward: set[tuple[int, int]], backward: set[tuple[int, int]]) -> Links:
    """grow-diag-final-and of two directions' links (Koehn et al. 2005).

    >>> symmetrised({(0, 0), (1, 1)}, {(0, 0), (1, 1), (1, 2)})
    [(0, 0), (1, 1), (1, 2)]
    """
    links, union = forward & backward, forward | backward
    sources, targets = {i for i, _ in links}, {j for _, j in links}

    def add(i: int, j: int) -> None:
        links.add((i, j))
        sources.add(i)
        targets.add(j)

    grown = True
    while grown:
        grown = False
        for i, j in sorted(union - links):
            is_neighbour = any((i + di, j + dj) in links for di in (-1, 0, 1) for dj in (-1, 0, 1))
            if is_neighbour and (i not in sources or j not in targets):
                add(i, j)
                grown = True
    for i, j in sorted(union - links):
        if i not in sources and j not in targets:
            add(i, j)
    return sorted(links)


def _systran(pairs: Iterable[tuple[Words, Words]], more: Iterable[tuple[Words, Words]]) -> Link:
    """fast_align with priors of both directions; the library symmetrises."""
    try:
        import systran_align
    except ImportError as error:
        raise ImportError("this aligner needs the package systran-align: pip install systran-align==3.5.0") from error
    with tempfile.TemporaryDirectory(prefix="align-") as temporary:
        joint, forward, backward = (str(Path(temporary, name)) for name in ("joint", "forward", "backward"))
        with open(joint, "w", encoding="utf-8") as file:
            for source, target in _chained(pairs, more):
                file.write(f"{' '.join(source)} ||| {' '.join(target)}\n")
        systran_align.generate_alignment_probabilities(
            joint, forward, backward, favor_diagonal=True, optimize_tension=True, variational_bayes=True
        )
        aligner = systran_align.Aligner(forward, backward)
    return lambda source, target: sorted(
        (int(i), int(j)) for i, j in aligner.align(list(source), list(target))["alignments"]
    )


def _eflomal(pairs: Iterable[tuple[Words, Words]], more: Iterable[tuple[Words, Words]]) -> Link:
    """eflomal over all pairs at once, both directions, symmetrised here."""
    try:
        import eflomal
    except ImportError as error:
        raise ImportError(
            "this aligner needs the package eflomal (and a C compiler): pip install eflomal==2.0.0"
        ) from error
    known = list(pairs)
    everything = list(_chained(known, more))
    with tempfile.TemporaryDirectory(prefix="align-") as temporary:
        forward, backward = (str(Path(temporary, name)) for name in ("forward", "backward"))
        eflomal.Aligner().align(
            [" ".join(source) + "\n" for source, _ in everything], [" ".join(target) + "\n" for _, target in everything],
            links_filename_fwd=forward, links_filename_rev=backward,
        )  # fmt: skip
        directions = [Path(name).read_text(encoding="utf-8").split("\n")[: len(known)] for name in (forward, backward)]
    table = {pair: symmetrised(_pharaoh(f), _pharaoh(b)) for pair, f, b in zip(known, *directions, strict=True)}
    return lambda source, target: table[source, target]


def _simalign(pairs: Iterable[tuple[Words, Words]], more: Iterable[tuple[Words, Words]]) -> Link:
    """simalign's itermax over multilingual BERT, which it downloads on first use; nothing is learnt."""
    try:
        from simalign import SentenceAligner
    except ImportError as error:
        raise ImportError(
            "this aligner needs the package simalign: pip install simalign==0.4 scikit-learn networkx"
        ) from error
    try:
        aligner = SentenceAligner(model="bert", token_type="bpe", matching_methods="i")
    except OSError as error:
        raise ValueError(
            f"simalign cannot load bert-base-multilingual-cased ({error}): fetch it, or take --aligner systran"
        ) from error
    return lambda source, target: sorted(
        (int(i), int(j)) for i, j in aligner.get_word_aligns(list(source), list(target))["itermax"]
    )


def _chained(*many: Iterable[tuple[Words, Words]]) -> Iterable[tuple[Words, Words]]:
    return ((source, target) for pairs in many for source, target in pairs if source and target)


def _pharaoh(line: str) -> set[tuple[int, int]]:
    return {(int(i), int(j)) for i, _, j in (link.partition("-") for link in line.split())}


@functools.cache
def _tagger() -> Any:
    try:
        import ipadic
        import MeCab
    except ImportError as error:
        raise ImportError("cutting Japanese into words needs MeCab: pip install 'sacrebleu[ja]'") from error
    return MeCab.Tagger(ipadic.MECAB_ARGS + " -Owakati")


_PUNCTUATION = (
    "".join(chr(i) for i in range(33, 127) if not chr(i).isalnum()) + "…–—“”„‘’«»¿¡。、！？「」『』・：；（）"
)
