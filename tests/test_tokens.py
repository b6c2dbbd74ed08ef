"""What becomes of token ids: whole words or whole characters, never less, and nothing is lost."""

from __future__ import annotations

import copy
import json
import re

import pytest
from harness import FIRST_SPECIAL, write_tokenizer
from hypothesis import given
from hypothesis import strategies as st

from hikari_agent.tokens import WAIT, Vocabulary, WordAssembler

KANJI = "漢".encode()


def emissions(pieces: list[bytes | None], by_characters: bool = False) -> list[list[str]]:
    """What comes out at each piece (None: the model said WAIT), and at the end."""
    assembler = WordAssembler(by_characters)
    out = [assembler.wait() if piece is None else assembler.push(piece) for piece in pieces]
    return [*out, assembler.flush()]


@st.composite
def text_in_pieces(draw) -> tuple[str, list[bytes]]:
    """A text and its bytes, cut anywhere."""
    text = draw(st.text(st.sampled_from("ab.,é漢字🎧 "), max_size=40))
    data = text.encode()
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=20)))
    return text, [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def test_a_word_leaves_when_the_next_one_begins():
    assert emissions([b" Hal", b"lo", b" Welt"]) == [[], [], ["Hallo"], ["Welt"]]


def test_a_wait_ends_a_word():
    assert emissions([b" Hal", b"lo", None, b" Welt", None, None]) == [[], [], ["Hallo"], [], ["Welt"], [], []]


def test_the_first_word_needs_no_blank():
    assert emissions([b"Hallo", b" Welt"]) == [[], ["Hallo"], ["Welt"]]


def test_punctuation_stays_with_its_word():
    assert emissions([b" so", b",", b" ja", b"!"]) == [[], [], ["so,"], [], ["ja!"]]


def test_a_token_that_is_only_a_blank_ends_the_word_before_it():
    assert emissions([b" a", b" ", b"b"]) == [[], ["a"], [], ["b"]]


def test_several_words_in_one_token_all_leave_but_the_last():
    assert emissions([b" one two three"]) == [["one", "two"], ["three"]]


def test_a_special_token_neither_says_nor_ends_anything():
    assert emissions([b" Hal", b"", b"lo", b"", b" du"]) == [[], [], [], [], ["Hallo"], ["du"]]


def test_a_kanji_in_three_tokens_comes_out_whole():
    pieces = [KANJI[:1], KANJI[1:2], KANJI[2:]]
    assert emissions(pieces, by_characters=True) == [[], [], ["漢"], []]
    assert emissions(pieces) == [[], [], [], ["漢"]]


@pytest.mark.parametrize("by_characters", [True, False])
def test_a_wait_inside_a_character_lets_nothing_half_out(by_characters):
    out = emissions([KANJI[:1], None, KANJI[1:2], None, None, KANJI[2:], None], by_characters)
    assert [words for words in out if words] == [["漢"]]


def test_a_wait_inside_a_character_keeps_the_word_it_belongs_to():
    umlaut = "ä".encode()
    assert emissions([b" f", umlaut[:1], None, umlaut[1:], b"hrt", None]) == [[], [], [], [], [], ["fährt"], []]


def test_japanese_leaves_character_by_character_and_without_blanks():
    pieces = [" 今日".encode(), " は ".encode(), b"AI"]
    assert emissions(pieces, by_characters=True) == [["今", "日"], ["は"], ["A", "I"], []]


def test_half_a_character_at_the_end_becomes_one_replacement_character():
    assert emissions([b" Ende", KANJI[:2]])[-1] == ["Ende\ufffd"]
    assert emissions([KANJI, KANJI[:2]], by_characters=True)[-1] == ["\ufffd"]


@given(text_in_pieces(), st.data())
def test_no_emission_ends_inside_a_word_or_a_character(text_and_pieces, data):
    text, pieces = text_and_pieces
    so_far = b""
    assembler, words = WordAssembler(), []
    for piece in pieces:
        so_far += piece
        words += assembler.push(piece)
        assert words == so_far.decode("utf-8", "ignore").split()[: len(words)]
    assert words + assembler.flush() == text.split()


@given(text_in_pieces())
def test_characters_leave_as_soon_as_they_are_complete(text_and_pieces):
    text, pieces = text_and_pieces
    so_far = b""
    assembler, characters = WordAssembler(by_characters=True), []
    for piece in pieces:
        so_far += piece
        characters += assembler.push(piece)
        assert characters == list("".join(so_far.decode("utf-8", "ignore").split()))
    assert characters + assembler.flush() == list("".join(text.split()))


@given(text_in_pieces(), st.data(), st.booleans())
def test_waits_lose_and_invent_no_character(text_and_pieces, data, by_characters):
    text, pieces = text_and_pieces
    with_waits = [p for piece in pieces for p in ([piece, None] if data.draw(st.booleans()) else [piece])]
    words = [word for out in emissions(with_waits, by_characters) for word in out]
    assert "".join(words) == "".join(text.split())
    assert "" not in words


@given(text_in_pieces(), text_in_pieces())
def test_a_copied_assembler_goes_its_own_way(first, second):
    one = WordAssembler()
    for piece in first[1]:
        one.push(piece)
    other = copy.deepcopy(one)
    alone = [word for piece in second[1] for word in other.push(piece)] + other.flush()
    fork = copy.deepcopy(one)
    fork.push(b" something else")
    assert [word for piece in second[1] for word in one.push(piece)] + one.flush() == alone


@pytest.fixture(scope="module")
def vocabulary(tiny_folder):
    return Vocabulary.from_folder(tiny_folder)


def test_tokens_give_their_bytes_and_special_tokens_none(vocabulary):
    assert vocabulary.token_bytes(0) == b"!"
    assert vocabulary.token_bytes(WAIT) == b"~"
    assert sorted(vocabulary.token_bytes(i) for i in range(256)) == [bytes([i]) for i in range(256)]
    assert [vocabulary.token_bytes(256 + i) for i in range(3)] == [b"w0", b" w1", b" w2"]
    assert {vocabulary.token_bytes(i) for i in range(FIRST_SPECIAL, 1100)} == {b""}


def test_an_id_behind_the_vocabulary_gives_no_bytes(vocabulary):
    assert vocabulary.token_bytes(51864) == b""


def test_a_prompt_names_start_target_language_task_and_no_timestamps(vocabulary):
    names = {i: name for name, i in vocabulary.ids.items()}
    for task in ("translate", "transcribe"):
        prompt = [names[i] for i in vocabulary.prompt(task, "ja")]
        assert prompt == ["<|startoftranscript|>", "<|ja|>", f"<|{task}|>", "<|notimestamps|>"]


@pytest.mark.parametrize("language", ["", "xx", "german", "DE", "nospeech", "translate", "0.00"])
def test_an_unknown_language_is_refused_with_the_known_ones(vocabulary, language):
    with pytest.raises(ValueError, match=rf"unknown language '{language}'. Known: af, .*de, .*zh"):
        vocabulary.prompt("translate", language)


def test_an_unknown_task_is_refused_with_the_known_ones(vocabulary):
    with pytest.raises(ValueError, match=r"unknown task 'summarise'. Known: translate, transcribe"):
        vocabulary.prompt("summarise", "de")


def test_the_languages_are_the_99_of_whisper(vocabulary):
    assert len(vocabulary.languages()) == 99
    assert {"de", "ja", "ru", "en", "haw"} <= set(vocabulary.languages())


def test_another_vocabulary_is_refused(tmp_path):
    write_tokenizer(tmp_path)
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    vocab = content["model"]["vocab"]
    vocab["~"], vocab["!"] = vocab["!"], vocab["~"]
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=f"{re.escape(str(tmp_path))}: token '~' has id 0, Hikari's WAIT is 93"):
        Vocabulary.from_folder(tmp_path)


