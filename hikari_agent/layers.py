"""Hikari's layers. Each runs on a whole signal or on pieces of it through one path: `y, state = layer(x, state)`.

A state of None means: from the start. State is never kept in a module, so one model serves any number of streams.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def visible_frames(row: int, dilation: int) -> int:
    """How many encoder frames decoder row `row` may attend to: frames 0 .. `dilation * row` - 1; row 0 sees none.

    The released mask follows this rule for every dilation but 1, where row i sees frames 0 .. i.
    """
    return dilation * row if dilation > 1 else row + 1


def first_row_seeing(frame: int, dilation: int) -> int:
    """The first decoder row that may attend to encoder frame `frame`: the inverse of `visible_frames`."""
    return frame // dilation + 1 if dilation > 1 else frame


@dataclass(frozen=True)
class KVCache:
    """Keys and values of one attention layer: `n` filled positions of a storage with a fixed capacity.

    Both tensors are (B, n_heads, capacity, head_dim). Appending writes behind position `n` in place and returns a
    longer view, so an older view of the same storage is stale from there on: copy a cache to fork it. What does not
    fit goes into new storage. `truncated` is a shorter view, whose rest will be overwritten.
    """

    keys: Tensor
    values: Tensor
    n: int

    @classmethod
    def empty(cls, batch: int, n_heads: int, capacity: int, head_dim: int, like: Tensor) -> KVCache:
        shape = (batch, n_heads, capacity, head_dim)
        return cls(like.new_empty(shape), like.new_empty(shape), 0)

    def append(self, keys: Tensor, values: Tensor) -> KVCache:
        end = self.n + keys.shape[2]
        if end > self.keys.shape[2]:
            held_keys, held_values = self.filled()
            return KVCache(torch.cat([held_keys, keys], dim=2), torch.cat([held_values, values], dim=2), end)
        self.keys[:, :, self.n : end] = keys
        self.values[:, :, self.n : end] = values
        return KVCache(self.keys, self.values, end)

    def truncated(self, n: int) -> KVCache:
        return KVCache(self.keys, self.values, min(n, self.n))

    def filled(self) -> tuple[Tensor, Tensor]:
        return self.keys[:, :, : self.n], self.values[:, :, : self.n]


def extend(cache: KVCache | None, keys: Tensor, values: Tensor) -> KVCache:
    """Append to a cache; without one, the new keys and values are the whole of it (and keep their gradient)."""
    return KVCache(keys, values, keys.shape[2]) if cache is None else cache.append(keys, values)


class StreamingConv1d(nn.Conv1d):
    """A convolution of width 3 with zeros before the signal; its state is the tail of inputs still needed.

    One zero is Whisper's; with two and a stride of 1, no output waits for an input of the future. A zero after the
    signal is an input like any other: whoever ends the signal feeds it.
    """

    def __init__(self, in_channels: int, out_channels: int, stride: int = 1, n_zeros: int = 1) -> None:
        super().__init__(in_channels, out_channels, kernel_size=3, stride=stride)
        self.n_zeros = n_zeros

    def forward(self, x: Tensor, tail: Tensor | None = None) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """(B, in_channels, n) -> (B, out_channels, m) of complete outputs, and the new tail."""
        x = torch.cat([x.new_zeros(*x.shape[:2], self.n_zeros) if tail is None else tail, x], dim=2)
        stride = self.stride[0]
        n_out = max(0, (x.shape[2] - 3) // stride + 1)
        y = super().forward(x) if n_out else x.new_zeros(x.shape[0], self.out_channels, 0)
        return y, x[:, :, n_out * stride :]


def attend(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, is_causal: bool = False) -> Tensor:
    """Scaled dot-product attention of (B, n_heads, n, head_dim); `mask` (n_queries, n_keys) is true where a query sees a key.

    On a CPU the gradient of PyTorch's fused kernel takes 1.5 to 5 times as long as that of the plain products, but for
    long causal ones, of which it leaves out half.
    """
    learns = torch.is_grad_enabled() and queries.requires_grad and queries.device.type == "cpu"
    if not learns or (mask is None and not is_causal) or (is_causal and keys.shape[2] > 640):
        return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, is_causal=is_causal)
    if mask is None:
        mask = torch.ones(queries.shape[2], keys.shape[2], dtype=torch.bool).tril()
    hidden = torch.zeros_like(mask, dtype=queries.dtype).masked_fill(~mask, -torch.inf)
    q, k, v = (t.flatten(0, 1) for t in (queries, keys, values))
    weights = torch.baddbmm(hidden, q, k.transpose(1, 2), alpha=q.shape[2] ** -0.5).softmax(dim=-1)
    return (weights @ v).view_as(queries)


class Attention(nn.Module):
    """The four projections of multi-head attention, with Whisper's names; the key projection has no bias."""

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model, bias=False)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def heads(self, x: Tensor) -> Tensor:
        """(B, n, d_model) -> (B, n_heads, n, head_dim)."""
        return x.unflatten(2, (self.n_heads, -1)).transpose(1, 2)

    def join(self, x: Tensor) -> Tensor:
        """(B, n_heads, n, head_dim) -> (B, n, d_model), projected."""
        return self.out_proj(x.transpose(1, 2).flatten(2))

    def remember(self, x: Tensor, cache: KVCache | None) -> KVCache:
        """The cache with the keys and values of `x` (B, n, d_model) behind those it holds."""
        return extend(cache, self.heads(self.k_proj(x)), self.heads(self.v_proj(x)))


