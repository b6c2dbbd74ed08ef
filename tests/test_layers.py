"""The layers: which frames a row sees, and that pieces with a state give what the whole signal gives."""

from __future__ import annotations

import itertools

import pytest
import torch
import torch.nn.functional as F
from harness import FIRST_SPECIAL
from hypothesis import given, settings
from hypothesis import strategies as st

from hikari_agent.layers import (
    DecoderLayer,
    EncoderLayer,
    KVCache,
    StreamingConv1d,
    attend,
    first_row_seeing,
    visible_frames,
)

PROMPT = [FIRST_SPECIAL + 1, FIRST_SPECIAL + 6, 1058, 1063]


@given(st.integers(0, 5000), st.integers(1, 16))
def test_first_row_seeing_is_the_inverse_of_visible_frames(frame, dilation):
    row = first_row_seeing(frame, dilation)
    assert visible_frames(row, dilation) > frame
    assert row == 0 or visible_frames(row - 1, dilation) <= frame


@given(st.integers(0, 5000), st.integers(2, 16))
def test_row_i_sees_dilation_times_i_frames_and_dilation_1_one_more(row, dilation):
    assert visible_frames(row, dilation) == dilation * row
    assert visible_frames(row, 1) == row + 1


def test_row_0_sees_nothing_and_is_no_nan(tiny_model):
    generator = torch.Generator().manual_seed(0)
    ids = torch.tensor([PROMPT])
    with torch.inference_mode():
        logits = [
            tiny_model(
                encoder_outputs=scale * torch.randn(1, 60, 64, generator=generator), decoder_input_ids=ids
            ).logits
            for scale in (0.0, 1.0, 100.0)
        ]
        alone = tiny_model(encoder_outputs=torch.ones(1, 60, 64), decoder_input_ids=ids[:, :1]).logits
    assert all(row.isfinite().all() for row in logits)
    for other in (*logits[1:], alone):
        torch.testing.assert_close(other[0, 0], logits[0][0, 0], atol=1e-5, rtol=0)
    assert (logits[0][0, 1] - logits[1][0, 1]).abs().max() > 1e-3


@pytest.mark.parametrize("masked", [False, True])
def test_attention_that_learns_is_attention_that_runs(masked):
    """The plain products against PyTorch's fused kernel: values, and gradients."""
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(2, 3, 50, 16, generator=generator) for _ in range(3)]
    mask = (torch.rand(50, 50, generator=generator) < 0.5).fill_diagonal_(True) if masked else None
    run = attend(*inputs, mask, is_causal=not masked)
    learning = [x.clone().requires_grad_() for x in inputs]
    learnt = attend(*learning, mask, is_causal=not masked)
    assert not run.requires_grad
    assert torch.allclose(learnt, run, atol=1e-6)
    fused = [x.clone().requires_grad_() for x in inputs]
    F.scaled_dot_product_attention(*fused, attn_mask=mask, is_causal=not masked).square().sum().backward()
    learnt.square().sum().backward()
    assert all(torch.allclose(a.grad, b.grad, atol=1e-5) for a, b in zip(learning, fused, strict=True))


@pytest.mark.parametrize("n_rows", [1, 3])
def test_cross_attention_equals_a_softmax_over_the_visible_frames(tiny_model, n_rows):
    """Slow and obvious: one row and one head at a time; nothing visible gives the bias of the output projection."""
    attention = tiny_model.model.decoder.layers[0].encoder_attn
    generator = torch.Generator().manual_seed(0)
    x, frames = torch.randn(1, n_rows, 64, generator=generator), torch.randn(1, 12, 64, generator=generator)
    visible = [0, 4, 20][:n_rows]
    with torch.inference_mode():
        found = attention(x, attention.remember(frames, None), visible)[0]
        q, k, v = attention.q_proj(x)[0], attention.k_proj(frames)[0], attention.v_proj(frames)[0]
        for i, n in enumerate(visible):
            heads = [
                torch.softmax(q[i, h] @ k[:n, h].T / 4.0, dim=0) @ v[:n, h] if n else torch.zeros(16)
                for h in (slice(16 * j, 16 * j + 16) for j in range(4))
            ]
            torch.testing.assert_close(found[i], attention.out_proj(torch.cat(heads)), atol=1e-5, rtol=1e-4)


CUTS = st.lists(st.integers(0, 40), max_size=8).map(sorted)


def pieces(x: torch.Tensor, cuts: list[int], dim: int) -> list[torch.Tensor]:
    ends = [0, *cuts, x.shape[dim]]
    return [x.narrow(dim, a, b - a) for a, b in itertools.pairwise(ends) if b > a]


