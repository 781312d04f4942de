"""Whether the sides agree with the weights: onnxruntime with the same weights as float32."""

import numpy as np

from sides import Unavailable
from testing.decoders import Stepper

NEAR = 1e-3  # two best scores that are nearer may change places
AGREE = 0.97  # of the positions, for sides that round activations


def judge_greedy(made, expected, scores):
    """Returns the faults of `made`, and at how many positions the scores were compared; "" if none."""
    for position, (ours, theirs) in enumerate(zip(made, expected)):
        if ours != theirs:
            best = np.sort(scores[position])[-2:]
            gap = float(best[1] - best[0])
            return ("" if gap <= NEAR else
                    f"token {position} is {ours} and not {theirs}, whose score is {gap:.4g} above the next",
                    position)
    if len(made) != len(expected):
        return f"{len(made)} tokens and not {len(expected)}", len(made)
    return "", len(made)


def check(folder, ours, peers, prompts, tokens, peer_tokens):
    """Prints the comparisons; returns whether all of them are within their bounds."""
    stepper = Stepper(str(folder / "float32.onnx"))
    truths = [stepper.greedy(prompt, tokens) for prompt in prompts]
    del stepper
    good, compared = True, 0
    for prompt, (expected, scores) in zip(prompts, truths):
        wrong, positions = judge_greedy(ours.greedy(prompt, tokens), expected, scores)
        compared += positions
        if wrong:
            good = False
            print(f"reprise differs from onnxruntime on float32 weights: {wrong}")
    if good:
        print(f"reprise: the greedy tokens of {len(prompts)} prompts are onnxruntime's on float32 weights, "
              f"{compared} of {len(prompts) * tokens} before a near tie")
    for peer in peers:
        try:
            same = total = 0
            for prompt, (expected, _) in zip(prompts, truths):
                best = peer.forced(prompt, expected[:peer_tokens])
                same += sum(a == b for a, b in zip(best, expected))
                total += len(best)
        except Unavailable as error:
            print(f"{peer.name}: forced tokens could not be compared: {error}")
            continue
        share = same / total
        good &= share >= AGREE
        print(f"{peer.name}: with forced tokens its best one is the same at {same} of {total} positions, "
              f"{share:.1%}" + ("" if share >= AGREE else f", which is below {AGREE:.0%}"))
    return good
