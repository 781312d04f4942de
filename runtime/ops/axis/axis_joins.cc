// Axis rules of dims that become one, or are joined, and of positions that then lie in several
// lines (Positions::parts).
#include <optional>
#include <utility>
#include <vector>

#include "runtime/ops/axis/axis_rules.h"

namespace reprise::ops {
// Dim `d` of the output is the same multiple of the positions at both sizes: a few positions after
// strides divide many sizes.
bool KeepsShare(const AxisContext& context, const Positions& positions, int64_t inner, size_t d) {
  const auto dim = static_cast<int64_t>(d);
  const int64_t all = inner * context.CountOf(positions);
  const int64_t larger = inner * positions.extent.At(context.larger_axis_size());
  return context.larger_output_shape()[dim] == context.output_shape()[dim] / all * larger;
}

// Returns the dim of the result that is dim `dim` of the operand, as it was.
std::optional<int64_t> KeptDim(const AxisContext& context, int64_t dim) {
  const Shape from = Strides(context.shape(0)), to = Strides(context.output_shape());
  const Shape larger_from = Strides(context.larger_shape(0));
  const Shape larger_to = Strides(context.larger_output_shape());
  for (size_t d = 0; d < to.size() && d < larger_to.size(); ++d) {
    const bool kept = context.output_shape()[d] == context.shape(0)[dim] &&
                      context.larger_output_shape()[d] == context.larger_shape(0)[dim] &&
                      to[d] == from[dim] && larger_to[d] == larger_from[dim];
    if (kept) return static_cast<int64_t>(d);
  }
  return std::nullopt;
}

// Returns the lines of a dim that holds several, the same number of them at both sizes.
std::vector<PositionPart> LinesOf(const AxisContext& context, const Positions& positions) {
  PositionPart part = {.extent = positions.extent, .inner = positions.inner};
  const int64_t small = part.At(context.axis_size()), large = part.At(context.larger_axis_size());
  const int64_t size = context.output_shape()[positions.dim];
  if (context.is_batch() || positions.moved || small <= 0 || size % small != 0) return {};
  part.lines = size / small;
  if (context.larger_output_shape()[positions.dim] != part.lines * large) return {};
  return {part};
}

// Bytes under another shape: a position is found again by how many elements lie inside it.
void ViewAxis(AxisContext& context) {
  const Shape& to = context.output_shape();
  const Shape from_strides = Strides(context.shape(0));
  const Shape to_strides = Strides(to);
  AxisFlowValue flow;
  for (const Positions& positions : context.input(0).along) {
    if (positions.IsJoined()) {
      const std::optional<int64_t> kept = KeptDim(context, positions.dim);
      if (!kept.has_value()) context.Doubt("lays elements across the joined positions of");
      if (kept.has_value()) flow.along.push_back(AlongDim(positions, *kept));
      continue;
    }
    const int64_t elements = positions.inner * from_strides[positions.dim];
    bool found = false;
    for (size_t d = 0; d < to.size() && !found; ++d) {
      const int64_t stride = to_strides[d];
      if (stride <= 0 || elements % stride != 0) continue;
      const int64_t all = elements / stride * context.CountOf(positions);
      found = all > 0 && all <= to[d] && to[d] % all == 0 &&
              (positions.extent.is_whole() || KeepsShare(context, positions, elements / stride, d));
      if (!found) continue;
      Positions moved = AlongDim(positions, static_cast<int64_t>(d));
      moved.inner = elements / stride;
      moved.repeated = to[d] != all;
      moved.parts = moved.repeated ? LinesOf(context, moved) : std::vector<PositionPart>();
      flow.along.push_back(moved);
    }
    if (!found) context.Doubt("lays elements across the positions of");
  }
  // Two dims of positions that became one are no longer told apart.
  for (size_t i = 0; i < flow.along.size(); ++i) {
    for (size_t j = i + 1; j < flow.along.size(); ++j) {
      if (flow.along[i].dim != flow.along[j].dim) continue;
      context.Doubt("lays elements across the positions of");
      for (Positions* one : {&flow.along[i], &flow.along[j]}) {
        one->moved = true;
        one->parts.clear();
        one->compact = false;
      }
    }
  }
  context.Set(0, std::move(flow));
}

namespace {

// Returns the parts of all operands along the dim that they are joined in; none where some are not
// known.
std::vector<PositionPart> JoinedParts(const AxisContext& context, int64_t dim) {
  std::vector<PositionPart> joined;
  for (size_t i = 0; i < context.num_inputs() && !context.is_batch(); ++i) {
    const Positions* positions = context.input(i).At(dim);
    const auto parts = positions == nullptr ? std::vector<PositionPart>() : positions->KnownParts();
    if (parts.empty()) return {};
    joined.insert(joined.end(), parts.begin(), parts.end());
  }
  return joined;
}

// Returns the positions of the result where the same number of elements are set before those of the
// last operand, the only one with any: each request's own lie that much later.
std::optional<Positions> AfterConstants(const AxisContext& context, int64_t dim) {
  const size_t last = context.num_inputs() - 1;
  const Positions* positions = context.input(last).At(dim);
  const bool plain = positions != nullptr && positions->inner == 1 && !positions->moved &&
                     !positions->repeated && !positions->compact && !context.is_batch();
  if (!plain) return std::nullopt;
  int64_t added = 0;
  for (size_t i = 0; i < last; ++i) {
    const bool same = context.input(i).At(dim) == nullptr &&
                      context.shape(i)[dim] == context.larger_shape(i)[dim];
    if (!same) return std::nullopt;
    added += context.shape(i)[dim];
  }
  Positions after = *positions;
  after.extent = positions->extent.Through(added, 1).AtMultiplesOf(context.step());
  after.parts.clear();
  const bool fits = context.CountOf(*positions) == context.shape(last)[dim] &&
                    context.OutputHas(after.extent, dim);
  return fits ? std::optional(after) : std::nullopt;
}

}  // namespace

void ConcatAxis(AxisContext& context) {
  const int64_t dim = context.Dim(context.attributes().Int("axis", 0));
  AxisFlowValue flow;
  for (int64_t d = 0; d < context.output_rank(); ++d) {
    std::optional<Positions> joint;
    bool all = true, same = true, apart = false;
    for (size_t i = 0; i < context.num_inputs(); ++i) {
      const Positions* positions = context.input(i).At(d);
      if (positions == nullptr) {
        all = all && !context.has_input(i);
        continue;
      }
      if (!joint.has_value()) joint = *positions;
      same = same && positions->padding == joint->padding;
      joint->moved = joint->moved || positions->moved || positions->inner != joint->inner ||
                     positions->repeated != joint->repeated || positions->extent != joint->extent;
      apart = apart || positions->parts != joint->parts || positions->compact != joint->compact;
    }
    if (!joint.has_value()) continue;
    if (const auto after = d == dim ? AfterConstants(context, dim) : std::nullopt;
        after.has_value()) {
      flow.along.push_back(*after);
      continue;
    }
    if (d == dim && context.num_inputs() > 1) {
      std::vector<PositionPart> parts = JoinedParts(context, dim);
      if (parts.empty()) context.Doubt("sets elements before or after the positions of");
      *joint = {.dim = d, .repeated = true, .parts = std::move(parts)};
      joint->moved = true;
    } else if (apart || !all) {
      if (joint->IsJoined()) context.Doubt("sets elements beside joined ones of");
      joint->parts.clear();
      joint->compact = false;
    }
    if (!all || !same || d == dim) joint->padding.reset();
    flow.along.push_back(*joint);
  }
  context.Set(0, std::move(flow));
}

}  // namespace reprise::ops
