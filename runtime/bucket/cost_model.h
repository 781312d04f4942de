// ReplayCost: the time that a replay takes, learnt from replays.
//
// A replay of `rows` rows at a row size of x (the product of the padded sizes of the other axes)
// takes about overhead + rows * g(x): kernels compute live rows only. g is measured at the sizes of
// the buckets that ran and interpolated between them; it never falls. Until something was measured
// an element costs the same everywhere, which makes the cheapest boundaries those with least
// padding, and a replay costs as much as some elements more. Few replays of a size count less than
// the line through all of them.
//
//   ReplayCost cost;
//   cost.Record(4, 128, took_ns);
//   cost.Ns(3, 100);
//
// Threads: not safe; the caller guards it.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace reprise {

class ReplayCost {
 public:
  // Records one replay: rows that clients sent, padded elements of a row, time.
  void Record(int64_t rows, int64_t row_size, int64_t ns);
  // Records one capture, from the miss to the published recipe.
  void RecordCapture(int64_t ns);

  // Returns the expected time of a replay.
  double Ns(int64_t rows, int64_t row_size) const;
  // Returns the cost of a row beyond the overhead.
  double RowNs(int64_t row_size) const;
  double overhead_ns() const;
  // Returns the number of replays measured, faded or not.
  int64_t replays() const { return replays_; }
  // Returns the expected cost of one more recipe.
  double CaptureNs() const;

  struct Point {
    int64_t row_size = 0;
    double row_ns = 0;
    double replays = 0;  // weight after it
  };
  // Returns the curve g at the sizes measured, ascending.
  std::vector<Point> Curve() const;

  // The measurements, to be kept: decayed sums over the replays of one row size.
  struct Sample {
    int64_t row_size = 0;
    double weight = 0, rows = 0, rows2 = 0, ns = 0, rows_ns = 0;
  };
  std::vector<Sample> Samples() const;
  // Replaces the measurements by an earlier model's; samples that no replays can have given are
  // left out.
  void Restore(const std::vector<Sample>& samples);

 private:
  // Decayed sums over the replays of one row size.
  struct Sums {
    double weight = 0, rows = 0, rows2 = 0, ns = 0, rows_ns = 0;
    double mean_ns() const { return weight > 0 ? ns / weight : 0; }
  };
  void Fit();

  std::map<int64_t, Sums> sums_;
  double overhead_ns_ = 0;
  std::vector<Point> curve_;  // isotonic
  int64_t replays_ = 0;
  int64_t since_fit_ = 0;
  double capture_ns_ = 0;
  int64_t captures_ = 0;
};

}  // namespace reprise
