#include "runtime/device/cpu/classical/forest.h"

#include <algorithm>
#include <limits>

#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/classical/forest.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

using ops::ForestView;
using ops::LeafKind;
using ops::LeafNumber;

constexpr int kLanes = static_cast<int>(kForestLanes);
// The steps between two checks whether all walks have reached their leaves.
constexpr int32_t kStepsAtOnce = 4;

// Returns the next place, one step further where x > threshold or one of them is NaN. A place, a
// delta and the carry of a comparison are added in one instruction, of which compilers make four.
template <typename T>
HWY_INLINE int64_t Next(int64_t at, int64_t delta, T threshold, const T& x) {
#if HWY_ARCH_X86_64 && (defined(__GNUC__) || defined(__clang__))
#if HWY_TARGET == HWY_SCALAR
#define REPRISE_COMPARE "comis"
#else
#define REPRISE_COMPARE "vcomis"
#endif
  if constexpr (sizeof(T) == sizeof(float)) {
    asm(REPRISE_COMPARE "s %[x], %[t]\n\tadcq %[delta], %[at]"
        : [at] "+r"(at)
        : [t] "x"(threshold), [x] "m"(x), [delta] "r"(delta)
        : "cc");
  } else {
    asm(REPRISE_COMPARE "d %[x], %[t]\n\tadcq %[delta], %[at]"
        : [at] "+r"(at)
        : [t] "x"(threshold), [x] "m"(x), [delta] "r"(delta)
        : "cc");
  }
#undef REPRISE_COMPARE
  return at;
#else
  return at + delta + static_cast<int64_t>(!(x <= threshold));
#endif
}

// The forms of a node: where a walk goes from node `at`, by `x`, whose columns lie `stride` apart.
template <typename T, int kBits>
struct Packed {
  using Node = ops::PackedNode;
  static HWY_INLINE int64_t Step(const Node* HWY_RESTRICT nodes, int64_t at,
                                 const T* HWY_RESTRICT x, int64_t stride) {
    constexpr uint64_t kMask = (uint64_t{1} << kBits) - 1;
    const int64_t word = nodes[at].word;
    const auto column = static_cast<int64_t>(static_cast<uint64_t>(word) & kMask);
    return Next(at, word >> kBits, nodes[at].threshold, x[column * stride]);
  }
};
template <typename T>
struct Wide {
  using Node = ops::WideNode<T>;
  static HWY_INLINE int64_t Step(const Node* HWY_RESTRICT nodes, int64_t at,
                                 const T* HWY_RESTRICT x, int64_t stride) {
    const auto column = static_cast<int64_t>(nodes[at].column);
    return Next(at, int64_t{nodes[at].delta}, nodes[at].threshold, x[column * stride]);
  }
};

// Eight walks from `at`, of at most `depth` steps: lane i reads `x + i * lane_step`.
template <typename Form, typename T, int64_t kStride, int64_t kLaneStep>
HWY_INLINE void Walk(const typename Form::Node* HWY_RESTRICT nodes, const T* HWY_RESTRICT x,
                     int32_t depth, int64_t* HWY_RESTRICT at) {
  int64_t a[kLanes];
  HWY_UNROLL(8) for (int i = 0; i < kLanes; ++i) a[i] = at[i];
  const auto step = [&]() HWY_ATTR {
    HWY_UNROLL(8) for (int i = 0; i < kLanes; ++i) {
      a[i] = Form::Step(nodes, a[i], x + i * kLaneStep, kStride);
    }
  };
  for (; depth > kStepsAtOnce; depth -= kStepsAtOnce) {
    for (int32_t i = 1; i < kStepsAtOnce; ++i) step();
    int64_t moved = 0;
    HWY_UNROLL(8) for (int i = 0; i < kLanes; ++i) {
      const int64_t before = a[i];
      a[i] = Form::Step(nodes, before, x + i * kLaneStep, kStride);
      moved |= a[i] ^ before;
    }
    if (moved == 0) depth = 0;
  }
  for (; depth > 0; --depth) step();
  HWY_UNROLL(8) for (int i = 0; i < kLanes; ++i) at[i] = a[i];
}

// Adds the contribution of the leaf whose threshold is `leaf` to the sums of a row.
template <typename T>
HWY_INLINE void Give(const ForestView<T>& forest, int32_t tree, T leaf, double* HWY_RESTRICT sums) {
  if (forest.shape.kind == LeafKind::kScalar) {
    sums[forest.places[tree].target] += static_cast<double>(leaf);
    return;
  }
  const auto number = static_cast<int64_t>(LeafNumber(leaf));
  if (forest.shape.kind == LeafKind::kDense) {
    const int64_t targets = forest.shape.targets;
    const T* HWY_RESTRICT weights = forest.weights + number * targets;
    for (int64_t i = 0; i < targets; ++i) sums[i] += static_cast<double>(weights[i]);
    return;
  }
  for (int32_t i = forest.first[number]; i < forest.first[number + 1]; ++i) {
    double& sum = sums[forest.targets[i]];
    sum = ops::AddLeaf(forest.shape.sum, sum, static_cast<double>(forest.weights[i]));
  }
}

