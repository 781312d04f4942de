// Picks among the tokens of each segment: the place of the largest, the tokens at places.
#include "runtime/base/status_macros.h"
#include "runtime/ops/attention/segment_op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/reduce/arg_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/pack/packer.h"

namespace reprise::pack {

// Packs a GatherND that looks up places of each row in that row: places in the model's rows are
// places in the segments, and an index that counts from the end of one does so in the other.
absl::Status Packer::PackPick(const Site& site) {
  const Operand& data = site.inputs[0];
  const Operand& places = site.inputs[1];
  const Operand& result = site.outputs[0];
  const bool of_rows = GatherNdOp::From(site.attributes()).batch_dims == 1 && data.tokens() &&
                       !data.form.merged && data.form.rows == data.form.rest + 2 &&
                       data.form.rest + 2 == data.dims.size() &&
                       places.form.kind == Form::kSegments && places.form.rest > 0 &&
                       places.form.rest + 1 == places.dims.size() && places.dims.back().is_one() &&
                       result.form.kind == Form::kSegments;
  if (!of_rows || PackedOf(data) == kNone || PackedOf(places) == kNone) {
    return Refuse(site, "it picks by data something else than tokens of each row");
  }
  Shape picks = Tail(places.dims, places.form.rest);
  picks.pop_back();
  ASSIGN_OR_RETURN(const ValueId packed, Reshape(PackedOf(places), picks));
  return EmitReshaped(site, SegmentPickOp::kName, {PackedOf(data), packed, segments_}, {});
}

// ArgMax and ArgMin.
absl::Status Packer::PackPlace(const Site& site) {
  const Operand& data = site.inputs[0];
  const Operand& result = site.outputs[0];
  const int64_t axis = site.attributes().Int("axis", 0);
  const bool over_tokens =
      data.tokens() && !data.form.merged &&
      -FromRight(axis, data.rank()) == static_cast<int64_t>(data.form.rest) + 1;
  if (!over_tokens) return PackAlongAxis(site, axis);
  if (PackedOf(data) == kNone || result.form.kind != Form::kSegments) {
    return Refuse(site, "it looks along tokens in a way that has no packing rule");
  }
  return EmitReshaped(site, SegmentPlaceOp::kName, {PackedOf(data), segments_},
                      {{"largest", int64_t{site.op() == ArgMaxOp::kName}},
                       {"select_last_index", site.attributes().Int("select_last_index", 0)}});
}

}  // namespace reprise::pack
