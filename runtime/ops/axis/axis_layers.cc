// Axis rules of layers: normalisations, recurrences, windows, attention.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/ops/axis/axis_rules.h"
#include "runtime/ops/reduce/layer_norm_op.h"

namespace reprise::ops {
namespace {

void KeepWithoutPadding(AxisFlowValue& flow) {
  for (Positions& positions : flow.along) positions.padding = PaddingValue::Unknown();
}

// Normalisations over the dims from `first` on.
void NormFrom(AxisContext& context, int64_t first) {
  AxisFlowValue flow;
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    for (const Positions& positions : context.input(i).along) {
      // Other operands of the same rank are added to the first one.
      const bool added = context.rank(i) == context.rank(0);
      if (!added) {
        context.Doubt("takes weights that follow the positions of");
        continue;
      }
      if (positions.dim >= first) {
        context.Mix("takes statistics over", /*guarded=*/false);
      }
      if (flow.At(positions.dim) == nullptr) flow.along.push_back(positions);
    }
  }
  KeepWithoutPadding(flow);
  for (size_t o = 0; o < context.node().outputs.size(); ++o) {
    if (!context.has_output(o)) continue;
    AxisFlowValue one = flow;
    std::erase_if(one.along, [&](const Positions& positions) {
      return positions.dim >= context.output_rank(o) ||
             context.output_shape(o)[positions.dim] != context.shape(0)[positions.dim];
    });
    context.Set(o, std::move(one));
  }
}

}  // namespace

void LastDimsNormAxis(AxisContext& context) {
  NormFrom(context, context.Dim(LayerNormalizationOp::From(context.attributes()).axis));
}
// Statistics of a sample's channel, over all later dims.
void InstanceNormAxis(AxisContext& context) { NormFrom(context, 2); }
void GroupNormAxis(AxisContext& context) { NormFrom(context, 1); }

void BatchNormAxis(AxisContext& context) {
  AxisFlowValue flow = context.input(0);
  KeepWithoutPadding(flow);
  if (flow.At(1) != nullptr) context.Doubt("takes weights that follow the positions of");
  if (context.attributes().Int("training_mode", 0) != 0 && context.AnyPositions()) {
    context.Mix("takes statistics over", false);
  }
  context.Set(0, std::move(flow));
}

// Each place of a sample by itself, over its channels.
void LocalNormAxis(AxisContext& context) {
  AxisFlowValue flow = context.input(0);
  KeepWithoutPadding(flow);
  if (flow.At(1) != nullptr) context.Doubt("adds up squares over the channels, which are those of");
  context.Set(0, std::move(flow));
}

// Each row of the first operand by itself: its result is made of all elements of the row, and of no
// other row.
void RowsAxis(AxisContext& context) {
  AxisFlowValue flow = context.input(0);
  for (const Positions& positions : context.input(0).along) {
    if (positions.dim != 0) context.Mix("looks at all elements of", /*guarded=*/false);
  }
  std::erase_if(flow.along, [](const Positions& positions) { return positions.dim != 0; });
  for (size_t i = 1; i < context.num_inputs(); ++i) {
    if (!context.input(i).along.empty()) {
      context.Doubt("takes weights that follow the positions of");
    }
  }
  KeepWithoutPadding(flow);
  for (size_t o = 0; o < context.node().outputs.size(); ++o) {
    if (context.has_output(o)) context.Set(o, flow);
  }
}

// Each element by itself, beside a list that has no positions.
void CategoriesAxis(AxisContext& context) {
  AxisFlowValue flow = context.input(0);
  if (!context.input(1).along.empty()) context.Doubt("takes weights that follow the positions of");
  KeepWithoutPadding(flow);
  context.Set(0, std::move(flow));
}