def signal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


@settings(deadline=None, max_examples=25)
@given(CUTS, st.sampled_from([1, 2]))
@torch.inference_mode()
def test_a_convolution_in_pieces_equals_the_whole(cuts, stride):
    conv, x, tail, out = StreamingConv1d(3, 5, stride), signal(2, 3, 40), None, []
    for piece in pieces(x, cuts, 2):
        y, tail = conv(piece, tail)
        out.append(y)
    torch.testing.assert_close(torch.cat(out, dim=2), conv(x)[0], atol=1e-5, rtol=0)


@settings(deadline=None, max_examples=25)
@given(CUTS)
@torch.inference_mode()
def test_an_encoder_layer_in_pieces_equals_the_whole(cuts):
    torch.manual_seed(0)
    layer, x, out = EncoderLayer(16, 2, 32), signal(2, 40, 16), []
    cache = KVCache.empty(2, 2, 40, 8, like=x)
    for piece in pieces(x, cuts, 1):
        y, cache = layer(piece, cache, True)
        out.append(y)
    torch.testing.assert_close(torch.cat(out, dim=1), layer(x, None, True)[0], atol=1e-5, rtol=0)


@settings(deadline=None, max_examples=25)
@given(CUTS)
@torch.inference_mode()
def test_a_decoder_layer_in_pieces_equals_the_whole(cuts):
    torch.manual_seed(0)
    layer, x, out = DecoderLayer(16, 2, 32), signal(2, 40, 16), []
    frames = layer.encoder_attn.remember(signal(2, 100, 16), None)
    visible = [visible_frames(row, 4) for row in range(40)]
    cache = KVCache.empty(2, 2, 40, 8, like=x)
    for piece in pieces(x, cuts, 1):
        y, cache = layer(piece, cache, frames, visible[cache.n : cache.n + piece.shape[1]])
        out.append(y)
    torch.testing.assert_close(torch.cat(out, dim=1), layer(x, None, frames, visible)[0], atol=1e-5, rtol=0)


@settings(deadline=None, max_examples=25)
@given(CUTS)
@torch.inference_mode()
def test_the_encoder_in_pieces_equals_the_whole(tiny_model, cuts):
    encoder, mel, out = tiny_model.model.encoder, signal(1, 80, 41), []
    state = encoder.start(1, 20)
    for piece in pieces(mel, cuts, 2):
        y, state = encoder(piece, state)
        out.append(y)
    torch.testing.assert_close(torch.cat(out, dim=1), encoder(mel)[0], atol=1e-4, rtol=0)
    assert state.n_frames == 20


@settings(deadline=None, max_examples=25)
@given(CUTS, st.integers(0, 20))
@torch.inference_mode()
def test_the_encoder_resumes_at_any_frame(tiny_model, cuts, frame):
    encoder, mel = tiny_model.model.encoder, signal(1, 80, 41)
    whole, state = encoder(mel, encoder.start(1, 20))
    again, _ = encoder(mel[:, :, 2 * frame :], encoder.resume(state, frame, mel))
    torch.testing.assert_close(again, whole[:, frame:], atol=1e-4, rtol=0)


@settings(deadline=None, max_examples=25)
@given(CUTS)
@torch.inference_mode()
def test_the_decoder_in_pieces_equals_the_whole(tiny_model, cuts):
    decoder, out = tiny_model.model.decoder, []
    ids = torch.randint(0, 1100, (1, 40), generator=torch.Generator().manual_seed(0))
    frames = decoder.remember(signal(1, 170, 64))
    caches = decoder.start(1, 40)
    for piece in pieces(ids, cuts, 1):
        y, caches = decoder(piece, frames, caches)
        out.append(y)
    torch.testing.assert_close(torch.cat(out, dim=1), decoder(ids, frames)[0], atol=1e-4, rtol=0)


@torch.inference_mode()
def test_streams_in_one_batch_say_what_each_says_alone(tiny_model):
    mels = signal(3, 80, 80)
    ids = torch.randint(0, 1100, (3, 20), generator=torch.Generator().manual_seed(0))
    together = tiny_model(input_features=mels, decoder_input_ids=ids).logits
    for i in range(3):
        alone = tiny_model(input_features=mels[i : i + 1], decoder_input_ids=ids[i : i + 1]).logits
        torch.testing.assert_close(together[i : i + 1], alone, atol=1e-4, rtol=0)
