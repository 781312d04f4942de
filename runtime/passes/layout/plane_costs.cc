#include "runtime/passes/layout/plane_costs.h"

#include <algorithm>
#include <cmath>

#include "absl/algorithm/container.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/windows/conv_op.h"
#include "runtime/ops/windows/window_tiles.h"
#include "runtime/ops/windows/windows.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/layout/planes_last.h"

namespace reprise {
namespace {

constexpr double kLanes = 16;

// The cost of transposing one element between caches. All costs grow with the batch, so that
// buckets of all batches choose alike and share the packed weights.
constexpr double kTurnedElement = 0.5;

// Depthwise convolutions, channels first. A multiply-add of a vector of a row: in place, where
// windows move by more than one element, along one dim; the overhead of a vector.
constexpr double kRowStep = 1.1, kStridedRowStep = 1.85, kLineStep = 2.2, kRowVector = 5;
// Or, where that is less, several channels that are turned for it: a multiply-add, an element that
// is turned, how much it has to gain.
constexpr double kTurnedStep = 0.9, kTurnedInside = 0.43, kTurnedPays = 1.25;
// Channels last: a multiply-add, where windows move by more, the other costs of a vector.
constexpr double kLastStep = 0.8, kStridedLastStep = 1.5, kLastVector = 1;

// Products: a multiply-add of a vector at the peak, which is two a cycle.
constexpr double kStep = 0.5;
// The shares of that peak, channels first: windows as columns, a panel of kPanel at a time; small
// planes, which many maps turn into rows; one dim; windows that move by more than one element.
constexpr double kColumns = 0.88, kFewColumns = 0.78, kLine = 0.88, kStridedColumns = 0.7;
constexpr double kPanel = 48, kFewWindows = 64;
constexpr int64_t kFewestMaps = 32;
// Channels last: windows are rows, of one vector of maps, two, or more.
constexpr double kOneVector = 0.5, kTwoVectors = 0.82, kRows = 0.9;
// A vector of copied elements under windows; with fewer channels its pieces are too short.
constexpr double kCopiedVector = 1.2;
constexpr int64_t kFewestChannels = 16;

// Windows made by tiles.
constexpr double kTiled = 0.72, kTiledLast = 0.77;

// Transposed convolutions, channels first.
constexpr double kTransposed = 0.65;

// Windows over few channels, where all channels lie first. More weights than kMostFewWeights would
// stream by for each row of windows.
constexpr double kFewChannelsFirst = 0.62;
constexpr int64_t kMostFewWeights = 64 << 10;

double Vectors(double count) { return std::ceil(count / kLanes); }

bool Is(const std::vector<int64_t>& sizes, int64_t size) {
  return absl::c_all_of(sizes, [&](int64_t one) { return one == size; });
}

PlaneCosts OfEachChannel(const Shape& x, const ops::Windows& w) {
  const bool line = x.size() == 3 || x[2] == 1;
  const double planes = static_cast<double>(x[0] * x[1]);
  const double in = static_cast<double>(NumElements(x)) / planes;
  const auto out = static_cast<double>(NumElements(w.out));
  const auto taps = static_cast<double>(NumElements(w.kernel));
  const auto columns = static_cast<double>(w.out.back());
  const bool strided = !Is(w.strides, 1);
  const double step = line ? kLineStep : strided ? kStridedRowStep : kRowStep;
  const double in_place = out / columns * Vectors(columns) * (step * taps + kRowVector);
  const double turned = kTurnedStep * out * taps / kLanes + kTurnedInside * (in + out);
  const double channels = static_cast<double>(x[0]) * Vectors(static_cast<double>(x[1]));
  const double last_step = strided ? kStridedLastStep : kLastStep;
  return {.first = planes * std::min(in_place, kTurnedPays * turned),
          .last = channels * out * (last_step * taps + kLastVector)};
}

double ShareOfRows(int64_t maps) {
  const double vectors = Vectors(static_cast<double>(maps));
  return vectors == 1 ? kOneVector : vectors == 2 ? kTwoVectors : kRows;
}

// `maps`: how many one group has.
PlaneCosts OfElements(const Shape& x, int64_t maps) {
  const auto windows = static_cast<double>(NumElements(x) / x[0] / x[1]);
  const auto of_maps = static_cast<double>(maps);
  const double products = static_cast<double>(x[0] * x[1]) * kStep;
  // A rest of less than a panel goes by in vectors, half as fast.
  const double rest = std::fmod(windows, kPanel);
  const double columns =
      (windows - rest) / kLanes + 2 * Vectors(rest) * (rest < kPanel / 2 ? 1 : 0.6);
  const bool few = windows <= kFewWindows;
  const double first = few && maps >= kFewestMaps ? windows * Vectors(of_maps) / kFewColumns
                       : few                      ? Vectors(windows) * of_maps / kFewColumns
                                                  : columns * of_maps / kColumns;
  return {.first = products * first,
          .last = products * windows * Vectors(of_maps) / ShareOfRows(maps)};
}

// Costs of windows of several elements. `channels`: how many one group has.
PlaneCosts OfWindows(const Shape& x, const ops::Windows& w, int64_t channels, int64_t maps) {
  const auto windows = static_cast<double>(x[0] * NumElements(w.out));
  const double depth = static_cast<double>(x[1] * NumElements(w.kernel));
  const double products = kStep * windows * depth;
  const bool line = x.size() == 3 || x[2] == 1;
  const bool runs = line && Is(w.dilations, 1) && channels == x[1];
  // Along one dim a row's last vector may be mostly empty.
  const auto columns = static_cast<double>(w.out.back());
  const double share = line               ? kLine * columns / (Vectors(columns) * kLanes)
                       : Is(w.strides, 1) ? kFewColumns
                                          : kStridedColumns;
  return {.first = products * static_cast<double>(maps) / kLanes / share,
          .last = products * Vectors(static_cast<double>(maps)) / ShareOfRows(maps) +
                  (runs ? 0 : kCopiedVector * windows * depth / kLanes)};
}

// Costs of neighbouring windows of 3 x 3, computed by tiles of four (Winograd); nullopt where they
// are not. With channels last these have to fill vectors.
std::optional<PlaneCosts> OfTiles(const Shape& x, const ops::Windows& w, int64_t maps) {
  const auto tiles = x.size() == 4 ? ops::TilesOf(w, x[1], maps) : std::nullopt;
  if (!tiles.has_value()) return std::nullopt;
  const bool whole = ops::FillVectors(x[1], maps);
  const int64_t forms = x[0] * tiles->count() * ops::kTileForms;
  const double products = kStep * static_cast<double>(forms * x[1] * maps) / kLanes;
  return PlaneCosts{.first = products / kTiled,
                    .last = products / (whole ? kTiledLast : kTiled / 2)};
}

// Costs of windows over few channels.
PlaneCosts OfFewChannels(const Shape& x, const ops::Windows& w, int64_t maps) {
  const auto windows = static_cast<double>(x[0] * NumElements(w.out));
  const double products = kStep * windows * static_cast<double>(x[1] * NumElements(w.kernel));
  const double vectors = Vectors(static_cast<double>(maps));
  return {.first = products * static_cast<double>(maps) / kLanes / kFewChannelsFirst,
          .last = products * vectors / (vectors == 1 ? kTwoVectors : kRows),
          .to_last = true};
}

bool AreElements(const ops::Windows& w, const Shape& x) {
  return Is(w.kernel, 1) && Is(w.strides, 1) && Is(w.pad_begin, 0) &&
         std::equal(w.out.begin(), w.out.end(), x.begin() + 2);
}

absl::StatusOr<ops::Windows> WindowsOf(const Graph& graph, const Node& node) {
  const Shape& weight = *ShapeOf(graph, node.inputs[1]);
  return ops::WindowsOf(node, *ShapeOf(graph, node.inputs[0]),
                        std::vector<int64_t>(weight.begin() + 2, weight.end()));
}

// Returns the costs of a transposed convolution: one product for each tap of each element.
std::optional<PlaneCosts> TransposedCostsOf(const Graph& graph, const Node& node) {
  const Shape &x = *ShapeOf(graph, node.inputs[0]), &weight = *ShapeOf(graph, node.inputs[1]);
  const auto maps = static_cast<double>(weight[1]);
  if (FusedConvOp::From(node.attributes).group != 1 || x[1] < kFewestChannels ||
      maps < kLanes / 2) {
    return std::nullopt;
  }
  const auto elements = static_cast<double>(NumElements(x));
  const double taps = static_cast<double>(NumElements(weight) / (weight[0] * weight[1]));
  const double products = kStep * elements * taps;
  return PlaneCosts{.first = products * maps / kLanes / kTransposed,
                    .last = products * Vectors(maps) / ShareOfRows(weight[1]) +
                            kCopiedVector * elements * taps / kLanes};
}

}  // namespace

std::optional<PlaneCosts> PlaneCostsOf(const Graph& graph, const Node& node) {
  const bool transposed =
      node.op == ConvTransposeOp::kName || node.op == FusedConvTransposeOp::kName;
  if ((node.op != ConvOp::kName && node.op != FusedConvOp::kName && !transposed) ||
      FusedConvOp::From(node.attributes).layout != "first" || !IsFloat32(graph, node.inputs[0]) ||
      !IsParameter(graph, node.inputs[1])) {
    return std::nullopt;
  }
  const Shape &x = *ShapeOf(graph, node.inputs[0]), &weight = *ShapeOf(graph, node.inputs[1]);
  if (x.size() > kMostPlaneDims || NumElements(x) == 0) return std::nullopt;
  if (transposed) return TransposedCostsOf(graph, node);
  const int64_t groups = FusedConvOp::From(node.attributes).group;
  const absl::StatusOr<ops::Windows> windows = WindowsOf(graph, node);
  if (!windows.ok() || NumElements(windows->out) == 0) return std::nullopt;
  if (groups > 1 && groups == x[1] && weight[0] == x[1]) return OfEachChannel(x, *windows);
  const int64_t maps = weight[0] / groups;
  if (AreElements(*windows, x)) return OfElements(x, maps);
  if (groups == 1) {
    if (const std::optional<PlaneCosts> tiles = OfTiles(x, *windows, maps)) return tiles;
  }
  const bool few = x[1] < kFewestChannels && node.input(FusedConvOp::kResidual) == kNone &&
                   NumElements(weight) <= kMostFewWeights;
  if (groups == 1 && few) return OfFewChannels(x, *windows, maps);
  if (weight[1] < kFewestChannels) return std::nullopt;
  return OfWindows(x, *windows, weight[1], maps);
}

bool IsOfElements(const Graph& graph, const Node& node) {
  const absl::StatusOr<ops::Windows> windows = WindowsOf(graph, node);
  return windows.ok() && AreElements(*windows, *ShapeOf(graph, node.inputs[0]));
}

double TurningCost(const Shape& shape) {
  if (AreOfOneElement(shape) || shape[1] == 1) return 0;
  return kTurnedElement * static_cast<double>(NumElements(shape));
}

}  // namespace reprise
