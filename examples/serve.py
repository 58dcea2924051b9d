"""Run the learning service: predict loans when they arrive, and label them when their outcome is known.

The script starts ``bayesvote serve`` in a temporary folder and sends HTTP requests with the standard library only. In a
terminal it runs slowly, so that you can watch the live page, and the service runs until Ctrl-C.
"""

import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from http.client import HTTPConnection
from typing import Any

import numpy as np

from bayesvote import load_dataset

LATE, STEP = 100, 10  # rows until a label is known, and rows of a request
WATCHED = sys.stdout.isatty()


def main() -> None:
    """Start the service, predict and label."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "bayesvote", "serve", folder, "--port", "0"]  # any free port
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
            # Read its log all the time, because a full pipe would stop it.
            log = threading.Thread(target=deque, args=(server.stderr or (), 0), daemon=True)
            try:
                address = address_of(server)
                log.start()
                stream(address)
                if WATCHED:
                    print("The page stays until Ctrl-C.")
                    server.wait()
            except KeyboardInterrupt:
                pass
            finally:
                server.terminate()
                server.wait()
                if log.ident:
                    log.join()


def address_of(server: "subprocess.Popen[str]") -> str:
    """Return the address of the service, from its log."""
    for line in server.stderr or ():
        if found := re.search(r'address="http://([^/]+)/"', line):
            return found[1]
        print(line, end="")
    raise SystemExit("The service did not start.")


def stream(address: str) -> None:
    """Predict rows as they arrive, and label each a hundred rows later."""
    connection = HTTPConnection(address, timeout=60)

    def ask(method: str, path: str, body: Any) -> Any:
        connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        found = json.loads(answer.read())
        if answer.status >= 400:
            raise SystemExit(f"{method} {path}: {found['error']}")
        return found

    data = load_dataset("german")
    names = [f"x{k}" for k in range(data.X.shape[1])]
    rows = [dict(zip(names, row, strict=True)) for row in np.asarray(data.X).tolist()]
    labels = ["bad" if risk else "good" for risk in data.y]
    ask("PUT", "/v2/models/loans", {"columns": names, "classes": ["bad", "good"]})
    print(f"Watch it at http://{address}/", flush=True)
    mistakes = 0
    for k in range(0, len(rows) + LATE, STEP):
        if new := rows[k : k + STEP]:
            ids = [f"loan {k + place}" for place in range(len(new))]
            wanted = [{"name": "label"}, {"name": "probability"}]
            ask("POST", "/v2/models/loans/infer", {"rows": new, "ids": ids, "outputs": wanted})
        if k >= LATE:
            known = range(k - LATE, min(k - LATE + STEP, len(rows)))
            late = {"ids": [f"loan {place}" for place in known], "labels": [labels[place] for place in known]}
            mistakes += ask("POST", "/v2/models/loans/label", late)["mistakes"]
        if WATCHED:
            time.sleep(0.5)
    print(f"{mistakes / len(rows):.3f} of {len(rows):,} loans were predicted wrongly, each label {LATE} loans late.")
    connection.close()


if __name__ == "__main__":
    main()
