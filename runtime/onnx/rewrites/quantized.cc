#include "runtime/onnx/rewrites/quantized.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/kit/steps.h"
#include "runtime/ops/elementwise/activation_op.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/onnx_types.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/expand_op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/shape_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/ops/products/matmul_op.h"
#include "runtime/ops/quantized/quantize_op.h"
#include "runtime/ops/reduce/layer_norm_op.h"
#include "runtime/ops/reduce/softmax_op.h"
#include "runtime/ops/weights/bits_op.h"
#include "runtime/ops/weights/stored_op.h"
#include "runtime/ops/windows/conv_op.h"
#include "runtime/ops/windows/pool_op.h"

namespace reprise {
namespace {

class QuantizedSteps : public Steps {
 public:
  using Steps::Steps;

  // Returns the product of the integers `a` and `b`, whose zero points may be kNone, as floats in
  // steps of both scales.
  ValueId ScaledProduct(ValueId a, ValueId b, ValueId a_zero, ValueId b_zero, ValueId scale) {
    const ValueId sums = Add(MatMulIntegerOp::kName, {a, b, a_zero, b_zero});
    return Add(MulOp::kName, {ToFloat(sums), scale});
  }
  // Makes the op the sum of `x` and input `bias`, or `x` alone where that is left out.
  absl::Status AddBias(ValueId x, size_t bias) {
    return input(bias) == kNone ? Become(IdentityOp::kName, {x})
                                : Become(AddOp::kName, {x, input(bias)});
  }
  // Returns the floats that input `at` stands for; its scale and zero point follow it.
  ValueId Dequantized(size_t at) {
    return Add(DequantizeLinearOp::kName, {input(at), input(at + 1), input(at + 2)});
  }
  // Turns the op into the quantisation of `x` with the scale and zero point at `at`. The zero
  // point gives the dtype of the results, so it must be there.
  absl::Status Quantize(ValueId x, size_t at) {
    RETURN_IF_ERROR(Require({at, at + 1}));
    return Become(QuantizeLinearOp::kName, {x, input(at), input(at + 1)});
  }
};

// Inputs: A, its scale and zero point, B, its scale and zero point, the result's scale and zero
// point.
absl::Status QuantizedBinary(NodeDraft& draft, Graph& graph, absl::string_view op) {
  QuantizedSteps steps(draft, graph);
  RETURN_IF_ERROR(steps.Require({0, 1, 3, 4}));
  return steps.Quantize(steps.Add(op, {steps.Dequantized(0), steps.Dequantized(3)}), 6);
}

absl::Status QuantizedUnary(NodeDraft& draft, Graph& graph, absl::string_view op,
                            Attributes attributes) {
  QuantizedSteps steps(draft, graph);
  RETURN_IF_ERROR(steps.Require({0, 1}));
  return steps.Quantize(steps.Add(op, {steps.Dequantized(0)}, std::move(attributes)), 3);
}

// Channels are dim 1, not the last one.
absl::Status CheckChannelsFirst(NodeDraft& draft) {
  if (draft.attributes.Int("channels_last", 0) != 0) {
    return absl::UnimplementedError("attribute 'channels_last' = 1");
  }
  draft.attributes.Erase("channels_last");
  return absl::OkStatus();
}

}  // namespace

absl::Status QLinearAddInSteps(NodeDraft& draft, Graph& graph) {
  return QuantizedBinary(draft, graph, AddOp::kName);
}

absl::Status QLinearMulInSteps(NodeDraft& draft, Graph& graph) {
  return QuantizedBinary(draft, graph, MulOp::kName);
}

absl::Status QLinearSigmoidInSteps(NodeDraft& draft, Graph& graph) {
  return QuantizedUnary(draft, graph, SigmoidOp::kName, {});
}

absl::Status QLinearLeakyReluInSteps(NodeDraft& draft, Graph& graph) {
  return QuantizedUnary(draft, graph, LeakyReluOp::kName,
                        {{"alpha", draft.attributes.Float("alpha", 0.01f)}});
}

// onnxruntime quantises the result with the largest whole number below 1 / scale, not with the
// scale: of 1 / 255 in float32 the inverse is 254.99998, and 254 is used.
absl::Status QLinearSoftmaxInSteps(NodeDraft& draft, Graph& graph) {
  const int64_t axis = draft.attributes.Int("axis", -1);
  if (draft.attributes.Int("opset", 13) < 13 && axis != -1) {
    return absl::UnimplementedError(absl::StrCat(
        "the Softmax of opset ", draft.attributes.Int("opset", 13), " at axis ", axis));
  }
  QuantizedSteps steps(draft, graph);
  RETURN_IF_ERROR(steps.Require({0, 1, 3, 4}));
  const ValueId shares = steps.Add(SoftmaxOp::kName, {steps.Dequantized(0)}, {{"axis", axis}});
  const ValueId steps_of_one =
      steps.Add(FloorOp::kName, {steps.Add(ReciprocalOp::kName, {steps.input(3)})});
  const ValueId one = steps.Constant("one", Tensor::FloatScalar(1));
  return steps.Become(QuantizeLinearOp::kName,
                      {steps.Add(MulOp::kName, {shares, steps_of_one}), one, steps.input(4)});
}

// x, its scale and zero point, weight, its scale and zero point (one, or one a map), the result's
// scale and zero point, and a bias in steps of both scales.
absl::Status QLinearConvInSteps(NodeDraft& draft, Graph& graph) {
  RETURN_IF_ERROR(CheckChannelsFirst(draft));
  QuantizedSteps steps(draft, graph);
  RETURN_IF_ERROR(steps.Require({0, 1, 3, 4}));
  const ValueId weight =
      steps.Add(DequantizeLinearOp::kName, {steps.input(3), steps.input(4), steps.input(5)},
                {{"axis", int64_t{0}}});
  std::vector<ValueId> inputs = {steps.Dequantized(0), weight};
  if (steps.input(8) != kNone) {
    const DType bias = graph.value(steps.input(8)).dtype;
    if (bias != DType::kUndefined && bias != DType::kInt32) {
      return absl::InvalidArgumentError(absl::StrCat("its bias (input 8) is ", DTypeName(bias),
                                                     ", it must be ", DTypeName(DType::kInt32)));
    }
    const ValueId scale = steps.Add(MulOp::kName, {steps.input(1), steps.input(4)});
    inputs.push_back(steps.Add(MulOp::kName, {steps.ToFloat(steps.input(8)), scale}));
  }
  return steps.Quantize(steps.Add(ConvOp::kName, std::move(inputs), draft.attributes), 6);
}

// x, weight, their zero points (of x one, of the weight one or one a map). The products are added
// up as floats: sums above 2^22 are rounded, since forms of the convolution that save products
// carry quarters.
absl::Status ConvIntegerInSteps(NodeDraft& draft, Graph& graph) {
  QuantizedSteps steps(draft, graph);
  RETURN_IF_ERROR(steps.Require({0, 1}));
  ValueId x = steps.ToFloat(steps.input(0));
  if (steps.input(2) != kNone) {
    x = steps.Add(SubOp::kName, {x, steps.ToFloat(steps.input(2))});
  }
  // In steps of 1: as many of them as zero points.
  ValueId one = steps.Constant("one", Tensor::FloatScalar(1));
  if (steps.input(3) != kNone) {
    one = steps.Add(ExpandOp::kName, {one, steps.Add(ShapeOp::kName, {steps.input(3)})});
  }
  const ValueId weight = steps.Add(DequantizeLinearOp::kName, {steps.input(1), one, steps.input(3)},
                                   {{"axis", int64_t{0}}});
  const ValueId sums =
      steps.Add(RoundOp::kName, {steps.Add(ConvOp::kName, {x, weight}, draft.attributes)});
  return steps.Become(CastOp::kName, {sums}, {{"to", ops::OnnxNumber(DType::kInt32)}});
}

absl::Status QLinearAveragePoolInSteps(NodeDraft& draft, Graph& graph) {
  RETURN_IF_ERROR(CheckChannelsFirst(draft));
  return QuantizedUnary(draft, graph, AveragePoolOp::kName, draft.attributes);
}

absl::Status QLinearGlobalAveragePoolInSteps(NodeDraft& draft, Graph& graph) {
  RETURN_IF_ERROR(CheckChannelsFirst(draft));
  return QuantizedUnary(draft, graph, GlobalAveragePoolOp::kName, {});
}

absl::Status QLinearConcatInSteps(NodeDraft& draft, Graph& graph) {
  QuantizedSteps steps(draft, graph);
  if (draft.inputs.size() < 5 || (draft.inputs.size() - 2) % 3 != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "has ", draft.inputs.size(),
        " inputs, takes scale and zero point of its result and three for each operand"));
  }
  std::vector<ValueId> parts;
  for (size_t i = 2; i < draft.inputs.size(); i += 3) {
    RETURN_IF_ERROR(steps.Require({i, i + 1, i + 2}));
    parts.push_back(steps.Dequantized(i));
  }
  return steps.Quantize(
      steps.Add(ConcatOp::kName, std::move(parts), {{"axis", draft.attributes.Int("axis", 0)}}), 0);
}

