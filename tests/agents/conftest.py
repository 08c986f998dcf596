"""Makes the one helper of these tests importable under importlib mode."""

import importlib.util
import sys
from pathlib import Path

if "playing" not in sys.modules:
    path = Path(__file__).with_name("playing.py")
    spec = importlib.util.spec_from_file_location("playing", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["playing"] = module
    spec.loader.exec_module(module)
