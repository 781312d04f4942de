"""Steps of decoders beside the peers: one new token, the cache comes with the request.

See tests/bench/peers/run --decoders. The models are made by decoder_models.py, with random weights.
"""

import numpy as np

from calls import PEERS, compare, options
from decoder_models import MODELS


def main():
    parser = options(__doc__, " ".join(MODELS))
    parser.add_argument("--calls", default="1x31 1x511 8x127", help="rows x positions that are cached")
    arguments = parser.parse_args()

    def cases(model):
        shape = MODELS[model]
        for call in arguments.calls.split():
            rows, past = map(int, call.split("x"))
            rng = np.random.default_rng(past)
            cache = (rows, shape.kv_heads, past, shape.size)
            yield f"{rows} x past {past}", [
                rng.integers(0, shape.vocabulary, (rows, 1)),
                np.ones((rows, past + 1), np.int64),
                *(rng.standard_normal(cache, np.float32) for _ in range(2 * shape.layers))]

    # OpenVINO takes the past of GroupQueryAttention for a buffer with room for more.
    compare(arguments, cases, lambda model: PEERS[:1] if MODELS[model].fused else PEERS)


main()
