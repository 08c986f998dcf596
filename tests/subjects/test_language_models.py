"""Adapters of language models, with stand-ins for the libraries."""

import sys
import types

import numpy as np
import pytest

from owa_bench.errors import MissingPartError
from owa_bench.subjects import language_models


class Counting:
    """Prefers the token after the last one."""

    def next_token_logits(self, contexts):
        wanted = (contexts[:, -1:] + 1) % 10
        return -np.abs(np.arange(10.0)[None] - wanted)


def test_ranks_of_the_true_next_token():
    tokens = np.arange(40) % 10
    found = language_models.reference_ranks(Counting(), tokens, context=3, windows=30, batch=7)
    assert found.tolist() == [0.0] * 30
    still = language_models.reference_ranks(Counting(), np.full(20, 4), context=3, windows=5)
    assert still.tolist() == [1.5] * 5  # 5 comes first; 4 ties with 6


@pytest.mark.parametrize(
    ("module", "make"),
    [
        ("torch", lambda: language_models.TorchModel(lambda tokens: tokens)),
        ("transformers", lambda: language_models.HuggingFaceModel("x")),
        ("llama_cpp", lambda: language_models.LlamaCppModel("x.gguf")),
    ],
)
def test_a_missing_library_says_what_to_install(module, make, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingPartError, match="pip install"):
        make()


def test_llama_windows_are_read_afresh(monkeypatch):
    class Llama:
        def __init__(self, path, **options):
            self.path, self.options = path, options
            self.read = []

        def reset(self):
            self.read = []

        def eval(self, tokens):
            self.read.extend(tokens)

        @property
        def eval_logits(self):
            return [[0.0] * 4, [float(len(self.read)), *map(float, self.read)]]

        def tokenize(self, text, *, add_bos):
            assert not add_bos
            return list(text)

    monkeypatch.setitem(sys.modules, "llama_cpp", types.SimpleNamespace(Llama=Llama))
    model = language_models.LlamaCppModel("x.gguf")
    found = model.next_token_logits(np.array([[1, 2, 3], [4, 5, 6]]))
    assert found.tolist() == [[3, 1, 2, 3], [3, 4, 5, 6]]
    assert model.encode("ab").tolist() == [97, 98]


@pytest.mark.rl
def test_a_torch_module_gives_its_last_position():
    torch = pytest.importorskip("torch")
    model = language_models.TorchModel(torch.nn.Embedding(10, 5))
    found = model.next_token_logits(np.array([[1, 2], [3, 4]]))
    assert found.shape == (2, 5)
    assert found.dtype == np.float64
