"""Learn your own stream: read a CSV file in chunks, learn late labels, save the model and continue."""

import tempfile
from pathlib import Path

import numpy as np

from bayesvote import BayesianEnsembleClassifier, load, prequential, save
from bayesvote.datasets import stream


def write_csv(path: Path, rows: int) -> None:
    """Write sensor readings of a machine; some are missing, and the rule for "worn" changes half-way."""
    rng = np.random.default_rng(0)
    heat, noise, load_ = rng.normal(size=(3, rows))
    worn = np.where(np.arange(rows) < rows // 2, heat + noise, heat - load_) + 0.3 * rng.normal(size=rows) > 0
    with path.open("w", encoding="utf-8") as file:
        file.write("heat,noise,load,state\n")
        for k in range(rows):
            reading = "" if rng.random() < 0.05 else f"{noise[k]:.3f}"
            file.write(f"{heat[k]:.3f},{reading},{load_[k]:.3f},{'worn' if worn[k] else 'fine'}\n")


with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "machine.csv"
    write_csv(path, 6_000)

    models = {
        "default": BayesianEnsembleClassifier(random_state=0),
        "keeps all": BayesianEnsembleClassifier("mixed", weighter="joint_gaussian", random_state=0),
    }
    runs = prequential(models, stream(path, target="state"), classes=["fine", "worn"], delay=50, window=1_000)
    for name, run in runs.items():
        before, after = run.windowed()[[2_999, 5_999]]
        print(
            f"{name}: error {run.error:.3f}, kappa {run.kappa:.3f}, before the change {before:.3f}, after {after:.3f}"
        )

    save(models["default"], Path(folder) / "machine.bayesvote")
    model = load(Path(folder) / "machine.bayesvote")  # continues to learn
    print("A hot, quiet machine is", *model.predict([[2.0, -1.0, 0.0]]))