def test_a_vocabulary_without_languages_cannot_make_a_prompt():
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    english = Vocabulary(
        {c: i for i, c in enumerate([*bytes_to_unicode().values(), "<|endoftext|>"])}, ["<|endoftext|>"]
    )
    with pytest.raises(ValueError, match="unknown language 'de'"):
        english.prompt("translate", "de")
    with pytest.raises(ValueError, match=r"no token <\|startoftranscript\|>: this is not a multilingual Whisper"):
        english.special("startoftranscript")


def test_a_folder_without_a_tokenizer_says_where_to_get_one(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"has no tokenizer\.json: copy it from .*--hikari-tokenizer"):
        Vocabulary.from_folder(tmp_path)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}"])
def test_a_damaged_tokenizer_file_is_named(tmp_path, content):
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(ValueError, match=rf"{re.escape(str(tmp_path))}/tokenizer\.json .*fetch it again"):
        Vocabulary.from_folder(tmp_path)


def test_vocab_json_and_merges_do_where_there_is_no_tokenizer_json(tmp_path, vocabulary):
    write_tokenizer(tmp_path)
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    (tmp_path / "tokenizer.json").unlink()
    special = {token["content"]: token["id"] for token in content["added_tokens"]}
    pieces = {piece: i for piece, i in content["model"]["vocab"].items() if piece not in special}
    (tmp_path / "vocab.json").write_text(json.dumps(pieces))
    (tmp_path / "merges.txt").write_text("#version: 0.2\n")
    (tmp_path / "added_tokens.json").write_text(json.dumps(special))
    found = Vocabulary.from_folder(tmp_path)
    assert [found.token_bytes(i) for i in range(FIRST_SPECIAL)] == [
        vocabulary.token_bytes(i) for i in range(FIRST_SPECIAL)
    ]
    assert found.prompt("translate", "de") == vocabulary.prompt("translate", "de")