absl::Status QLinearWhereInSteps(NodeDraft& draft, Graph& graph) {
  QuantizedSteps steps(draft, graph);
  RETURN_IF_ERROR(steps.Require({0, 1, 2, 4, 5}));
  return steps.Quantize(
      steps.Add(WhereOp::kName, {steps.input(0), steps.Dequantized(1), steps.Dequantized(4)}), 7);
}

// Takes A, a_scale, a_zero_point?, B, b_scale, b_zero_point?, C?, y_scale?, y_zero_point?: C is
// int32; without y_scale the result is float.
absl::Status QGemmInSteps(NodeDraft& draft, Graph& graph) {
  QuantizedSteps steps(draft, graph);
  RETURN_IF_ERROR(steps.Require({0, 1, 3, 4}));
  const auto operand = [&](size_t i, absl::string_view transposed) {
    if (draft.attributes.Int(transposed, 0) == 0) return steps.input(i);
    return steps.Add(TransposeOp::kName, {steps.input(i)}, {{"perm", std::vector<int64_t>{1, 0}}});
  };
  ValueId scale = steps.Add(MulOp::kName, {steps.input(1), steps.input(4)});
  if (const float alpha = draft.attributes.Float("alpha", 1); alpha != 1) {
    scale = steps.Add(MulOp::kName, {scale, steps.Constant("alpha", Tensor::FloatScalar(alpha))});
  }
  ValueId product = steps.ScaledProduct(operand(0, "transA"), operand(3, "transB"), steps.input(2),
                                        steps.input(5), scale);
  // C is in the same steps.
  ValueId bias = kNone;
  if (steps.input(6) != kNone) {
    bias = steps.Add(MulOp::kName, {steps.ToFloat(steps.input(6)), scale});
  }
  if (steps.input(7) != kNone) {
    if (bias != kNone) product = steps.Add(AddOp::kName, {product, bias});
    return steps.Quantize(product, 7);
  }
  return bias == kNone ? steps.Become(IdentityOp::kName, {product})
                       : steps.Become(AddOp::kName, {product, bias});
}

