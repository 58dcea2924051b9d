"""A new kind is its own file and one line in a table: everything else takes it from there."""

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayesvote import BayesianEnsembleClassifier, Ensemble, Frozen, load, prequential, save
from bayesvote.members import BANKS, Bank
from bayesvote.weighting import WEIGHTERS
from contracts.toy_bank import CentroidBank
from contracts.toy_weighter import FollowTheBest

CSV = "a,b,label\n" + "".join(f"{x},{x * x},{'no' if x < 0 else 'yes'}\n" for x in (-2.0, 1.5, -0.5, 1.0, -1.0) * 30)


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BANKS, "centroid", CentroidBank)  # the one line of a new bank
    monkeypatch.setitem(WEIGHTERS, "follow_the_best", FollowTheBest)  # and of a new weighter


def rows(n: int = 80) -> tuple[Any, Any]:
    X = np.random.default_rng(0).normal(size=(n, 4))
    return X, (X[:, 0] > 0).astype(int)


def named(**more: Any) -> BayesianEnsembleClassifier:
    return BayesianEnsembleClassifier("centroid", 5, weighter="follow_the_best", random_state=0, **more)


def test_scikit_learn_by_name_saved_and_loaded(tmp_path: Path) -> None:
    X, y = rows()
    model = named().fit(X, y)
    assert isinstance(model.model_.bank, CentroidBank)
    assert list(model.weights_["kind"]) == ["Centroid"] * 5
    assert model.score(X, y) > 0.5
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.partial_fit(X, y).predict_proba(X), model.partial_fit(X, y).predict_proba(X))
    assert prequential(named(), X, y).error < 0.5


def test_merging_and_unlearning_are_refused_by_default() -> None:
    X, y = rows()
    model = Ensemble(Frozen(CentroidBank(3)), FollowTheBest()).start(4, rng=0)
    model.decide_then_learn(X, y)
    with pytest.raises(TypeError, match="states must be sums"):
        model.merge(model)
    with pytest.raises(TypeError, match="states must be sums"):
        model.unlearn(X, y)


def test_river_and_its_wider_rows(tmp_path: Path) -> None:
    adapters = pytest.importorskip("bayesvote.integrations.river")
    model = adapters.BayesianEnsembleClassifier("centroid", 5, weighter="follow_the_best", seed=0)
    X, y = rows()
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        names = "abcd" if t > 20 else "ab"
        model.learn_one(dict(zip(names, x.tolist(), strict=False)), "yes" if label else "no")
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    x = {"a": 1.0, "d": 0.5}
    assert again.predict_proba_one(x) == model.predict_proba_one(x)
    for one in (model, again):
        one.learn_one({"a": 0.1, "e": 1.0}, "perhaps")  # one more feature, and one more label
    assert again.predict_proba_one(x) == model.predict_proba_one(x)
    assert set(model.predict_proba_one(x)) == {"no", "yes", "perhaps"}


def test_command_line(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(CSV)
    program = """
        import sys
        sys.path.insert(0, sys.argv.pop(1))
        from bayesvote.apps.cli import main
        from bayesvote.members import BANKS, Bank
        from bayesvote.weighting import WEIGHTERS
        from contracts.toy_bank import CentroidBank
        from contracts.toy_weighter import FollowTheBest

        BANKS["centroid"] = CentroidBank
        WEIGHTERS["follow_the_best"] = FollowTheBest
        sys.exit(main())
    """
    tests = str(Path(__file__).parent.parent)

    def run(*arguments: str) -> str:
        command = [sys.executable, "-c", textwrap.dedent(program), tests, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("run", "rows.csv", "--members", "centroid", "--weighter", "follow_the_best", "-o", "model")
    assert "FollowTheBest" in run("inspect", "model")
    assert run("predict", "model", "rows.csv").count("\n") == 151


def test_what_a_kind_must_fill_in_cannot_be_forgotten() -> None:
    class Nothing(Bank[Any]):
        pass

    make: Any = Nothing
    with pytest.raises(TypeError, match=r"advance.*init.*least_bytes.*n_members.*score.*validate"):
        make()


@pytest.mark.parametrize("name", ["toy_bank.py", "toy_weighter.py"])
def test_the_docs_show_these_kinds(name: str) -> None:
    here = Path(__file__).parent
    page = here.parent.parent / "docs" / "architecture.md"
    assert f"```python\n{(here / name).read_text()}```" in page.read_text()
