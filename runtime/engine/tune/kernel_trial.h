// KernelTrial: which of a few kernels is the fastest, from times that are taken in turns.
//
// Numbers only. A kernel counts with its best time: every disturbance makes a run longer. The first
// kernel is the one to beat: another is taken only where it gains clearly more than times waver.
//
// Threads: one caller at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace reprise {

class KernelTrial {
 public:
  // How many times as fast as the first a kernel must be to be taken.
  static constexpr double kWorthwhile = 1.03;
  // Beyond this many times the best one's time a kernel is dropped after the first round.
  static constexpr double kHopeless = 1.3;

  // At least one contender.
  explicit KernelTrial(std::vector<std::string> kernels);

  // Makes the contender have to gain more than kWorthwhile.
  void Demand(size_t contender, double worthwhile) { runs_[contender].worthwhile = worthwhile; }

  // Returns whether the contender exists, and has not lost yet.
  bool Wants(size_t contender) const;
  void Add(size_t contender, int64_t ns);
  // Ends the round: every contender had a turn.
  void EndRound();

  // Returns the one to take; the first where nothing was timed.
  size_t Best() const;
  size_t size() const { return kernels_.size(); }
  const std::string& kernel(size_t contender) const { return kernels_[contender]; }
  // Returns the best time so far; 0 without one.
  int64_t NsOf(size_t contender) const { return runs_[contender].ns; }

 private:
  struct Runs {
    int64_t ns = 0;
    double worthwhile = kWorthwhile;
    bool lost = false;
  };
  const std::vector<std::string> kernels_;
  std::vector<Runs> runs_;
};

}  // namespace reprise
