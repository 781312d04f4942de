// Axis rules of layers: recurrences, windows, attention.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/ops/axis/axis_rules.h"

namespace reprise::ops {
namespace {

void KeepWithoutPadding(AxisFlowValue& flow) {
  for (Positions& positions : flow.along) positions.padding.reset();
}

}  // namespace

// Takes the scale of the whole tensor from its range, which always holds 0.
void DynamicQuantizeAxis(AxisContext& context) {
  AxisFlowValue flow = context.input(0);
  for (const Positions& positions : flow.along) {
    if (positions.padding != 0) {
      context.Mix("takes its scale from the range of all elements over");
    }
  }
  KeepWithoutPadding(flow);
  context.Set(0, std::move(flow));
  context.Set(1, {});
  context.Set(2, {});
}

// Requests are the segments of a packed replay, where neither padding nor another request is in the
// range. Lines share a scale with their request alone.
void SegmentDynamicQuantizeAxis(AxisContext& context) {
  constexpr size_t kSegments = 1;
  if (context.has_input(kSegments)) return UnknownAxis(context);
  AxisFlowValue flow = {.along = context.input(0).along};
  KeepWithoutPadding(flow);
  AxisFlowValue lines = flow;
  std::erase_if(lines.along,
                [&](const Positions& positions) { return positions.dim == context.rank(0) - 1; });
  context.Set(0, std::move(flow));
  context.Set(1, lines);
  context.Set(2, std::move(lines));
}

// Products and a softmax tell what it does (Canonicalize). Rows of queries are there in the result.
void AttentionAxis(AxisContext& context) {
  if (!context.AnyPositions()) return;
  context.Doubt("attends over");
  if (context.output_rank() != context.rank(0)) return;
  AxisFlowValue rows;
  for (Positions positions : context.input(0).along) {
    if (context.output_shape()[positions.dim] != context.shape(0)[positions.dim]) continue;
    positions.padding.reset();
    rows.along.push_back(positions);
  }
  context.Set(0, std::move(rows));
}

// [sequence, batch, channels] in, [sequence, directions, batch, hidden] out; with `layout` 1
// [batch, sequence, channels] in, [batch, sequence, directions, hidden] out.
void RecurrentAxis(AxisContext& context) {
  const bool batch_first = context.attributes().Int("layout", 0) != 0;
  const int64_t time = batch_first ? 1 : 0;
  const std::string direction = context.attributes().String("direction", "forward");
  const bool has_lengths = context.has_input(4);
  AxisFlowValue states, last;
  for (const Positions& positions : context.input(0).along) {
    if (positions.dim == 2) {
      context.Mix("mixes its channels, which are the positions of");
      continue;
    }
    if (positions.dim != time) {
      Positions at = {.inner = positions.inner,
                      .moved = positions.moved,
                      .repeated = positions.repeated,
                      .extent = positions.extent};
      at.dim = batch_first ? 0 : 2;
      states.along.push_back(at);
      at.dim = batch_first ? 0 : 1;
      last.along.push_back(at);
      continue;
    }
    const bool own_lengths = has_lengths && context.input(4).counts == positions.extent &&
                             positions.inner == 1 && !positions.moved && !positions.repeated;
    if (own_lengths) {
      // Each row ends where its request does, whatever the direction.
    } else if (has_lengths) {
      context.Doubt("runs as far as its lengths say over");
    } else if (direction != "forward") {
      context.Mix(absl::StrCat("runs from the end, where the padding is (", direction, "), over"));
    } else if (context.is_batch()) {
      context.Mix("runs over");
    } else if (context.IsRead(1) || context.IsRead(2)) {
      context.Mix("ends in a state that has seen all of");
    } else if (positions.moved || positions.repeated) {
      context.Doubt("runs over");
    }
    // Behind its length a row's states are zeros.
    states.along.push_back({.dim = batch_first ? 1 : 0,
                            .padding = own_lengths ? PaddingValue(0) : std::nullopt,
                            .moved = positions.moved,
                            .repeated = positions.repeated,
                            .extent = positions.extent});
  }
  for (size_t i = 1; i < context.num_inputs(); ++i) {
    const bool of_rows = i == 4 || i == 5 || i == 6;  // lengths and states
    if (!of_rows && !context.input(i).along.empty()) {
      context.Doubt("takes weights that follow the positions of");
    }
  }
  context.Set(0, std::move(states));
  context.Set(1, last);
  context.Set(2, std::move(last));
}

namespace {

// The value that windows take for no element at all.
enum class Nothing { kZero, kLowest, kNone };

// The windows of a node along one dim.
struct LineOfWindows {
  int64_t stride = 1, before = 0, behind = 0;
  int64_t reach = 0;  // distance between a window's first and last elements
  bool rounds_up = false;

