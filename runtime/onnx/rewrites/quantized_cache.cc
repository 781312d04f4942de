#include "runtime/onnx/rewrites/quantized_cache.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/elementwise/activation_op.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/movement/reshape_op.h"

namespace reprise {
namespace {

constexpr int64_t kByte = 8, kNibble = 4;
constexpr double kNibbles = 16;    // values of one
constexpr double kNibbleZero = 8;  // the one that is 0

}  // namespace

absl::Status QuantizedCache::Read(size_t scale) {
  const std::string keys = draft_.attributes.String("k_quant_type", "NONE");
  const std::string values = draft_.attributes.String("v_quant_type", "NONE");
  const int64_t bits = draft_.attributes.Int("kv_cache_bit_width", 0);
  if (keys == "NONE" && values == "NONE" && bits == 0) return absl::OkStatus();
  per_channel_ = keys == "PER_CHANNEL";
  const bool known = per_channel_ || keys == "PER_TENSOR";
  if (!known || keys != values || (bits != kByte && bits != kNibble)) {
    return absl::UnimplementedError(
        absl::StrCat("attributes 'k_quant_type' = '", keys, "', 'v_quant_type' = '", values,
                     "' and 'kv_cache_bit_width' = ", bits, " are not supported together"));
  }
  RETURN_IF_ERROR(Require({scale, scale + 1}));
  bits_ = bits;
  return absl::OkStatus();
}

ValueId QuantizedCache::Scale(size_t scale) {
  const std::vector<int64_t> shape =
      per_channel_ ? std::vector<int64_t>{1, kv_heads_, 1, -1} : std::vector<int64_t>{1, 1, 1, 1};
  return Add(ReshapeOp::kName, {input(scale), Int64s(shape)});
}

ValueId QuantizedCache::Nearest(ValueId rows, ValueId scale) {
  const double lowest = bits_ == kByte ? -128 : -8;
  const ValueId cells = Add(RoundOp::kName, {Add(DivOp::kName, {ToFloat(rows), scale})});
  return Add(ClipOp::kName, {cells, Float(lowest), Float(-1 - lowest)});
}

ValueId QuantizedCache::Unpacked(ValueId stored) {
  const ValueId numbers = ToFloat(stored);
  if (bits_ == kByte) return numbers;
  const ValueId high = Add(FloorOp::kName, {Add(DivOp::kName, {numbers, Float(kNibbles)})});
  const ValueId low = Add(SubOp::kName, {numbers, Add(MulOp::kName, {high, Float(kNibbles)})});
  const ValueId last = Int64s({4});
  const ValueId pairs =
      Add(ConcatOp::kName,
          {Add(UnsqueezeOp::kName, {low, last}), Add(UnsqueezeOp::kName, {high, last})},
          {{"axis", int64_t{4}}});
  const ValueId width = Add(MulOp::kName, {Dims(stored, 3, 4), Int64s({2})});
  const ValueId cells = Add(ReshapeOp::kName, {pairs, Concat({Dims(stored, 0, 3), width})});
  return Add(SubOp::kName, {cells, Float(kNibbleZero)});
}

ValueId QuantizedCache::Packed(ValueId cells) {
  if (bits_ == kByte) return Cast(cells, DType::kInt8);
  const ValueId numbers = Add(AddOp::kName, {cells, Float(kNibbleZero)});
  const ValueId front = Dims(cells, 0, 3);
  const ValueId pairs =
      Add(ReshapeOp::kName, {numbers, Concat({front, Int64s({-1}), Int64s({2})})});
  const NodeId split =
      graph_.AddNode(SplitOp::kName, {pairs, Int64s({1, 1})}, {{"axis", int64_t{4}}}, 2);
  const std::vector<ValueId> halves = graph_.node(split).outputs;
  const ValueId bytes =
      Add(AddOp::kName, {halves[0], Add(MulOp::kName, {halves[1], Float(kNibbles)})});
  const ValueId rows = Add(ReshapeOp::kName, {bytes, Concat({front, Int64s({-1})})});
  return Cast(rows, DType::kUInt8);
}

}  // namespace reprise
