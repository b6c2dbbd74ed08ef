"""The released rules from logits to a token, one test a rule: WAIT bias, its adaptation, and the repetition penalty."""

from __future__ import annotations

import pytest
import torch

from hikari_agent.decoding import AdaptiveWaitBias, RepetitionPenalty, WaitBias, choose
from hikari_agent.tokens import WAIT

NO_REPETITION = RepetitionPenalty()
PROMPT = [958, 961, 1058, 1063]


def logits(**values: float) -> torch.Tensor:
    """A row of 1100 logits at -10 but for `t5=1.0` (token 5) and `wait=2.0`."""
    row = torch.full((1100,), -10.0)
    for name, value in values.items():
        row[WAIT if name == "wait" else int(name[1:])] = value
    return row


@pytest.mark.parametrize(("penalty", "token"), [(0.0, WAIT), (0.9, WAIT), (1.1, 5), (-5.0, WAIT)])
def test_a_positive_wait_penalty_makes_the_model_write_earlier(penalty, token):
    assert choose(logits(wait=2.0, t5=1.0), PROMPT, penalty, NO_REPETITION)[0] == token


def test_a_negative_wait_penalty_makes_the_model_read_on():
    assert choose(logits(wait=1.0, t5=2.0), PROMPT, 0.0, NO_REPETITION)[0] == 5
    assert choose(logits(wait=1.0, t5=2.0), PROMPT, -1.5, NO_REPETITION)[0] == WAIT


def test_the_first_index_wins_ties():
    assert choose(logits(t7=1.0, t5=1.0, t900=1.0), PROMPT, 0.0, NO_REPETITION)[0] == 5
    assert choose(logits(wait=2.0, t900=1.0), PROMPT, 1.0, NO_REPETITION)[0] == WAIT
    assert choose(logits(wait=2.0, t5=1.0), PROMPT, 1.0, NO_REPETITION)[0] == 5


def test_the_margin_is_best_minus_second_best_after_the_penalties():
    assert choose(logits(wait=2.0, t5=1.75, t6=1.0), PROMPT, 1.5, NO_REPETITION)[1] == 0.75


def test_choosing_leaves_the_logits_as_they_were():
    row = logits(wait=2.0, t5=3.0)
    choose(row, [*PROMPT, 5], 1.5, RepetitionPenalty(40.0))
    assert torch.equal(row, logits(wait=2.0, t5=3.0))


def test_a_constant_bias_never_changes_and_asks_for_no_voice_activity():
    bias = WaitBias(0.6)
    assert not bias.needs_speech
    assert bias.after(0.6, [*PROMPT, *[WAIT] * 30], True) == bias.after(0.6, [*PROMPT, 5], True) == 0.6


ADAPTIVE = AdaptiveWaitBias(penalty=0.5, boost=0.3, decay=0.25)


def test_the_penalty_grows_at_the_tenth_wait_in_a_row_and_at_each_one_after_it():
    tokens, penalty, penalties = list(PROMPT), ADAPTIVE.penalty, []
    for _ in range(12):
        tokens.append(WAIT)
        penalty = ADAPTIVE.after(penalty, tokens, is_speech=True)
        penalties.append(penalty)
    assert penalties == pytest.approx([0.5] * 9 + [0.8, 1.1, 1.4])


def test_the_penalty_does_not_grow_without_speech():
    assert ADAPTIVE.after(0.5, [*PROMPT, *[WAIT] * 30], is_speech=False) == 0.5


def test_text_among_the_last_ten_tokens_stops_the_growth():
    assert ADAPTIVE.after(0.5, [*PROMPT, *[WAIT] * 20, 5, *[WAIT] * 9], is_speech=True) == 0.5
    assert ADAPTIVE.after(0.5, [*PROMPT, *[WAIT] * 20, 5, *[WAIT] * 10], is_speech=True) == 0.8


def test_the_penalty_does_not_grow_at_ten_entries_or_fewer():
    assert ADAPTIVE.after(0.5, [WAIT] * 10, is_speech=True) == 0.5
    assert ADAPTIVE.after(0.5, [WAIT] * 11, is_speech=True) == 0.8


def test_the_penalty_falls_back_only_after_text_by_a_share_of_its_excess():
    assert (
        ADAPTIVE.after(2.5, [*PROMPT, 5], is_speech=True) == ADAPTIVE.after(2.5, [*PROMPT, 5], is_speech=False) == 2.0
    )
    assert ADAPTIVE.after(2.5, [*PROMPT, 5, WAIT], is_speech=False) == 2.5
    assert ADAPTIVE.after(0.5, [*PROMPT, 5], is_speech=True) == 0.5


def test_a_penalty_below_its_baseline_comes_back_up_to_it():
    assert AdaptiveWaitBias(penalty=1.0, boost=-0.3, decay=0.5).after(0.0, [*PROMPT, 5], is_speech=True) == 0.5


def test_the_penalty_has_no_upper_bound():
    tokens, penalty = [*PROMPT, *[WAIT] * 10], 0.5
    for _ in range(1000):
        penalty = ADAPTIVE.after(penalty, tokens, is_speech=True)
    assert penalty == pytest.approx(300.5)


@pytest.mark.parametrize(("boost", "needed"), [(0.3, True), (0.0, False), (-0.1, True)])
def test_voice_activity_is_asked_for_only_if_it_can_change_the_penalty(boost, needed):
    assert AdaptiveWaitBias(boost=boost).needs_speech == needed


REPETITION = RepetitionPenalty(40.0)


@pytest.mark.parametrize("n_since", range(7))
def test_a_token_among_the_last_five_entries_is_penalised_and_an_older_one_is_not(n_since):
    tokens = [*PROMPT, 5, *[WAIT] * n_since]
    assert choose(logits(t5=3.0, t6=2.0), tokens, 0.0, REPETITION)[0] == (6 if n_since < 5 else 5)


def test_the_prompt_counts_as_an_entry():
    assert choose(logits(t1063=3.0, t6=2.0), PROMPT, 0.0, REPETITION)[0] == 6
    assert choose(logits(t958=3.0, t6=2.0), [*PROMPT, 7], 0.0, REPETITION)[0] == 6
    assert choose(logits(t958=3.0, t6=2.0), [*PROMPT, 7, 8], 0.0, REPETITION)[0] == 958


def test_a_repeated_wait_is_never_penalised():
    assert choose(logits(wait=3.0, t6=2.0), [*PROMPT, WAIT, WAIT], 0.0, REPETITION)[0] == WAIT


def test_the_repetition_penalty_looks_at_the_best_token_before_the_wait_penalty():
    """WAIT is the raw best, loses to its own penalty, and the repeated runner-up goes free: a quirk of the original."""
    assert choose(logits(wait=3.0, t5=2.0, t6=1.0), [*PROMPT, 5], 2.0, REPETITION)[0] == 5


def test_only_the_best_token_is_penalised_and_once():
    tokens = [*PROMPT, 5, 6, 5]
    assert choose(logits(t5=3.0, t6=2.0, t7=1.0), tokens, 0.0, REPETITION)[0] == 6
    assert choose(logits(t5=3.0, t7=1.0), tokens, 0.0, RepetitionPenalty(1.5))[0] == 5


def test_a_repetition_penalty_of_zero_does_nothing():
    assert choose(logits(t5=3.0, t6=2.9), [*PROMPT, 5], 0.0, RepetitionPenalty(0.0))[0] == 5
