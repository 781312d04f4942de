// Dynamicity: how much the shapes of a model's requests vary, and along which axis.
//
// The measure is the number of shapes that count: 2^H, where H is the entropy of the shapes in
// bits. n shapes that are equally frequent count as n; one that is seen once in a thousand requests
// hardly counts. The verdict:
//
//   little  at most 4 shapes count: a recipe of each would do
//   some    at most 32 (as `reprise.max_exact` keeps); or fewer, but more than 5% of the requests
//           found no ready recipe that could serve them
//   a lot   more: only buckets bound the number of recipes; or more than 15% of the requests found
//           none, of more than 4 shapes
//
// Numbers only. Threads: free functions of their arguments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/bucket/shape_recorder.h"

namespace reprise {

enum class DynamicityVerdict { kLittle, kSome, kALot };
const char* DynamicityVerdictName(DynamicityVerdict verdict);  // "little", "some", "a lot"

// The last full window of requests against the one before it.
enum class DynamicityTrend {
  kUnknown,    // there are no two windows of enough requests yet
  kSteady,     // none of the others
  kGrowing,    // a quarter more shapes count
  kShrinking,  // a fifth fewer
  kMoving,     // equally many, but others: sizes along an axis differ by more than chance explains
};
const char* DynamicityTrendName(DynamicityTrend trend);  // "steady", "growing", ...

// One column of the shapes.
struct AxisDynamicity {
  double entropy_bits = 0;  // its sizes' alone
  int64_t distinct = 0;     // sizes in the table
  int64_t least = 0, most = 0;
  double moved =
      0;  // distance of its sizes in the last window to those in the one before, in [0, 1]
};

struct Dynamicity {
  double entropy_bits = 0;  // whole shapes'
  double shapes_that_count = 0;
  double outside_share = 0, larger_share = 0, fresh_share = 0;  // parts of the requests judged
  DynamicityVerdict verdict = DynamicityVerdict::kLittle;
  DynamicityTrend trend = DynamicityTrend::kUnknown;
  std::vector<AxisDynamicity> axes;  // one a column
  int cause = -1;                    // the column whose sizes vary most; -1: none varies
};

inline constexpr double kLittleShapes = 4;
inline constexpr double kSomeShapes = 32;
inline constexpr double kOutsideShare = 0.05;
inline constexpr double kMuchOutsideShare = 0.15;

// Judges the shapes. `recent`: of the recent requests; otherwise of all since the start.
Dynamicity JudgeShapes(const ShapeTable& table, bool recent);

}  // namespace reprise
