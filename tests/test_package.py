"""The public surface."""

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import bayesvote


def test_all_is_sorted_and_true() -> None:
    assert sorted(bayesvote.__all__) == sorted(set(bayesvote.__all__))
    assert all(hasattr(bayesvote, name) for name in bayesvote.__all__)


def test_the_version_is_the_same_everywhere() -> None:
    root = Path(__file__).parents[1]
    built = subprocess.run([sys.executable, root / "tools" / "version.py"], capture_output=True, text=True, check=True)
    assert built.stdout.strip() == bayesvote.__version__
    assert version("bayesvote") == bayesvote.__version__, "Install the package again: make .venv/ready"
    newest = re.search(r"^## (\S+)", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == bayesvote.__version__.partition(".dev")[0]


def test_import_is_light() -> None:
    heavy = {"numba", "pandas", "matplotlib", "river", "safetensors", "sklearn"}
    code = f"import bayesvote, sys; print({heavy} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "set()"


def test_links_of_the_readme_work_on_the_package_page() -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]+)\)", readme)
    assert links
    for link in links:
        assert link.startswith("https://")
        _, inside, page = link.partition("/blob/main/")
        assert not inside or (Path(__file__).parents[1] / page).exists()


def test_nothing_is_asked_of_the_network() -> None:
    code = """
import socket

def refuse(*_, **__):
    raise AssertionError("the network was asked for")

socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
import numpy as np
import bayesvote
from bayesvote.io import model_file as persistence
X = np.random.default_rng(0).normal(size=(50, 3))
model = bayesvote.BayesianEnsembleClassifier(n_members=6).fit(X, X[:, 0] > 0)
persistence.loads(persistence.dumps(model)).predict(X)
bayesvote.load_dataset("heart")
"""
    subprocess.run([sys.executable, "-c", code], check=True)
