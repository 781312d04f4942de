"""Writes features.h: features of a signal by numpy (testing/speech/whisper.py), which log_mel_test.cc compares with.

    PYTHONPATH=tests python tests/server/speech/make_features.py > tests/server/speech/features.h
"""

import numpy as np

from testing.speech import whisper


def signal(count):
    """Makes the signal of log_mel_test.cc: two tones, one of them in bursts, and noise of a generator of its own."""
    t = np.arange(count, dtype=np.float64) / whisper.RATE
    noise, state = np.zeros(count), 1
    for i in range(count):
        state = (state * 1103515245 + 12345) % 2 ** 31
        noise[i] = state / 2 ** 31 - 0.5
    burst = np.arange(count) % 8000 < 4000
    return (0.4 * np.sin(2 * np.pi * 440 * t) + 0.2 * burst * np.sin(2 * np.pi * 3000.5 * t) + 0.01 * noise).astype(
        np.float32)


# Seconds of a window, mels, samples of sound: a filled window, a part of one, and some milliseconds.
CASES = [(30, 80, 30 * 16000), (30, 128, 50000), (30, 80, 100), (2, 10, 31900)]

print("// Made by make_features.py: do not edit. Every 401st feature of each case.")
print("#pragma once\n\n#include <vector>\n\nnamespace reprise {\n")
print("struct FeatureCase {\n  int seconds, mels, samples;\n  std::vector<float> features;\n};\n")
print("inline const std::vector<FeatureCase>& FeatureCases() {")
print("  static const auto& cases = *new std::vector<FeatureCase>{")
for seconds, mels, samples in CASES:
    found = whisper.features(signal(samples), whisper.Shape(seconds, mels)).ravel()[::401]
    rows = [", ".join(f"{one:.7f}f" for one in found[i:i + 8]) for i in range(0, len(found), 8)]
    print(f"      {{{seconds}, {mels}, {samples},\n       {{" + ",\n        ".join(rows) + "}},")
print("  };\n  return cases;\n}\n\n}  // namespace reprise")
