"""Configuration: YAML → typed settings, where every mistake is told at once with its line and key path.

    class Training(Settings):
        epochs: int = Field(default=10, gt=0)
        "How often the training data is gone through."

    read_config("train.yaml", Training, overrides=["epochs=3"])

A settings class stands beside what it configures and derives from `Settings`. Nothing in a configuration
file is executed: it is read as plain YAML 1.2 scalars, lists and mappings.
"""

from regard.config.reading import read_config, settings_from
from regard.config.settings import Settings

__all__ = ["Settings", "read_config", "settings_from"]
