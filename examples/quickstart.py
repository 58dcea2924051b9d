"""Learn from a stream, and report the uncertainty of the decisions."""

from bayesvote import BayesianEnsembleClassifier, load_dataset, prequential

data = load_dataset("german")
X, y = data.X, data.y  # the classifier scales numbers by itself

model = BayesianEnsembleClassifier(random_state=0)
run = prequential(model, X, y)  # every row is predicted, then learned
print(f"{run.error:.3f} of {len(y)} rows were predicted wrongly. A constant prediction has the error {y.mean():.3f}.")

sure = model.decision_certainty(X[:200]) > 0.95
print(f"For {sure.mean():.0%} of the first 200 rows the decision has a certainty above 95%.")
weights = model.weights_  # a DataFrame, or an array with the same columns if pandas is not installed
for member in (-weights["mean"]).argsort()[:5]:
    print(f"{weights['kind'][member]:10} {weights['mean'][member]:.3f} +- {weights['sd'][member]:.3f}")