  bool IsElementwise() const { return reach == 0 && stride == 1 && before == 0 && behind == 0; }
  // Returns whether a request's last window may hold elements past its end.
  bool LeavesEnd() const { return behind > 0 || (rounds_up && stride > 1); }
  Extent Through(const Extent& extent) const {
    const int64_t added = before + behind - reach - 1 + stride;
    if (!rounds_up) return extent.Through(added, stride);
    // No window begins past the end.
    return extent.Through(std::min(added + stride - 1, before - 1 + stride), stride);
  }
};

bool IsNothing(const AxisContext& context, const Positions& positions, Nothing nothing) {
  const PaddingValue& padding = positions.padding;
  switch (nothing) {
    case Nothing::kZero:
      return padding == 0;
    case Nothing::kLowest:
      return padding == -kInfinity || (padding == 0 && context.input(0).nonnegative);
    case Nothing::kNone:
      return false;
  }
  return false;
}

// Returns the positions of the windows along `line` of `positions`.
Positions ThroughWindows(AxisContext& context, const Positions& positions,
                         const LineOfWindows& line, bool explicit_pads, Nothing nothing) {
  Positions out = positions;
  out.padding.reset();
  if (line.IsElementwise() && explicit_pads) return out;
  out.parts.clear();
  out.compact = false;
  if (context.is_batch()) {
    context.Look("reads windows over", positions);
    out.moved = true;
    return out;
  }
  const bool same_place = positions.inner == 1 && !positions.repeated && !positions.moved;
  const bool known = same_place && explicit_pads && line.before >= 0 && line.behind >= 0;
  const std::string in_strides = absl::StrCat("reads windows in strides of ", line.stride,
                                              ", the last of which reaches past the end of");
  if (!known) {
    if (line.stride != 1) {
      context.Look(in_strides, positions);
    } else {
      context.Doubt("reads windows over the elements of");
    }
    out.moved = true;
    return out;
  }
  // Weights times the zeros past the end.
  const bool by_infinite = nothing == Nothing::kZero && context.MayBeInfinite(1);
  if (line.LeavesEnd() && by_infinite) context.Doubt(kTakesOut);
  if (line.LeavesEnd() && !IsNothing(context, positions, nothing)) {
    const int64_t ahead = line.reach - line.before;
    const std::string how =
        line.stride != 1 ? in_strides
                         : absl::StrCat("reads ", ahead, ahead == 1 ? " position" : " positions",
                                        " ahead, past the end of");
    context.Look(how, positions);
  }
  out.extent = line.Through(positions.extent).AtMultiplesOf(context.step());
  if (!context.OutputHas(out.extent, positions.dim)) {
    context.Doubt("reads windows over the elements of");
    out.moved = true;
  }
  return out;
}

// Windows over [batch, channels, spatial...].
void WindowsAxis(AxisContext& context, Nothing nothing) {
  const Attributes& attributes = context.attributes();
  const int64_t spatial = context.rank(0) - 2;
  if (spatial < 1) return UnknownAxis(context);
  const std::vector<int64_t> ones(spatial, 1);
  const std::vector<int64_t> strides = attributes.Ints("strides", ones);
  const std::vector<int64_t> dilations = attributes.Ints("dilations", ones);
  const std::string auto_pad = attributes.String("auto_pad", "NOTSET");
  const std::vector<int64_t> no_pads(2 * spatial, 0);
  const std::vector<int64_t> pads =
      auto_pad == "VALID" ? no_pads : attributes.Ints("pads", no_pads);
  const std::vector<int64_t> weights_kernel =
      context.has_input(1) && context.rank(1) == context.rank(0)
          ? std::vector<int64_t>(context.shape(1).begin() + 2, context.shape(1).end())
          : ones;
  const std::vector<int64_t> kernel = attributes.Ints("kernel_shape", weights_kernel);
  const bool whole = static_cast<int64_t>(strides.size()) == spatial &&
                     static_cast<int64_t>(dilations.size()) == spatial &&
                     static_cast<int64_t>(pads.size()) == 2 * spatial &&
                     static_cast<int64_t>(kernel.size()) == spatial;
  if (!whole) return UnknownAxis(context);
  const bool explicit_pads = auto_pad == "NOTSET" || auto_pad == "VALID";
  AxisFlowValue flow;
  for (const Positions& positions : context.input(0).along) {
    const int64_t d = positions.dim - 2;
    if (positions.dim == 1) {
      context.Doubt("mixes its channels, which follow the positions of");
    } else if (d < 0) {
      flow.along.push_back(positions);
      flow.along.back().padding.reset();
    } else {
      const bool rounds_up = attributes.Int("ceil_mode", 0) != 0 && strides[d] != 1;
      // Where averages round up, elements after the pads count for some of them.
      const bool known = explicit_pads && (!rounds_up || nothing == Nothing::kLowest);
      const LineOfWindows line = {.stride = strides[d],
                                  .before = pads[d],
                                  .behind = pads[spatial + d],
                                  .reach = (kernel[d] - 1) * dilations[d],
                                  .rounds_up = rounds_up};
      flow.along.push_back(ThroughWindows(context, positions, line, known, nothing));
    }
  }
  for (size_t o = 0; o < context.node().outputs.size(); ++o) context.Set(o, flow);
}

}  // namespace

void ConvAxis(AxisContext& context) {
  // Kernels that follow the data, or a bias with positions.
  for (size_t i = 1; i < context.num_inputs(); ++i) {
    if (!context.input(i).along.empty()) return UnknownAxis(context);
  }
  WindowsAxis(context, Nothing::kZero);
}
// Spreads an element over a window, the result begins and ends where attributes say: a request's
// last positions meet its padding.
void ConvTransposeAxis(AxisContext& context) {
  for (size_t i = 1; i < context.num_inputs(); ++i) {
    if (!context.input(i).along.empty()) return UnknownAxis(context);
  }
  AxisFlowValue flow;
  for (const Positions& positions : context.input(0).along) {
    if (positions.dim == 1) {
      context.Doubt("mixes its channels, which follow the positions of");
      continue;
    }
    flow.along.push_back(positions);
    flow.along.back().padding.reset();
    if (positions.dim == 0) continue;
    context.Doubt("spreads over windows the elements of");
    flow.along.back().moved = true;
  }
  context.Set(0, std::move(flow));
}
void AveragePoolAxis(AxisContext& context) {
  // Zeros are averaged with; elements that are not there only where the node says so.
  const bool counts = context.attributes().Int("count_include_pad", 0) != 0;
  WindowsAxis(context, counts ? Nothing::kZero : Nothing::kNone);
}
// Elements that are not there count as zeros do.
void LpPoolAxis(AxisContext& context) { WindowsAxis(context, Nothing::kZero); }
void MaxPoolAxis(AxisContext& context) {
  // Its second result counts over all dims.
  if (context.IsRead(1) && !context.input(0).along.empty()) {
    context.Doubt("counts where the largest lie over all positions of");
  }
  WindowsAxis(context, Nothing::kLowest);
}

void GlobalPoolAxis(AxisContext& context) {
  AxisFlowValue flow;
  for (const Positions& positions : context.input(0).along) {
    if (positions.dim < 2) {
      flow.along.push_back(positions);
      flow.along.back().padding.reset();
      continue;
    }
    const bool fine =
        context.node().op == "GlobalMaxPool" && IsNothing(context, positions, Nothing::kLowest);
    if (!fine) context.Mix("pools over");
  }
  context.Set(0, std::move(flow));
}
}  // namespace reprise::ops
