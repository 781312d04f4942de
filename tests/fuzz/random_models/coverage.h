// Coverage: the ops, verdicts and answers that the drawn models had.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/fuzz/random_models/draw_model.h"
#include "tests/fuzz/random_models/trial.h"

namespace reprise::fuzz {

class Coverage {
 public:
  // Counts a case; ops of models that were refused do not count.
  void Add(const TestCase& test, const Verdict& verdict);

  // Returns the share of the rows of the op table that a model file may name and that were in some
  // model.
  double ShareOfOps() const;
  std::vector<std::string> MissingOps() const;
  // "proved", "measured" and "refused" were there, with and without packing.
  std::vector<std::string> MissingVerdicts() const;
  std::string Report() const;

 private:
  std::map<std::string, int64_t> ops_;           // models, by op
  std::map<std::string, int64_t> certificates_;  // axes
  std::map<std::string, int64_t> refused_;       // models, by the first words of why
  std::map<std::string, int64_t> refusals_;      // counted by request
  int64_t models_ = 0, loaded_ = 0, packed_ = 0, cut_ = 0, by_sizes_ = 0;
  int64_t answers_ = 0, padded_ = 0, shared_ = 0, doubtful_ = 0, beyond_end_ = 0;
};

}  // namespace reprise::fuzz
