"""Image models beside the peers.

See tests/bench/peers/run --images. The models are made by image_models.py, with random weights.
"""

import numpy as np

from calls import compare, options


def main():
    parser = options(__doc__, "resnet18 resnet50 mobilenet_v2")
    parser.add_argument("--batch", default="1,8")
    arguments = parser.parse_args()

    def cases(_):
        for batch in map(int, arguments.batch.split(",")):
            pixels = np.random.default_rng(batch).normal(0, 1, (batch, 3, 224, 224))
            yield f"batch {batch}", [pixels.astype(np.float32)]

    compare(arguments, cases)


main()