// Takes A, B, a_scale, b_scale, a_zero_point?, b_zero_point?, bias?
absl::Status MatMulIntegerToFloatInSteps(NodeDraft& draft, Graph& graph) {
  QuantizedSteps steps(draft, graph);
  RETURN_IF_ERROR(steps.Require({0, 1, 2, 3}));
  const ValueId scale = steps.Add(MulOp::kName, {steps.input(2), steps.input(3)});
  return steps.AddBias(
      steps.ScaledProduct(steps.input(0), steps.input(1), steps.input(4), steps.input(5), scale),
      6);
}

// Takes A, B, b_scale, b_zero_point?, bias?
absl::Status DynamicQuantizeMatMulInSteps(NodeDraft& draft, Graph& graph) {
  QuantizedSteps steps(draft, graph);
  RETURN_IF_ERROR(steps.Require({0, 1, 2}));
  const NodeId quantize = graph.AddNode(DynamicQuantizeLinearOp::kName, {steps.input(0)}, {}, 3);
  const std::vector<ValueId> a = graph.node(quantize).outputs;
  const ValueId scale = steps.Add(MulOp::kName, {a[1], steps.input(2)});
  return steps.AddBias(steps.ScaledProduct(a[0], steps.input(1), a[2], steps.input(3), scale), 4);
}

// input_ids, segment_ids?, tables of words, positions and segments?, gamma, beta, mask?, and from
// 8 on the scales of the five, from 13 on their zero points.
absl::Status QEmbedLayerNormInSteps(NodeDraft& draft, Graph& graph) {
  QuantizedSteps steps(draft, graph);
  std::vector<ValueId> inputs = {steps.input(0), steps.input(1)};
  for (size_t i = 2; i < 7; ++i) {
    if (steps.input(i) == kNone) {
      inputs.push_back(kNone);
      continue;
    }
    RETURN_IF_ERROR(steps.Require({i + 6}));
    inputs.push_back(steps.Add(DequantizeLinearOp::kName,
                               {steps.input(i), steps.input(i + 6), steps.input(i + 11)}));
  }
  inputs.push_back(steps.input(7));
  return steps.Become(EmbedLayerNormOp::kName, std::move(inputs), std::move(draft.attributes));
}

