"""Weight existing models of any library online, without refitting them."""

from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler

from bayesvote import BayesianEnsembleClassifier, load_dataset, prequential

data = load_dataset("splice")
y = data.y
old = slice(0, 300)  # all that the models have seen
X = StandardScaler().fit(data.X[old]).transform(data.X)  # scaled by what these rows tell

fitted = [
    LogisticRegression().fit(X[old], y[old]),
    GaussianNB().fit(X[old], y[old]),
    RandomForestClassifier(50, random_state=0).fit(X[old], y[old]),
]
for member in fitted:
    print(f"{type(member).__name__}: error {1 - member.score(X[300:], y[300:]):.3f}")

blend = BayesianEnsembleClassifier(fitted)
print(f"weighted online: error {prequential(blend, X[300:], y[300:]).error:.3f}")
weights = blend.weights_
for place, member in enumerate(fitted):
    print(f"{type(member).__name__}: weight {weights['mean'][place]:.3f} +- {weights['sd'][place]:.3f}")
