"""Sets of layers as a study writes them: `3`, `1-2`, `1,2,5`. Layers are 1..L."""

import re
from collections.abc import Iterable


class AblationError(ValueError):
    """An ablation is misspelt or does not fit the encoder.

    `what` is the message without the ablation's own text, for messages that name it themselves.
    """

    def __init__(self, text: str, what: str) -> None:
        """Build the message `ablation = "text": what`."""
        super().__init__(f'ablation = "{text}": {what}')
        self.text, self.what = text, what

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        """Survive the trip between processes."""
        return type(self), (self.text, self.what)


_RANGE = re.compile(r"(\d+)(?:-(\d+))?", re.ASCII)


def parse_layers(argument: str, n_layers: int, text: str) -> tuple[int, ...]:
    """The layers that `argument` names, ascending.

    Args:
        argument: `k`, `i-j` (both inclusive), or a list of these with commas.
        n_layers: Layers of the encoder.
        text: The whole ablation, for messages.

    Raises:
        AblationError: misspelt, outside 1..`n_layers`, or a layer named twice.
    """
    layers: set[int] = set()
    for part in argument.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise AblationError(
                text,
                f"'{argument}' is no set of layers. Write 3, a range 1-2, or a list 1,2,5.",
            )
        first = int(match[1])
        last = int(match[2] or first)
        if first > last:
            raise AblationError(text, f"the range {first}-{last} is empty. Write {last}-{first}.")
        if first < 1 or last > n_layers:
            raise AblationError(
                text,
                f"this encoder has layers 1-{n_layers}. Write a range within 1-{n_layers}.",
            )
        twice = layers & set(range(first, last + 1))
        if twice:
            raise AblationError(text, f"layer {min(twice)} is named twice. Name it once.")
        layers |= set(range(first, last + 1))
    return tuple(sorted(layers))


def spell_layers(layers: Iterable[int]) -> str:
    """The one spelling of a set of layers: ascending, runs of two and more as ranges."""
    runs: list[list[int]] = []
    for layer in sorted(set(layers)):
        if runs and runs[-1][1] == layer - 1:
            runs[-1][1] = layer
        else:
            runs.append([layer, layer])
    return ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs)
