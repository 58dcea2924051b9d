"""Serve a river model with FastAPI, for comparison: late labels, with everything in memory only.

``python benchmarks/service_river.py PORT one|hundred``: one logistic regression, or a bag of 100 Perceptrons.
"""

import sys
from importlib import import_module
from typing import Any

MODELS = {
    "one": lambda: import_module("river.linear_model").LogisticRegression(),
    "hundred": lambda: import_module("river.ensemble").BaggingClassifier(
        import_module("river.linear_model").Perceptron(), n_models=100, seed=0
    ),
}


def make_app(name: str) -> Any:
    """Return the application."""
    from fastapi import FastAPI
    from pydantic import BaseModel

    class Row(BaseModel):
        id: str
        x: dict[str, float]

    class Label(BaseModel):
        id: str
        y: int

    app, model = FastAPI(), MODELS[name]()
    waiting: dict[str, dict[str, float]] = {}

    async def predict(row: Row) -> dict[str, Any]:
        waiting[row.id] = row.x
        probabilities = model.predict_proba_one(row.x)
        return {"id": row.id, "probability": {str(label): value for label, value in probabilities.items()}}

    async def label(given: Label) -> dict[str, Any]:
        model.learn_one(waiting.pop(given.id), given.y)
        return {"learned": 1}

    # The types are local, so FastAPI cannot resolve annotations given as strings.
    predict.__annotations__ = {"row": Row, "return": dict[str, Any]}
    label.__annotations__ = {"given": Label, "return": dict[str, Any]}
    app.post("/predict")(predict)
    app.post("/label")(label)
    return app


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(make_app(sys.argv[2]), port=int(sys.argv[1]), log_level="warning", access_log=False, loop="uvloop")
