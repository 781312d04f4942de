// A small model of one kind, and the expected findings about its padding.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "tests/runtime/engine/load/padding_cases/parts.h"

namespace reprise {

// `build` goes from the inputs (see AddInputs) to `y`.
struct PaddingCase {
  const char* name;
  void (*build)(ModelBuilder&);
  int64_t vocabulary = kVocabulary;
  bool named_axes = true;
  bool batch;            // may be padded
  bool sequence;         // may be padded
  int64_t longest = 60;  // the model takes no longer requests
  int64_t largest_bucket = 512;
  bool packs = false;
  std::string words = "";  // part of the certificate of the sequence
};

inline void PrintTo(const PaddingCase& c, std::ostream* out) { *out << c.name; }

}  // namespace reprise