class SelfAttention(Attention):
    """Attention of each position to itself and, if causal, to those before it only."""

    def forward(self, x: Tensor, cache: KVCache | None, is_causal: bool = True) -> tuple[Tensor, KVCache]:
        """(B, n, d_model) behind the positions in `cache` -> the same shape, and the longer cache."""
        cache = self.remember(x, cache)
        keys, values = cache.filled()
        n_new, n_past = x.shape[1], cache.n - x.shape[1]
        mask = None
        if is_causal and n_past and n_new > 1:
            positions = torch.arange(cache.n, device=x.device)
            mask = positions <= positions[n_past:, None]
        y = attend(self.heads(self.q_proj(x)), keys, values, mask, is_causal and not n_past and n_new > 1)
        return self.join(y), cache


class CrossAttention(Attention):
    """Attention of decoder rows to the encoder frames that each may see; a row that sees none gets zero."""

    def forward(self, x: Tensor, frames: KVCache, visible: list[int]) -> Tensor:
        """(B * K, n_rows, d_model) against remembered frames; `visible[i]` frames for row i -> the same shape.

        The frames are those of B streams: K variants of one stream follow each other in the batch and are asked
        together, K * n_rows queries against one set of keys.
        """
        shape = x.shape
        x = x.reshape(len(frames.keys), -1, shape[2])
        visible = visible * (shape[0] // len(frames.keys))
        return self._attend(x, frames, visible).view(shape)

    def _attend(self, x: Tensor, frames: KVCache, visible: list[int]) -> Tensor:
        seen = min(max(visible), frames.n)
        if seen == 0:
            return self.join(torch.zeros_like(self.heads(x)))
        keys, values = (t[:, :, :seen] for t in frames.filled())
        mask = blind = None
        if min(visible) < seen:
            limits = torch.tensor(visible, device=x.device)[:, None]
            blind = limits == 0
            # A softmax over nothing is NaN: a blind row looks at frame 0, and what it saw is dropped.
            mask = torch.arange(seen, device=x.device) < limits.clamp(min=1)
        y = attend(self.heads(self.q_proj(x)), keys, values, mask)
        return self.join(y if blind is None else y.masked_fill(blind, 0.0))


class FeedForward(nn.Module):
    """What encoder and decoder layers share: Whisper's two linear layers, with names on the layer itself."""

    fc1: nn.Linear
    fc2: nn.Linear
    final_layer_norm: nn.LayerNorm

    def add_feed_forward(self, d_model: int, ffn_dim: int) -> None:
        self.fc1 = nn.Linear(d_model, ffn_dim)
        self.fc2 = nn.Linear(ffn_dim, d_model)
        self.final_layer_norm = nn.LayerNorm(d_model)

    def feed_forward(self, x: Tensor) -> Tensor:
        return x + self.fc2(F.gelu(self.fc1(self.final_layer_norm(x))))


class EncoderLayer(FeedForward):
    def __init__(self, d_model: int, n_heads: int, ffn_dim: int) -> None:
        super().__init__()
        self.self_attn = SelfAttention(d_model, n_heads)
        self.self_attn_layer_norm = nn.LayerNorm(d_model)
        self.add_feed_forward(d_model, ffn_dim)

    def forward(self, x: Tensor, cache: KVCache | None, is_causal: bool) -> tuple[Tensor, KVCache]:
        y, cache = self.self_attn(self.self_attn_layer_norm(x), cache, is_causal)
        x = self.feed_forward(x + y)
        if x.dtype == torch.float16:
            x = x.clamp(-64504, 64504)  # float16 ends at 65,504; the released model keeps 1,000 clear of it
        return x, cache


class DecoderLayer(FeedForward):
    def __init__(self, d_model: int, n_heads: int, ffn_dim: int) -> None:
        super().__init__()
        self.self_attn = SelfAttention(d_model, n_heads)
        self.self_attn_layer_norm = nn.LayerNorm(d_model)
        self.encoder_attn = CrossAttention(d_model, n_heads)
        self.encoder_attn_layer_norm = nn.LayerNorm(d_model)
        self.add_feed_forward(d_model, ffn_dim)

    def forward(self, x: Tensor, cache: KVCache | None, frames: KVCache, visible: list[int]) -> tuple[Tensor, KVCache]:
        y, cache = self.self_attn(self.self_attn_layer_norm(x), cache)
        x = x + y
        x = x + self.encoder_attn(self.encoder_attn_layer_norm(x), frames, visible)
        return self.feed_forward(x), cache
