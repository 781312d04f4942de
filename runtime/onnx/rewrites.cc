#include "runtime/onnx/rewrites.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/classical/categories.h"
#include "runtime/onnx/classical/linear_models.h"
#include "runtime/onnx/classical/svm.h"
#include "runtime/onnx/classical/trees.h"
#include "runtime/onnx/file/onnx_proto.h"
#include "runtime/onnx/rewrites/decoders.h"
#include "runtime/onnx/rewrites/fourier.h"
#include "runtime/onnx/rewrites/fused.h"
#include "runtime/onnx/rewrites/quantized.h"
#include "runtime/onnx/rewrites/recurrent.h"
#include "runtime/onnx/rewrites/resizing.h"
#include "runtime/onnx/rewrites/windows.h"

namespace reprise {
namespace {

void SetInput(NodeDraft& draft, size_t i, ValueId value) {
  if (draft.inputs.size() <= i) draft.inputs.resize(i + 1, kNone);
  draft.inputs[i] = value;
}

// Makes the list attribute `name` input `i`, where it is given.
void IntsToInput(NodeDraft& draft, Graph& graph, absl::string_view name, size_t i) {
  const auto* values = draft.attributes.Get<std::vector<int64_t>>(name);
  if (values == nullptr) return;
  const std::string label = absl::StrCat(draft.name, "/", name);
  SetInput(draft, i, graph.AddConstant(label, Tensor::Int64s(*values)));
  draft.attributes.Erase(name);
}

absl::Status AxesToInput(NodeDraft& draft, Graph& graph) {
  IntsToInput(draft, graph, "axes", 1);
  return absl::OkStatus();
}

absl::Status SplitToInput(NodeDraft& draft, Graph& graph) {
  IntsToInput(draft, graph, "split", 1);
  return absl::OkStatus();
}

absl::Status ShapeToInput(NodeDraft& draft, Graph& graph) {
  IntsToInput(draft, graph, "shape", 1);
  draft.attributes.Erase("consumed_inputs");
  return absl::OkStatus();
}

absl::Status SliceToInputs(NodeDraft& draft, Graph& graph) {
  IntsToInput(draft, graph, "starts", 1);
  IntsToInput(draft, graph, "ends", 2);
  IntsToInput(draft, graph, "axes", 3);
  return absl::OkStatus();
}

absl::Status ClipToInputs(NodeDraft& draft, Graph& graph) {
  size_t i = 1;
  for (absl::string_view name : {"min", "max"}) {
    if (const float* bound = draft.attributes.Get<float>(name); bound != nullptr) {
      SetInput(draft, i,
               graph.AddConstant(absl::StrCat(draft.name, "/", name), Tensor::FloatScalar(*bound)));
      draft.attributes.Erase(name);
    }
    ++i;
  }
  draft.attributes.Erase("consumed_inputs");
  return absl::OkStatus();
}

absl::Status PadToInputs(NodeDraft& draft, Graph& graph) {
  IntsToInput(draft, graph, "paddings", 1);  // The name in version 1.
  IntsToInput(draft, graph, "pads", 1);
  if (const float* value = draft.attributes.Get<float>("value"); value != nullptr) {
    if (*value != 0) {
      SetInput(draft, 2,
               graph.AddConstant(absl::StrCat(draft.name, "/value"), Tensor::FloatScalar(*value)));
    }
    draft.attributes.Erase("value");
  }
  return absl::OkStatus();
}

absl::Status TopKToInput(NodeDraft& draft, Graph& graph) {
  const int64_t* k = draft.attributes.Get<int64_t>("k");
  if (k == nullptr) return absl::InvalidArgumentError("attribute 'k' is missing");
  SetInput(draft, 1, graph.AddConstant(absl::StrCat(draft.name, "/k"), Tensor::Int64s({*k})));
  draft.attributes.Erase("k");
  return absl::OkStatus();
}

// Before opset 20 the axis was an attribute, 1 by default.
absl::Status TransformAxisToInput(NodeDraft& draft, Graph& graph) {
  SetInput(draft, 2,
           graph.AddConstant(absl::StrCat(draft.name, "/axis"),
                             Tensor::Int64s({draft.attributes.Int("axis", 1)})));
  draft.attributes.Erase("axis");
  return absl::OkStatus();
}

absl::Status DropoutDefaults(NodeDraft& draft, Graph&) {
  draft.attributes.Erase("ratio");
  draft.attributes.Erase("is_test");
  draft.attributes.Erase("consumed_inputs");
  return absl::OkStatus();
}

// Before opset 13 the op flattened its input to two dims at `axis` (default 1).
absl::Status FlattenAround(NodeDraft& draft, Graph& graph) {
  const int64_t axis = draft.attributes.Int("axis", 1);
  if (axis == -1 || draft.inputs.empty()) return absl::OkStatus();  // The same in both forms.
  const ValueId input = draft.inputs[0];
  const auto result = [&](NodeId node) { return graph.node(node).outputs[0]; };
  const ValueId flat = result(graph.AddNode("Flatten", {input}, {{"axis", axis}}));
  const ValueId soft =
      result(graph.AddNode(draft.op, {flat}, {{"axis", int64_t{-1}}}, 1, draft.name));
  const ValueId shape = result(graph.AddNode("Shape", {input}));
  draft.op = "Reshape";
  // Zeros in the shape mean zeros.
  draft.attributes = {{"allowzero", int64_t{1}}};
  draft.inputs = {soft, shape};
  return absl::OkStatus();
}

absl::Status CastFromName(NodeDraft& draft, Graph&) {
  const std::string* name = draft.attributes.Get<std::string>("to");
  if (name == nullptr) return absl::OkStatus();
  onnx::TensorProto::DataType type;
  if (!onnx::TensorProto::DataType_Parse(absl::AsciiStrToUpper(*name), &type)) {
    return absl::InvalidArgumentError(absl::StrCat("there is no dtype '", *name, "'"));
  }
  draft.attributes.Set("to", static_cast<int64_t>(type));
  return absl::OkStatus();
}

// Returns `operand` with dims of size 1 appended, so that its dims line up with the dims of
// `target` from `axis` on under today's broadcasting. All of it is shape arithmetic, which folds
// away.
ValueId AlignAt(Graph& graph, ValueId target, ValueId operand, int64_t axis) {
  const auto add = [&](absl::string_view op, std::vector<ValueId> inputs, Attributes attributes) {
    const NodeId node = graph.AddNode(op, std::move(inputs), std::move(attributes));
    return graph.node(node).outputs[0];
  };
  const auto constant = [&](int64_t value) {
    return graph.AddConstant("", Tensor::Int64s({value}));
  };
  const ValueId target_shape = add("Shape", {target}, {});
  const ValueId shape = add("Shape", {operand}, {});
  const ValueId rank = add("Shape", {shape}, {});
  const ValueId start = add("Add", {rank, constant(axis)}, {});
  const ValueId end = constant(std::numeric_limits<int64_t>::max());
  const ValueId tail = add("Slice", {target_shape, start, end}, {});
  const ValueId missing = add("Shape", {tail}, {});
  const ValueId ones = add("ConstantOfShape", {missing}, {{"value", Tensor::Int64s({1})}});
  const ValueId aligned = add("Concat", {shape, ones}, {{"axis", int64_t{0}}});
  return add("Reshape", {operand, aligned}, {{"allowzero", int64_t{1}}});
}

// Before opset 7 operands broadcast only where told to, and along an axis of choice.
absl::Status LimitedBroadcast(NodeDraft& draft, Graph& graph) {
  if (draft.attributes.Int("broadcast", 0) != 0 && draft.attributes.Has("axis")) {
    const int64_t axis = draft.attributes.Int("axis", 0);
    if (axis < 0) return absl::UnimplementedError("broadcasting along a negative axis");
    if (draft.inputs.size() != 2 || draft.inputs[0] == kNone || draft.inputs[1] == kNone) {
      return absl::InvalidArgumentError("does not have two inputs");
    }
    draft.inputs[1] = AlignAt(graph, draft.inputs[0], draft.inputs[1], axis);
  }
  for (absl::string_view name : {"broadcast", "axis", "consumed_inputs"}) {
    draft.attributes.Erase(name);
  }
  return absl::OkStatus();
}

// Before opset 7 a slope of several elements belonged to dim 1.
absl::Status SlopePerChannel(NodeDraft& draft, Graph& graph) {
  draft.attributes.Erase("consumed_inputs");
  if (draft.inputs.size() != 2 || draft.inputs[0] == kNone || draft.inputs[1] == kNone) {
    return absl::InvalidArgumentError("does not have two inputs");
  }
  const std::optional<Shape>& shape = graph.value(draft.inputs[1]).shape;
  if (!shape.has_value()) return absl::UnimplementedError("a slope that is computed");
  if (NumElements(*shape) != 1) {
    draft.inputs[1] = AlignAt(graph, draft.inputs[0], draft.inputs[1], 1);
  }
  return absl::OkStatus();
}

absl::Status DropBroadcast(NodeDraft& draft, Graph&) {
  draft.attributes.Erase("broadcast");
  return absl::OkStatus();
}

absl::Status ConcatAxis(NodeDraft& draft, Graph&) {
  if (!draft.attributes.Has("axis")) draft.attributes.Set("axis", int64_t{1});
  return absl::OkStatus();
}

absl::Status SeluDefaults(NodeDraft& draft, Graph&) {
  if (!draft.attributes.Has("alpha")) draft.attributes.Set("alpha", 1.6732f);
  if (!draft.attributes.Has("gamma")) draft.attributes.Set("gamma", 1.0507f);
  draft.attributes.Erase("consumed_inputs");
  return absl::OkStatus();
}

absl::Status BatchNormalizationInference(NodeDraft& draft, Graph&) {
  if (draft.attributes.Int("spatial", 1) == 0) {
    return absl::UnimplementedError("attribute 'spatial' = 0");
  }
  for (absl::string_view name : {"is_test", "spatial", "consumed_inputs", "momentum"}) {
    draft.attributes.Erase(name);
  }
  while (draft.outputs.size() > 1 && draft.outputs.back().empty()) draft.outputs.pop_back();
  return absl::OkStatus();
}

absl::Status ScatterIsScatterElements(NodeDraft& draft, Graph&) {
  draft.op = "ScatterElements";
  return absl::OkStatus();
}

// onnxruntime wrote the op into the default domain before ONNX had it.
absl::Status SimplifiedIsRms(NodeDraft& draft, Graph&) {
  draft.op = "RMSNormalization";
  return absl::OkStatus();
}

absl::Status MicrosoftGeluIsGelu(NodeDraft& draft, Graph&) {
  draft.op = "Gelu";
  return absl::OkStatus();
}

// Before opset 7 an attribute said whether Y was requested, which the list of outputs says as well.
absl::Status DropOutputSequence(NodeDraft& draft, Graph&) {
  draft.attributes.Erase("output_sequence");
  return absl::OkStatus();
}

// Before opset 21 scale and bias had one element a group: now one a channel.
absl::Status GroupsToChannels(NodeDraft& draft, Graph& graph) {
  if (draft.inputs.size() != 3 || draft.inputs[0] == kNone) {
    return absl::InvalidArgumentError("does not have three inputs");
  }
  const auto add = [&](absl::string_view op, std::vector<ValueId> inputs, Attributes attributes) {
    return graph.node(graph.AddNode(op, std::move(inputs), std::move(attributes))).outputs[0];
  };
  const auto constant = [&](std::vector<int64_t> values) {
    return graph.AddConstant("", Tensor::Int64s(values));
  };
  const int64_t groups = draft.attributes.Int("num_groups", 0);
  if (groups < 1) return absl::InvalidArgumentError("attribute 'num_groups' is missing");
  const ValueId channels =
      add("Shape", {draft.inputs[0]}, {{"start", int64_t{1}}, {"end", int64_t{2}}});
  const ValueId each = add("Div", {channels, constant({groups})}, {});
  const ValueId target = add("Concat", {constant({groups}), each}, {{"axis", int64_t{0}}});
  for (size_t i : {1, 2}) {
    const ValueId column = add("Reshape", {draft.inputs[i], constant({groups, 1})}, {});
    const ValueId spread = add("Expand", {column, target}, {});
    draft.inputs[i] = add("Reshape", {spread, constant({-1})}, {});
  }
  return absl::OkStatus();
}

// x * sigmoid(alpha * x) under its name in ONNX, where alpha is 1 by default.
absl::Status SwishIsQuickGelu(NodeDraft& draft, Graph&) {
  draft.op = "com.microsoft.QuickGelu";
  if (!draft.attributes.Has("alpha")) draft.attributes.Set("alpha", 1.0f);
  return absl::OkStatus();
}

absl::Status SwiGluIsSwishTimes(NodeDraft& draft, Graph& graph) {
  if (draft.inputs.size() != 2 || draft.inputs[0] == kNone || draft.inputs[1] == kNone) {
    return absl::InvalidArgumentError("does not have two inputs");
  }
  const NodeId gate = graph.AddNode("com.microsoft.QuickGelu", {draft.inputs[0]},
                                    {{"alpha", draft.attributes.Float("alpha", 1.0f)}});
  draft.op = "Mul";
  draft.attributes = {};
  draft.inputs[0] = graph.node(gate).outputs[0];
  return absl::OkStatus();
}

// Ops that onnxruntime had before ONNX, in the same form.
absl::Status MicrosoftsIsOnnxs(NodeDraft& draft, Graph&) {
  draft.op = std::string(absl::StripPrefix(draft.op, "com.microsoft."));
  return absl::OkStatus();
}

struct RewriteRow {
  absl::string_view op;
  int64_t below;  // applies to opset versions below this one
  NodeRewrite* rewrite;
};

constexpr int64_t kAlways = std::numeric_limits<int64_t>::max();

// Rows of one op apply in order.
constexpr RewriteRow kRewrites[] = {
    {"Add", 7, LimitedBroadcast},
    {"Sub", 7, LimitedBroadcast},
    {"Mul", 7, LimitedBroadcast},
    {"Div", 7, LimitedBroadcast},
    {"Pow", 7, LimitedBroadcast},
    {"And", 7, LimitedBroadcast},
    {"Or", 7, LimitedBroadcast},
    {"Xor", 7, LimitedBroadcast},
    {"Equal", 7, LimitedBroadcast},
    {"Less", 7, LimitedBroadcast},
    {"Greater", 7, LimitedBroadcast},
    {"BatchNormalization", 14, BatchNormalizationInference},
    {"BatchNormalization", kAlways, BatchStatisticsInSteps},
    {"BlackmanWindow", kAlways, BlackmanWindowInSteps},
    {"Cast", 6, CastFromName},
    {"Cast", kAlways, CastToText},
    {"CenterCropPad", kAlways, CenterCropPadIsPad},
    {"Clip", 11, ClipToInputs},
    {"Concat", 4, ConcatAxis},
    {"ConvInteger", kAlways, ConvIntegerInSteps},
    {"DFT", 20, TransformAxisToInput},
    {"DFT", kAlways, DftInSteps},
    {"Dropout", 12, DropoutDefaults},
    {"GRU", 7, DropOutputSequence},
    {"Gemm", 7, DropBroadcast},
    {"GroupNormalization", 21, GroupsToChannels},
    {"HammingWindow", kAlways, HammingWindowInSteps},
    {"HannWindow", kAlways, HannWindowInSteps},
    {"Hardmax", 13, FlattenAround},
    {"LSTM", 7, DropOutputSequence},
    {"LogSoftmax", 13, FlattenAround},
    {"LpNormalization", kAlways, LpNormalizationInSteps},
    {"MeanVarianceNormalization", kAlways, MeanVarianceInSteps},
    {"PRelu", 7, SlopePerChannel},
    {"Pad", 11, PadToInputs},
    {"QLinearConv", kAlways, QLinearConvInSteps},
    {"RNN", 7, DropOutputSequence},
    {"ReduceL1", 18, AxesToInput},
    {"ReduceL2", 18, AxesToInput},
    {"ReduceLogSum", 18, AxesToInput},
    {"ReduceLogSumExp", 18, AxesToInput},
    {"ReduceMax", 18, AxesToInput},
    {"ReduceMean", 18, AxesToInput},
    {"ReduceMin", 18, AxesToInput},
    {"ReduceProd", 18, AxesToInput},
    {"ReduceSum", 13, AxesToInput},
    {"ReduceSumSquare", 18, AxesToInput},
    {"Reshape", 5, ShapeToInput},
    {"Resize", 11, ResizeAtCorner},
    {"RoiAlign", 16, RegionsAtCorner},
    {"STFT", kAlways, StftInSteps},
    {"Scatter", 11, ScatterIsScatterElements},
    {"Selu", 6, SeluDefaults},
    {"SimplifiedLayerNormalization", kAlways, SimplifiedIsRms},
    {"Slice", 10, SliceToInputs},
    {"Softmax", 13, FlattenAround},
    {"Split", 13, SplitToInput},
    {"Squeeze", 13, AxesToInput},
    {"SwiGLU", kAlways, SwiGluIsSwishTimes},
    {"Swish", kAlways, SwishIsQuickGelu},
    {"TopK", 10, TopKToInput},
    {"Unsqueeze", 13, AxesToInput},
    {"Upsample", kAlways, UpsampleIsResize},
    {"ai.onnx.ml.ArrayFeatureExtractor", kAlways, ArrayFeatureExtractorInSteps},
    {"ai.onnx.ml.Binarizer", kAlways, BinarizerInSteps},
    {"ai.onnx.ml.CastMap", kAlways, RefuseMaps},
    {"ai.onnx.ml.CategoryMapper", kAlways, CategoryMapperInSteps},
    {"ai.onnx.ml.DictVectorizer", kAlways, RefuseMaps},
    {"ai.onnx.ml.FeatureVectorizer", kAlways, FeatureVectorizerInSteps},
    {"ai.onnx.ml.Imputer", kAlways, ImputerInSteps},
    {"ai.onnx.ml.LabelEncoder", kAlways, LabelEncoderInSteps},
    {"ai.onnx.ml.LinearClassifier", kAlways, LinearClassifierInSteps},
    {"ai.onnx.ml.LinearRegressor", kAlways, LinearRegressorInSteps},
    {"ai.onnx.ml.Normalizer", kAlways, NormalizerInSteps},
    {"ai.onnx.ml.OneHotEncoder", kAlways, OneHotEncoderInSteps},
    {"ai.onnx.ml.SVMClassifier", kAlways, SvmClassifierInSteps},
    {"ai.onnx.ml.SVMRegressor", kAlways, SvmRegressorInSteps},
    {"ai.onnx.ml.Scaler", kAlways, ScalerInSteps},
    {"ai.onnx.ml.TreeEnsemble", kAlways, TreeEnsembleInSteps},
    {"ai.onnx.ml.TreeEnsembleClassifier", kAlways, TreeClassifierInSteps},
    {"ai.onnx.ml.TreeEnsembleRegressor", kAlways, TreeRegressorInSteps},
    {"ai.onnx.ml.ZipMap", kAlways, ZipMapIsItsTensor},
    {"com.microsoft.CDist", kAlways, CDistInSteps},
    {"com.microsoft.DequantizeLinear", kAlways, MicrosoftsIsOnnxs},
    {"com.microsoft.DynamicQuantizeLSTM", kAlways, DynamicQuantizeLstmInSteps},
    {"com.microsoft.DynamicQuantizeMatMul", kAlways, DynamicQuantizeMatMulInSteps},
    {"com.microsoft.FusedConv", kAlways, FusedConvInSteps},
    {"com.microsoft.FusedGemm", kAlways, FusedGemmInSteps},
    {"com.microsoft.GatherBlockQuantized", kAlways, GatherBlockQuantizedInSteps},
    {"com.microsoft.GroupQueryAttention", kAlways, GroupQueryAttentionInSteps},
    {"com.microsoft.MatMulIntegerToFloat", kAlways, MatMulIntegerToFloatInSteps},
    {"com.microsoft.MatMulNBits", kAlways, MatMulNBitsInSteps},
    {"com.microsoft.MultiHeadAttention", kAlways, MultiHeadAttentionTakenApart},
    {"com.microsoft.QEmbedLayerNormalization", kAlways, QEmbedLayerNormInSteps},
    {"com.microsoft.QGemm", kAlways, QGemmInSteps},
    {"com.microsoft.QLinearAdd", kAlways, QLinearAddInSteps},
    {"com.microsoft.QLinearAveragePool", kAlways, QLinearAveragePoolInSteps},
    {"com.microsoft.QLinearConcat", kAlways, QLinearConcatInSteps},
    {"com.microsoft.QLinearConv", kAlways, QLinearConvInSteps},
    {"com.microsoft.QLinearGlobalAveragePool", kAlways, QLinearGlobalAveragePoolInSteps},
    {"com.microsoft.QLinearLeakyRelu", kAlways, QLinearLeakyReluInSteps},
    {"com.microsoft.QLinearMul", kAlways, QLinearMulInSteps},
    {"com.microsoft.QLinearSigmoid", kAlways, QLinearSigmoidInSteps},
    {"com.microsoft.QLinearSoftmax", kAlways, QLinearSoftmaxInSteps},
    {"com.microsoft.QLinearWhere", kAlways, QLinearWhereInSteps},
    {"com.microsoft.Gelu", kAlways, MicrosoftGeluIsGelu},
    {"com.microsoft.QuantizeLinear", kAlways, MicrosoftsIsOnnxs},
    {"com.microsoft.SimplifiedLayerNormalization", kAlways, SimplifiedIsRms},
    {"com.microsoft.Trilu", kAlways, MicrosoftsIsOnnxs},
    {"ggml.Dequantize", kAlways, GgmlDequantizeIsStoredFloats},
};

}  // namespace

bool HasRewrite(const NodeDraft& draft) {
  for (const RewriteRow& row : kRewrites) {
    if (row.op == draft.op && draft.version < row.below) return true;
  }
  return false;
}

absl::Status RewriteToNewest(NodeDraft& draft, Graph& graph) {
  for (const RewriteRow& row : kRewrites) {
    if (row.op == draft.op && draft.version < row.below) {
      RETURN_IF_ERROR(row.rewrite(draft, graph));
    }
  }
  return absl::OkStatus();
}

}  // namespace reprise
