"""A model with its tokenizer: text in, text out.

model = regard.load("models/en-de")
model.translate(["A cat."])[0].text
"""

__all__ = ["Attention", "Labelled", "Pipeline", "Result", "Tagged", "load"]

_HOMES = {
    "Attention": "regard.pipeline.results",
    "Labelled": "regard.pipeline.results",
    "Pipeline": "regard.pipeline.model",
    "Result": "regard.pipeline.results",
    "Tagged": "regard.pipeline.results",
    "load": "regard.pipeline.model",
}


def __getattr__(name: str) -> object:
    """Results are read without torch, for engines that need none; the rest is imported on first use."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'regard.pipeline' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
