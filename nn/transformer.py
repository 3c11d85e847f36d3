"""Transformers: layers of attention and of two linear maps, encoders and decoders made of them (Vaswani et al. 2017)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy.typing as npt

from ..core.extend import Tensor
from . import functional as F
from . import init
from .attention import MultiheadAttention, square_subsequent_mask
from .containers import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

Activation = str | Callable[[Tensor], Tensor]


class _Layer(Module):
    """Base of encoder and decoder layers: the feedforward part, and the norms before or after each part."""

    _parts: int

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: str | None = None,
        dtype: npt.DTypeLike | None = None,
    ) -> None:
        super().__init__()
        factory: dict[str, Any] = {"device": device, "dtype": dtype}
        attention: dict[str, Any] = {"dropout": dropout, "bias": bias, "batch_first": batch_first, **factory}
        self.self_attn = MultiheadAttention(d_model, nhead, **attention)
        if self._parts == 3:
            self.multihead_attn = MultiheadAttention(d_model, nhead, **attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias, **factory)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **factory)
        self.norm_first = norm_first
        for part in range(1, self._parts + 1):
            setattr(self, f"norm{part}", LayerNorm(d_model, layer_norm_eps, bias=bias, **factory))
        for part in range(1, self._parts + 1):
            setattr(self, f"dropout{part}", Dropout(dropout))
        self.activation = _function(activation)

    def _apply_part(self, x: Tensor, part: int, function: Callable[[Tensor], Tensor]) -> Tensor:
        """Return ``x`` plus a part's result with dropout, normalized before the part or after the sum."""
        norm, drop = getattr(self, f"norm{part}"), getattr(self, f"dropout{part}")
        if self.norm_first:
            return x + drop(function(norm(x)))
        return norm(x + drop(function(x)))

    def _feedforward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feedforward part (Vaswani et al. 2017).

    Args:
        d_model: number of features of inputs and outputs.
        nhead: number of heads of attention.
        dim_feedforward: number of features between the two linear maps.
        dropout: probability of dropout after each part, of attention weights, and between the linear maps.
        activation: "relu", "gelu" or a function.
        layer_norm_eps: ``eps`` of the norms.
        batch_first: whether inputs are (N, L, E) instead of (L, N, E).
        norm_first: whether to normalize before each part instead of after it.
        bias: whether linear maps and norms have biases.
        device, dtype: of the parameters.

    Raises:
        ValueError: another activation, or ``d_model`` is not a multiple of ``nhead``.
    """

    _parts = 2

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Return a tensor of the shape of ``src``.

        Args:
            src: shape (L, N, E), (N, L, E) with ``batch_first``, or (L, E).
            src_mask, src_key_padding_mask, is_causal: as ``attn_mask``, ``key_padding_mask`` and ``is_causal`` of
                ``MultiheadAttention``.
        """

        def self_attention(x: Tensor) -> Tensor:
            return self.self_attn(x, x, x, src_key_padding_mask, False, src_mask, True, is_causal)[0]

        return self._apply_part(self._apply_part(src, 1, self_attention), 2, self._feedforward)


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to an encoder's output, and a feedforward part (Vaswani et al. 2017).

    Args:
        d_model: number of features of inputs and outputs.
        nhead: number of heads of attention.
        dim_feedforward: number of features between the two linear maps.
        dropout: probability of dropout after each part, of attention weights, and between the linear maps.
        activation: "relu", "gelu" or a function.
        layer_norm_eps: ``eps`` of the norms.
        batch_first: whether inputs are (N, L, E) instead of (L, N, E).
        norm_first: whether to normalize before each part instead of after it.
        bias: whether linear maps and norms have biases.
        device, dtype: of the parameters.

    Raises:
        ValueError: another activation, or ``d_model`` is not a multiple of ``nhead``.
    """

    _parts = 3

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return a tensor of the shape of ``tgt``.

        Args:
            tgt: shape (L, N, E), (N, L, E) with ``batch_first``, or (L, E).
            memory: the encoder's output, the same with S instead of L.
            tgt_mask, tgt_key_padding_mask, tgt_is_causal: masks of self-attention, as for ``MultiheadAttention``.
            memory_mask, memory_key_padding_mask, memory_is_causal: masks of attention to ``memory``.
        """

        def self_attention(x: Tensor) -> Tensor:
            return self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask, True, tgt_is_causal)[0]

        def memory_attention(x: Tensor) -> Tensor:
            given = (memory_key_padding_mask, False, memory_mask, True, memory_is_causal)
            return self.multihead_attn(x, memory, memory, *given)[0]

        x = self._apply_part(self._apply_part(tgt, 1, self_attention), 2, memory_attention)
        return self._apply_part(x, 3, self._feedforward)


