// Sequence lengths for a benchmark: a seeded distribution, or a file.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace reprise::cli {

// How `Lengths::Parse` is written, for --help.
inline constexpr char kLengthsHelp[] =
    "N | uniform:MIN-MAX | lognormal:MEDIAN,SIGMA,MIN,MAX | bimodal:A,B,SHARE_OF_A | file:PATH "
    "(one length a line)";

// Draws lengths. The same text and seed give the same lengths on every machine: the draws use the
// generator's bits and our own arithmetic, not the library's distributions.
class Lengths {
 public:
  // INVALID_ARGUMENT names the part that is wrong; NOT_FOUND a file that cannot be read.
  static absl::StatusOr<Lengths> Parse(absl::string_view text);

  // `count` lengths, each at least 1.
  std::vector<int64_t> Draw(size_t count, uint64_t seed) const;

 private:
  enum class Kind { kConstant, kUniform, kLognormal, kBimodal, kList };

  int64_t DrawOne(size_t index, std::mt19937_64& random) const;

  Kind kind_ = Kind::kConstant;
  std::vector<double> numbers_;  // the numbers of the text, or the lengths of the file
};

}  // namespace reprise::cli
