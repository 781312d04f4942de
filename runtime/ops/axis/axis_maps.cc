// The axis rule of ops of which the index map tells all that there is to tell.
#include "absl/algorithm/container.h"
#include "runtime/ops/axis/axis_rules.h"
#include "runtime/ops/maps/index_map.h"

namespace reprise::ops {
namespace {

// Positions of the operands along dim `to` of the result, which all of them have that lie along it;
// nullptr: they do not lie side by side.
const Positions* SideBySide(const AxisContext& context, const IndexMap& map, int64_t to) {
  const Positions* first = nullptr;
  size_t operands = 0;
  for (size_t i = 0; i < map.operands.size(); ++i) {
    const int64_t dim = map.DimTo(i, to);
    if (dim < 0) continue;
    const Positions* own = context.input(i).At(dim);
    if (own == nullptr) return nullptr;
    if (first == nullptr) first = own;
    if (own->inner != first->inner || own->extent != first->extent) return nullptr;
    if (++operands > 1 && (own->moved || own->repeated || first->moved || first->repeated)) {
      return nullptr;
    }
  }
  return first;
}

}  // namespace

void MapAxis(AxisContext& context) {
  const std::optional<IndexMap> map = context.map();
  if (!map.has_value()) return UnknownAxis(context);
  AxisFlowValue flow;
  for (size_t i = 0; i < map->operands.size(); ++i) {
    for (const Positions& positions : context.input(i).along) {
      const DimLink& link = map->operands[i][static_cast<size_t>(positions.dim)];
      if (link.link != Link::kParallel) {
        context.Mix(map->how);
        continue;
      }
      if (flow.At(link.to) != nullptr) continue;
      const Positions* along = SideBySide(context, *map, link.to);
      if (along == nullptr) context.Doubt("takes operands that lie otherwise along");
      flow.along.push_back(AlongDim(along == nullptr ? positions : *along, link.to));
      flow.along.back().padding.reset();
      if (along == nullptr) flow.along.back().moved = true;
    }
  }
  for (size_t o = 0; o < context.node().outputs.size(); ++o) {
    if (!context.has_output(o)) continue;
    AxisFlowValue one = flow;
    // Other results have some of the dims of the first one.
    std::erase_if(one.along, [&](const Positions& positions) {
      return positions.dim >= context.output_rank(o) ||
             context.output_shape(o)[positions.dim] != context.output_shape(0)[positions.dim] ||
             context.larger_output_shape(o)[positions.dim] !=
                 context.larger_output_shape(0)[positions.dim];
    });
    context.Set(o, std::move(one));
  }
}

}  // namespace reprise::ops