class TransformerEncoder(Module):
    """Copies of a layer that are called one after the other.

    Args:
        encoder_layer: the layer.
        num_layers: number of copies.
        norm: layer for the last result.
        enable_nested_tensor, mask_check: not used.
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = ModuleList(copy.deepcopy(encoder_layer) for _ in range(num_layers))
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Return a tensor of the shape of ``src``.

        Args:
            src: shape (L, N, E), (N, L, E) with ``batch_first``, or (L, E).
            mask, src_key_padding_mask, is_causal: as for the layers.
        """
        for layer in self.layers:
            src = layer(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=bool(is_causal))
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """Copies of a layer that are called one after the other.

    Args:
        decoder_layer: the layer.
        num_layers: number of copies.
        norm: layer for the last result.
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = ModuleList(copy.deepcopy(decoder_layer) for _ in range(num_layers))
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return a tensor of the shape of ``tgt``.

        Args:
            tgt: shape (L, N, E), (N, L, E) with ``batch_first``, or (L, E).
            memory: the encoder's output, the same with S instead of L.
            tgt_mask, tgt_key_padding_mask, tgt_is_causal: masks of self-attention, as for ``MultiheadAttention``.
            memory_mask, memory_key_padding_mask, memory_is_causal: masks of attention to ``memory``.
        """
        masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        for layer in self.layers:
            tgt = layer(tgt, memory, *masks, bool(tgt_is_causal), memory_is_causal)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """Encoder and decoder (Vaswani et al. 2017).

    Args:
        d_model: number of features of inputs and outputs.
        nhead: number of heads of attention.
        num_encoder_layers, num_decoder_layers: number of layers.
        dim_feedforward: number of features between the two linear maps.
        dropout: probability of dropout after each part, of attention weights, and between the linear maps.
        activation: "relu", "gelu" or a function.
        custom_encoder, custom_decoder: modules instead of those that are made here.
        layer_norm_eps: ``eps`` of the norms.
        batch_first: whether inputs are (N, L, E) instead of (L, N, E).
        norm_first: whether to normalize before each part instead of after it.
        bias: whether linear maps and norms have biases.
        device, dtype: of the parameters.

    Raises:
        ValueError: another activation, or ``d_model`` is not a multiple of ``nhead``.
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: str | None = None,
        dtype: npt.DTypeLike | None = None,
    ) -> None:
        super().__init__()
        factory: dict[str, Any] = {"device": device, "dtype": dtype}
        shape = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, **factory)

        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*shape, **factory), num_encoder_layers, norm()
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*shape, **factory), num_decoder_layers, norm()
        )
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return a tensor of the shape of ``tgt``.

        Args:
            src: input of the encoder, shape (S, N, E), (N, S, E) with ``batch_first``, or (S, E).
            tgt: input of the decoder, the same with L instead of S.
            src_mask, src_key_padding_mask, src_is_causal: masks of the encoder, as for ``MultiheadAttention``.
            tgt_mask, tgt_key_padding_mask, tgt_is_causal: masks of the decoder's self-attention.
            memory_mask, memory_key_padding_mask, memory_is_causal: masks of its attention to the encoder's output.

        Raises:
            ValueError: there are not as many sources as targets, or they have other features.
        """
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[batch] != tgt.shape[batch]:
            raise ValueError(f"Transformer needs as many sources as targets, and you gave {src.shape} and {tgt.shape}")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise ValueError(f"Transformer takes {self.d_model} features, and you gave {src.shape} and {tgt.shape}")
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        return self.decoder(tgt, memory, *masks, tgt_is_causal, memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: str | None = None, dtype: npt.DTypeLike | None = None
    ) -> Tensor:
        """Return a mask of shape (sz, sz): -inf above the diagonal, so that no query attends to a later key.

        Args:
            sz: number of queries and keys.
            device: "cpu" or ``None``.
            dtype: of the mask; the default dtype if ``None``.
        """
        return square_subsequent_mask(sz, dtype)


def _function(activation: Activation) -> Callable[[Tensor], Tensor]:
    if callable(activation):
        return activation
    if activation not in ("relu", "gelu"):
        raise ValueError(f'activation must be "relu", "gelu" or a function, and you gave {activation!r}')
    return F.relu if activation == "relu" else F.gelu