// The scale of the whole tensor comes from its range, which always holds 0.
void DynamicQuantizeAxis(AxisContext& context) {
  AxisFlowValue flow = context.input(0);
  for (const Positions& positions : flow.along) {
    if (!positions.padding.Is(0)) {
      context.Mix("takes its scale from the range of all elements over", /*guarded=*/false);
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

// A mask may be an operand, or later positions may be left out: of the keys. Rows of queries
// are there in the result, and no mask acts on rows past the end.
void AttentionAxis(AxisContext& context) {
  if (!context.AnyPositions()) return;
  const Attributes& attributes = context.attributes();
  const bool looks_back =
      attributes.Int("is_causal", 0) != 0 || attributes.Int("unidirectional", 0) != 0;
  const bool over_batch_alone = context.input(0).along.size() == 1 &&
                                context.input(0).along[0].dim == 0 && context.rank(0) >= 3;
  if (looks_back || over_batch_alone || context.AnyGuarded() || context.num_inputs() > 3) {
    context.Doubt("attends over");
  } else {
    context.Mix("attends over", false);
  }
  if (context.output_rank() != context.rank(0)) return;
  AxisFlowValue rows;
  for (Positions positions : context.input(0).along) {
    if (context.output_shape()[positions.dim] != context.shape(0)[positions.dim]) continue;
    positions.padding = PaddingValue::Unknown();
    positions.guarded = false;
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
      context.Mix("mixes its channels, which are the positions of", positions.guarded);
      continue;
    }
    if (positions.dim != time) {
      Positions at = {.inner = positions.inner,
                      .guarded = positions.guarded,
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
      context.Mix(absl::StrCat("runs from the end, where the padding is (", direction, "), over"),
                  false);
    } else if (context.is_batch()) {
      context.Mix("runs over", false);
    } else if (context.IsRead(1) || context.IsRead(2)) {
      context.Mix("ends in a state that has seen all of", positions.guarded);
    } else if (positions.moved || positions.repeated) {
      context.Doubt("runs over");
    }
    // Behind its length a row's states are zeros.
    states.along.push_back(
        {.dim = batch_first ? 1 : 0,
         .padding = own_lengths ? PaddingValue::Constant(0) : PaddingValue::Unknown(),
         .guarded = positions.guarded || (has_lengths && !own_lengths),
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
  // A request's last window may hold elements past its end.
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
      return padding.Is(0);
    case Nothing::kLowest:
      return padding.Is(-std::numeric_limits<double>::infinity()) ||
             (padding.Is(0) && context.input(0).nonnegative);
    case Nothing::kNone:
      return false;
  }
  return false;
}

// Returns the positions of the windows along `line` of `positions`.
Positions ThroughWindows(AxisContext& context, const Positions& positions,
                         const LineOfWindows& line, bool explicit_pads, Nothing nothing) {
  Positions out = positions;
  out.padding = PaddingValue::Unknown();
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
  if (line.LeavesEnd() && !IsNothing(context, positions, nothing)) {
    const int64_t ahead = line.reach - line.before;
    const std::string how =
        line.stride != 1 ? in_strides
                         : absl::StrCat("reads ", ahead, ahead == 1 ? " position" : " positions",
                                        " ahead, past the end of");
    // Numbers of clients may lie below the padding under a mask, which is measured in vain.
    const bool below = nothing == Nothing::kLowest && context.input(0).may_be_low;
    below ? context.SeeLength(how) : context.Look(how, positions);
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
      flow.along.back().padding = PaddingValue::Unknown();
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
// An element is spread over a window, the result begins and ends where attributes say: a request's
// last positions meet its padding, whose contents are for the measurement to see.
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
    flow.along.back().padding = PaddingValue::Unknown();
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
      flow.along.back().padding = PaddingValue::Unknown();
      continue;
    }
    const bool low = context.node().op == "GlobalMaxPool" &&
                     positions.padding.Depth().has_value() &&
                     *positions.padding.Depth() <= kWeakestMask;
    if (low && !IsOutOfReach(context, positions.padding)) {
      BlameReach(context, "takes the largest", positions.padding);
    } else if (low) {
      context.Doubt("takes the largest under a mask over");
      if (*positions.padding.Depth() > kOutOfReach) {
        context.MayShow("takes the largest under a mask that numbers of a request may reach, over");
      }
    } else if (context.node().op == "GlobalMaxPool" && positions.padding.Is(0) &&
               context.input(0).nonnegative) {
      // Zeros are never the largest then.
    } else {
      const bool may_be = context.node().op == "GlobalMaxPool" && MayBeMasked(positions);
      context.Mix("pools over", may_be);
    }
  }
  context.Set(0, std::move(flow));
}
}  // namespace reprise::ops
