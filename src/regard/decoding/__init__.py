"""From a model's probabilities to sequences: greedy, beam and sampling. It sees a model only through its contract.

from regard.decoding import SearchSettings, search
hypotheses = search(model, source, lengths, SearchSettings(beam=5, nbest=3))
"""

from regard.decoding.settings import SearchSettings

__all__ = ["Ensemble", "Hypothesis", "Rules", "SearchSettings", "VocabularyMap", "search"]

_HOMES = {
    "Ensemble": "regard.decoding.ensemble",
    "Hypothesis": "regard.decoding.results",
    "Rules": "regard.decoding.rules",
    "VocabularyMap": "regard.decoding.vocabulary_map",
    "search": "regard.decoding.searching",
}


def __getattr__(name: str) -> object:
    """Settings are read without torch (a configuration names them); the rest is imported on first use."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'regard.decoding' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
