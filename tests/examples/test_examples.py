"""The files in `examples/` are what they say they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from resources.lab.config import EXAMPLE, load_config
from resources.lab.gateway import Lab
from resources.lab.target_list import lab_targets
from resources.targets import Target
from sr_bench_assets.plans.manifest import Manifest

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_targets_are_those_of_the_built_in_lab() -> None:
    """The config hash in it goes with the router's configuration: `sr-bench lab targets` writes the file."""
    written = json.loads((EXAMPLES / "targets.json").read_text(encoding="utf-8"))
    assert written == lab_targets(load_config(EXAMPLE), None, "http://127.0.0.1:8123")


def test_manifest_is_valid_and_names_the_registered_targets() -> None:
    document = yaml.safe_load((EXAMPLES / "manifest.yaml").read_text(encoding="utf-8"))
    registered = {
        item["id"]: item for item in json.loads((EXAMPLES / "targets.json").read_text(encoding="utf-8"))
    }
    document["targets"] = [registered[reference["ref"]] for reference in document["targets"]]
    assert [target.kind for target in Manifest.model_validate(document).targets] == [
        "single",
        "single",
        "mom",
    ]


@pytest.mark.parametrize("name", ["lab-faults.yaml"])
def test_lab_files_serve(name: str) -> None:
    config = load_config(EXAMPLES / name)
    for document in lab_targets(config, Lab(config).recording, "http://127.0.0.1:8123"):
        Target.model_validate(document)
