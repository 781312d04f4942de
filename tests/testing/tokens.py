"""Asking a daemon for tokens over HTTP."""

import json
import urllib.error
import urllib.request

import numpy as np


def generate(daemon, model, asked, name="input_ids", **parameters):
    """Returns the answer to the prompt `asked`, which is input `name`; or the error, as JSON. Greedy unless asked
    else."""
    parameters.setdefault("temperature", 0)
    body = json.dumps({name: np.asarray(asked).tolist(), "parameters": parameters}).encode()
    request = urllib.request.Request(f"{daemon.http_url}/v2/models/{model}/generate", body)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return json.load(error)