// Copies the columns of `rows` rows in the form that nodes test, a row's columns `kStride` apart.
template <typename T>
void MakeReady(const ForestView<T>& forest, const T* HWY_RESTRICT x, int64_t x_stride, int64_t rows,
               int64_t stride, T* HWY_RESTRICT to) {
  const int64_t features = forest.shape.features;
  for (int64_t row = 0; row < rows; ++row) {
    const T* HWY_RESTRICT from = x + row * x_stride;
    T* HWY_RESTRICT at = to + row;
    for (int64_t i = 0; i < features; ++i) at[i * stride] = from[i];
    if (forest.shape.mirrored) {
      at += features * stride;
      for (int64_t i = 0; i < features; ++i) at[i * stride] = -from[i];
    }
    to[forest.shape.nothing() * stride + row] = std::numeric_limits<T>::quiet_NaN();
  }
}

template <typename Form, typename T>
void WalkRows(const ForestView<T>& forest, const ForestRows<T>& args) {
  const auto* nodes = reinterpret_cast<const typename Form::Node*>(forest.nodes);
  const ops::ForestShape& shape = forest.shape;
  const int64_t row_sums = shape.chunks * shape.targets;
  double* sums = args.sums + args.chunk * shape.targets;
  const int32_t begin = forest.chunks[args.chunk], end = forest.chunks[args.chunk + 1];
  for (int64_t row = 0; row < args.rows; ++row) {
    std::fill_n(sums + row * row_sums, shape.targets, shape.complete ? 0.0 : ops::NoSum());
  }
  const int64_t groups = args.rows / kLanes, columns = shape.columns();
  for (int64_t group = 0; group < groups; ++group) {
    MakeReady(forest, args.x + group * kLanes * args.stride, args.stride, kLanes, kLanes,
              args.scratch + group * kLanes * columns);
  }
  if (groups > 0) {
    for (int32_t tree = begin; tree < end; ++tree) {
      const ops::TreePlace& place = forest.places[tree];
      for (int64_t group = 0; group < groups; ++group) {
        int64_t at[kLanes];
        std::fill_n(at, kLanes, place.root);
        Walk<Form, T, kLanes, 1>(nodes, args.scratch + group * kLanes * columns, place.depth, at);
        double* of_group = sums + group * kLanes * row_sums;
        for (int i = 0; i < kLanes; ++i) {
          Give(forest, tree, static_cast<T>(nodes[at[i]].threshold), of_group + i * row_sums);
        }
      }
    }
  }
  for (int64_t row = groups * kLanes; row < args.rows; ++row) {
    MakeReady(forest, args.x + row * args.stride, args.stride, 1, 1, args.scratch);
    for (int32_t tree = begin; tree < end; tree += kLanes) {
      const int32_t live = std::min<int32_t>(kLanes, end - tree);
      int64_t at[kLanes];
      int32_t depth = 0;
      for (int i = 0; i < kLanes; ++i) {
        const ops::TreePlace& place = forest.places[tree + std::min<int32_t>(i, live - 1)];
        at[i] = place.root;
        depth = std::max(depth, place.depth);
      }
      Walk<Form, T, 1, 0>(nodes, args.scratch, depth, at);
      for (int i = 0; i < live; ++i) {
        Give(forest, tree + i, static_cast<T>(nodes[at[i]].threshold), sums + row * row_sums);
      }
    }
  }
}

void Floats(const ForestView<float>& forest, const ForestRows<float>& rows) {
  switch (forest.shape.feature_bits) {
    case 8:
      return WalkRows<Packed<float, 8>>(forest, rows);
    case 12:
      return WalkRows<Packed<float, 12>>(forest, rows);
    case 16:
      return WalkRows<Packed<float, 16>>(forest, rows);
    default:
      return WalkRows<Wide<float>>(forest, rows);
  }
}

void Doubles(const ForestView<double>& forest, const ForestRows<double>& rows) {
  WalkRows<Wide<double>>(forest, rows);
}

}  // namespace

constexpr ForestKernels kForestKernels = {Floats, Doubles};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

const ForestKernels& ForestKernelsFor(Isa isa) {
  return REPRISE_CHOOSE_TARGET(isa, kForestKernels);
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
