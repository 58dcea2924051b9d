"""Check the service's responses to 10,000 valid and invalid requests that schemathesis generates from /openapi.json.

``python -m benchmarks service_schema [--requests 10000]`` fails on a server error, and on a response that does not
match the description.
"""

import argparse
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

from service_client import Forked, free_port

BODIES = {"columns": 4, "classes": ["no", "yes"], "members": "perceptron", "n_members": 10}


def trial(port: int, examples: int, seed: int = 0) -> int:
    """Send valid and invalid requests to each operation and return their number; raise an error on a wrong response."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _trial(port, examples, seed)


def _trial(port: int, examples: int, seed: int) -> int:
    import hypothesis
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks as known

    checks = [
        not_a_server_error,
        known.status_code_conformance,
        known.content_type_conformance,
        known.response_schema_conformance,
    ]
    schema: Any = schemathesis.openapi.from_url(f"http://127.0.0.1:{port}/openapi.json")
    sent = 0
    for found in schema.get_all_operations():
        operation = found.ok()
        for mode in schemathesis.GenerationMode:
            strategy = operation.as_strategy(generation_mode=mode)

            @hypothesis.seed(seed)
            @hypothesis.settings(
                max_examples=examples,
                deadline=None,
                database=None,
                derandomize=False,
                suppress_health_check=list(hypothesis.HealthCheck),
                phases=[hypothesis.Phase.generate],
            )
            @hypothesis.given(case=strategy)
            def ask(case: Any) -> None:
                nonlocal sent
                if "name" in (case.path_parameters or {}) and case.operation.method != "put" and sent % 4:
                    case.path_parameters["name"] = "m"  # names of the existing model
                if case.operation.method == "delete":
                    case.path_parameters["name"] = "other"
                sent += 1
                case.validate_response(case.call(timeout=60), checks=checks)

            with suppress(hypothesis.errors.Unsatisfiable):  # operations without invalid requests
                ask()
    return sent


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=10_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        server = Forked(Path(place) / "folder", free_port())
        server.wait()
        server.json("PUT", "/v2/models/m", BODIES)
        sent, seed = 0, 0
        while sent < given.requests:
            sent += trial(server.port, max(1, min(100, (given.requests - sent) // 20)), seed)
            seed += 1
            print(f"{sent:,} requests", flush=True)
        server.kill()
    print(f"{sent:,} requests, no server error, every response as described")


if __name__ == "__main__":
    main()
