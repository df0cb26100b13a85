"""What an encoder is to a trial: embeddings, blocks 1..L, and the states between them.

Blocks are found by structure, never by the name of a model: the one list of as many alike modules
as the config has layers.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from inspect import signature
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from trainables.encoders.fingerprint import LAYER_KEYS, EncoderError

__all__ = ["Encoder", "EncoderError", "EncoderOutput", "LayerStates"]


@dataclass(frozen=True, slots=True)
class LayerStates:
    """The L + 1 states of one forward pass: state 0 enters layer 1, state l leaves layer l.

    Precisely, state l is what layer l + 1 reads (so what DeBERTa's convolution adds after layer 1
    is in state 1), and state L what the last layer gives. A norm after the last layer, as in
    ModernBERT, is in `EncoderOutput.last` and not in state L; transformers' `hidden_states` agree
    but for that norm, which they put into their last state.
    """

    tensors: tuple[Float[Tensor, "b t d"], ...]

    def __len__(self) -> int:
        return len(self.tensors)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.tensors)

    def __getitem__(self, layer: int) -> Tensor:
        return self.tensors[layer]


@dataclass(frozen=True, slots=True)
class EncoderOutput:
    """What one forward pass gives.

    Attributes:
        last: What a task head reads: the model's last hidden state, any final norm included.
        states: All states, when they were asked for.
    """

    last: Float[Tensor, "b t d"]
    states: LayerStates | None = None


class Encoder(nn.Module):
    """A transformers encoder whose parts can be touched.

    Attributes:
        model: The transformers model; holds all parameters.
        n_layers: Number of blocks, L.
        hidden_size: Width of every state, d.
        max_positions: Longest input in pieces, special pieces included.
        initializer_range: Standard deviation of the model's own weight initialisation.
        has_token_types: Whether the model tells the texts of a pair apart by an embedding.
    """

    def __init__(self, model: nn.Module, name: str = "encoder") -> None:
        """Find the parts of `model`.

        Args:
            model: A transformers base model (no head).
            name: Shown in messages.

        Raises:
            EncoderError: its blocks cannot be found.
        """
        super().__init__()
        config: Any = model.config
        self.model = model
        self.n_layers = _config_layers(config, name)
        self._blocks_path = _find_blocks(model, self.n_layers, name)
        self._embeddings_path = _find_embeddings(model, self._blocks_path, name)
        self.hidden_size = int(config.hidden_size)
        self.max_positions = _max_positions(model, self._embeddings_path)
        self.initializer_range = float(getattr(config, "initializer_range", 0.02))
        takes_types = "token_type_ids" in signature(model.forward).parameters
        self.has_token_types = takes_types and getattr(config, "type_vocab_size", 0) > 1

    @property
    def blocks(self) -> nn.ModuleList:
        """Layers 1..L; layer l is `blocks[l - 1]`."""
        blocks = self.model.get_submodule(self._blocks_path)
        assert isinstance(blocks, nn.ModuleList)  # noqa: S101 - as it was found
        return blocks

    @property
    def embeddings(self) -> nn.Module:
        """All that turns piece ids into state 0 and owns the input embedding."""
        return self.model.get_submodule(self._embeddings_path)

    @property
    def input_embedding(self) -> nn.Module:
        """The table of piece vectors."""
        table: nn.Module = self.model.get_input_embeddings()  # type: ignore[operator]  # transformers' own method
        return table

    def set_input_embedding(self, table: nn.Module) -> None:
        """Put another table in its place.

        A method: `nn.Module` would take an assignment for a new submodule, past any property.
        """
        self.model.set_input_embeddings(table)  # type: ignore[operator]  # as above

    def forward(
        self,
        input_ids: Int[Tensor, "b t"],
        attention_mask: Int[Tensor, "b t"],
        *,
        token_type_ids: Int[Tensor, "b t"] | None = None,
        with_states: bool = False,
    ) -> EncoderOutput:
        """Encode a batch.

        Args:
            input_ids: Piece ids.
            attention_mask: 0 where there is padding.
            token_type_ids: Which text of a pair each piece belongs to; passed on only to a model
                that has an embedding for it.
            with_states: Whether the states between the blocks are wanted too.
        """
        seen: list[Tensor] = []
        with ExitStack() as stack:
            if with_states:
                blocks = self.blocks
                for block in blocks:
                    handle = block.register_forward_pre_hook(
                        lambda _, args, kwargs: seen.append(_first(args, kwargs)), with_kwargs=True
                    )
                    stack.callback(handle.remove)
                handle = blocks[-1].register_forward_hook(
                    lambda _block, _args, out: seen.append(
                        out[0] if isinstance(out, tuple) else out
                    )
                )
                stack.callback(handle.remove)
            types = {}
            if self.has_token_types and token_type_ids is not None:
                types = {"token_type_ids": token_type_ids}
            output = self.model(input_ids=input_ids, attention_mask=attention_mask, **types)
        states = LayerStates(tuple(seen)) if with_states else None
        return EncoderOutput(output.last_hidden_state, states)

    def check(self, name: str) -> None:
        """Read two pieces, to see that the states between the blocks can be read.

        Args:
            name: Shown in messages.

        Raises:
            EncoderError: the model takes other inputs, or its blocks pass on something else than
                one state `[b t d]`.
        """
        ids = torch.zeros((1, 2), dtype=torch.int64)
        expected = [(1, 2, self.hidden_size)] * (self.n_layers + 1)
        try:
            with torch.no_grad():
                output = self(ids, torch.ones_like(ids), with_states=True)
            shapes = [tuple(state.shape) for state in output.states]
        except (AttributeError, KeyError, IndexError, TypeError, ValueError, RuntimeError) as error:
            shapes, reason = [], f"{type(error).__name__}: {error}"
        else:
            reason = f"{len(shapes)} states of shapes {sorted(set(shapes))}"
        if shapes != expected:
            raise EncoderError(
                f"encoder '{name}' ({type(self.model).__name__}): the states between its "
                f"{self.n_layers} blocks cannot be read: {reason}. Choose an encoder-only model of "
                "one width."
            )


def _first(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """The hidden states that a block is called with."""
    state: Tensor = args[0] if args else kwargs["hidden_states"]
    return state


def _config_layers(config: Any, name: str) -> int:  # noqa: ANN401 - a transformers config
    for key in LAYER_KEYS:
        if isinstance(getattr(config, key, None), int):
            return int(getattr(config, key))
    raise EncoderError(
        f"encoder '{name}' ({type(config).__name__}): its config gives no number of layers "
        f"(looked for {', '.join(LAYER_KEYS)}). Choose an encoder-only model."
    )


def _find_blocks(model: nn.Module, n_layers: int, name: str) -> str:
    """Path of the one outermost list of `n_layers` modules of one class."""
    lists = {
        path: module for path, module in model.named_modules() if isinstance(module, nn.ModuleList)
    }
    alike = [
        path
        for path, module in lists.items()
        if len(module) == n_layers and len({type(block) for block in module}) == 1
    ]
    outermost = [path for path in alike if not any(path.startswith(f"{other}.") for other in alike)]
    if len(outermost) == 1:
        return str(outermost[0])
    found = ", ".join(f"{path} ({len(module)})" for path, module in lists.items()) or "none"
    many = "more than one list" if outermost else "no list"
    raise EncoderError(
        f"encoder '{name}' ({type(model).__name__}): its transformer blocks cannot be found: "
        f"{many} of {n_layers} alike modules, the number of layers in its config (lists: {found}). "
        "Choose an encoder-only model that shares no weights between layers (BERT, XLM-R, "
        "DistilBERT, DeBERTa-v2, ModernBERT, ...)."
    )


def _find_embeddings(model: nn.Module, blocks_path: str, name: str) -> str:
    """Path of the largest module around the input embedding that holds no block."""
    table = model.get_input_embeddings()  # type: ignore[operator]  # transformers' own method
    path: str | None = next((p for p, module in model.named_modules() if module is table), None)
    if not path or not isinstance(table, nn.Embedding):
        raise EncoderError(
            f"encoder '{name}' ({type(model).__name__}): it has no table of piece vectors. "
            "Choose an encoder that reads pieces."
        )
    parts = path.split(".")
    for n_parts in range(1, len(parts)):
        ancestor = ".".join(parts[:n_parts])
        if not f"{blocks_path}.".startswith(f"{ancestor}."):
            return ancestor
    return path


def _max_positions(model: nn.Module, embeddings_path: str) -> int:
    """Longest input: rows of the position table, less those before its first position.

    Models of the RoBERTa kind count positions from after the padding index. Encoders without such
    a table (rotary, relative) have what their config says.
    """
    config: Any = model.config
    keys = ("max_position_embeddings", "n_positions", "max_sequence_length")
    longest = next((int(getattr(config, key)) for key in keys if getattr(config, key, None)), 512)
    for path, module in model.get_submodule(embeddings_path).named_modules():
        if isinstance(module, nn.Embedding) and "position" in path:
            skipped = 0 if module.padding_idx is None else module.padding_idx + 1
            return module.num_embeddings - skipped
    return longest