// Takes A, values, scales, zero_points?, g_idx?, bias?: values are [N, blocks, bytes of a block].
absl::Status MatMulNBitsInSteps(NodeDraft& draft, Graph& graph) {
  QuantizedSteps steps(draft, graph);
  RETURN_IF_ERROR(steps.Require({0, 1, 2}));
  if (steps.input(4) != kNone) return absl::UnimplementedError("input 4 (g_idx) is not supported");
  const int64_t k = draft.attributes.Int("K", 0), n = draft.attributes.Int("N", 0);
  const int64_t block = draft.attributes.Int("block_size", 0);
  if (k <= 0 || n <= 0 || block <= 0 || k > INT64_MAX - block) {
    return absl::InvalidArgumentError(absl::StrCat("attributes 'K' = ", k, ", 'N' = ", n,
                                                   " and 'block_size' = ", block,
                                                   " are not all positive"));
  }
  const Value& a = graph.value(steps.input(0));
  if (a.shape.has_value() && !a.shape->empty() && a.shape->back() != k) {
    return absl::InvalidArgumentError(
        absl::StrCat("input 0 has ", a.shape->back(), " columns, attribute 'K' is ", k));
  }
  const ValueId shape = steps.Constant("blocks", Tensor::Int64s({n, (k + block - 1) / block}));
  const ValueId scales = steps.Add(ReshapeOp::kName, {steps.input(2), shape});
  const ValueId rows =
      steps.Add(DequantizeBitsOp::kName, {steps.input(1), scales, steps.input(3)},
                {{"K", k}, {"bits", draft.attributes.Int("bits", 4)}, {"block_size", block}});
  const ValueId weights =
      steps.Add(TransposeOp::kName, {rows}, {{"perm", std::vector<int64_t>{1, 0}}});
  const ValueId bias = steps.input(5);
  if (bias == kNone) return steps.Become(MatMulOp::kName, {steps.input(0), weights});
  return steps.Become(AddOp::kName, {steps.Add(MatMulOp::kName, {steps.input(0), weights}), bias});
}

absl::Status GgmlDequantizeIsStoredFloats(NodeDraft& draft, Graph&) {
  draft.op = StoredFloatsOp::kName;
  return absl::OkStatus();
}

// Numbers of four bits that the importer has taken apart, a byte each.
bool AreApart(const Value& data) {
  return data.parameter != nullptr && data.parameter->op() == UnpackNibblesOp::kName;
}

// data, indices, scales, zero_points?: rows of a table are gathered as they are stored.
absl::Status GatherBlockQuantizedInSteps(NodeDraft& draft, Graph& graph) {
  QuantizedSteps steps(draft, graph);
  RETURN_IF_ERROR(steps.Require({0, 1, 2}));
  const Value& data = graph.value(steps.input(0));
  const bool apart = AreApart(data);
  const bool packed = !apart && data.dtype == DType::kUInt8;
  if (!data.shape.has_value() || data.shape->size() != 2 || (!apart && !packed)) {
    return absl::UnimplementedError(
        "data that is not a large matrix of uint8, int4 or uint4 in the file");
  }
  const int64_t gathered = draft.attributes.Int("gather_axis", 0);
  const int64_t quantized = draft.attributes.Int("quantize_axis", 1);
  if ((gathered != 0 && gathered != -2) || (quantized != 1 && quantized != -1)) {
    return absl::UnimplementedError(absl::StrCat("attributes 'gather_axis' = ", gathered,
                                                 " and 'quantize_axis' = ", quantized));
  }
  const int64_t bits = draft.attributes.Int("bits", 4);
  if (bits != 4 && bits != 8) {
    return absl::UnimplementedError(absl::StrCat(bits, " bits are not supported"));
  }
  const Attributes at = {{"axis", int64_t{0}}};
  const auto rows = [&](size_t input) {
    if (steps.input(input) == kNone) return kNone;
    return steps.Add(GatherOp::kName, {steps.input(input), steps.input(1)}, at);
  };
  const int64_t k = (*data.shape)[1] * 8 / bits;
  const int64_t block = draft.attributes.Int("block_size", 128);
  // Without zero points they are 0 there, and in the middle of packed bytes.
  if (apart) {
    return steps.Become(DequantizeLinearOp::kName, {rows(0), rows(2), rows(3)},
                        {{"axis", int64_t{-1}}, {"block_size", block}});
  }
  return steps.Become(DequantizeBitsOp::kName, {rows(0), rows(2), rows(3)},
                      {{"K", k}, {"bits", bits}, {"block_size", block}});
}

}  // namespace reprise
