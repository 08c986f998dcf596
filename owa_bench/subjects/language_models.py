"""Adapters for language models: torch, Hugging Face and llama.cpp behind one method.

The method is `next_token_logits(contexts)`: contexts are integer arrays (windows, k) of the model's
own tokens, logits double precision (windows, vocabulary). Each adapter loads its library when it is
made.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from owa_bench.errors import MissingPartError
from owa_bench.subjects.classifiers import load_torch

Contexts = npt.NDArray[np.int64]
Logits = npt.NDArray[np.float64]


class TorchModel:
    """Any torch module or function from token tensors (B, k) to logits.

    Logits may be (B, V), or (B, k, V) of which the last position is read.
    """

    def __init__(self, module: Callable[[Any], Any], *, device: str = "cpu") -> None:
        self._module = module
        self._device = device
        self._torch = load_torch()
        if isinstance(module, self._torch.nn.Module):
            module.eval()

    def next_token_logits(self, contexts: Contexts) -> Logits:
        """Return logits (windows, vocabulary) of what follows contexts."""
        with self._torch.inference_mode():
            tokens = self._torch.as_tensor(contexts, device=self._device)
            logits = self._module(tokens)
            if logits.ndim == 3:
                logits = logits[:, -1]
            numbers = logits.to("cpu", self._torch.float64).numpy()
        return np.asarray(numbers, dtype=np.float64)


class HuggingFaceModel(TorchModel):
    """A Hugging Face causal language model by name or folder; `encode` gives tokens."""

    def __init__(self, name: str, *, device: str = "cpu", **options: Any) -> None:
        try:
            from transformers import AutoModelForCausalLM, AutoTokenizer
        except ImportError as error:
            part, install = "transformers", "pip install transformers torch"
            raise MissingPartError(part, install) from error
        self._tokenizer = AutoTokenizer.from_pretrained(name)
        model = AutoModelForCausalLM.from_pretrained(name, **options).to(device).eval()
        super().__init__(lambda tokens: model(tokens).logits, device=device)

    def encode(self, text: str) -> Contexts:
        """Return a text as tokens, without the ones that mark begin and end."""
        tokens = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return np.asarray(tokens, dtype=np.int64)


class LlamaCppModel:
    """A GGUF model through llama-cpp-python; windows are read one by one."""

    def __init__(self, path: Path, *, context: int = 1024, **options: Any) -> None:
        try:
            from llama_cpp import Llama
        except ImportError as error:
            part, install = "llama-cpp-python", "pip install llama-cpp-python"
            raise MissingPartError(part, install) from error
        self._model = Llama(str(path), n_ctx=context, logits_all=False, verbose=False, **options)

    def encode(self, text: str) -> Contexts:
        """Return a text as tokens, without the one that marks the begin."""
        tokens = self._model.tokenize(text.encode(), add_bos=False)
        return np.asarray(tokens, dtype=np.int64)

    def next_token_logits(self, contexts: Contexts) -> Logits:
        """Return logits (windows, vocabulary) of what follows contexts."""
        rows = []
        for context in contexts.tolist():
            self._model.reset()
            self._model.eval(context)
            rows.append(np.array(self._model.eval_logits[-1], dtype=np.float64))
        return np.stack(rows)


def reference_ranks(
    model: Any, tokens: Contexts, *, context: int, windows: int, batch: int = 32
) -> npt.NDArray[np.float64]:
    """Return how many tokens the model ranks before the true next one, per window.

    The failure count of the Intelligence Test: rank of the reference minus one, ties at the mean
    rank.

    Args:
        model: has `next_token_logits`.
        tokens: (n,) of the model's own.
        context: tokens of a window.
        windows: how many windows are read, from the first token on.
        batch: windows of one call.
    Returns: (windows,) counts.
    """
    counts = []
    views = np.lib.stride_tricks.sliding_window_view(tokens, context)
    for first in range(0, windows, batch):
        last = min(first + batch, windows)
        logits = model.next_token_logits(np.ascontiguousarray(views[first:last]))
        truth = tokens[first + context : last + context]
        own = np.take_along_axis(logits, truth[:, None], axis=1)
        tied = np.sum(logits == own, axis=1) - 1
        counts.append(np.sum(logits > own, axis=1) + tied / 2.0)
    return np.concatenate(counts).astype(np.float64)
