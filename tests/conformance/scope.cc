#include "tests/conformance/scope.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/ops/kit/onnx_types.h"

namespace reprise {
namespace {

// The ops of models that people export. Sorted.
// clang-format off
constexpr absl::string_view kOps[] = {
    "Abs", "Acos", "Acosh", "Add", "And", "ArgMax", "ArgMin", "Asin", "Asinh", "Atan", "Atanh",
    "Attention", "AveragePool", "BatchNormalization", "BitShift", "BitwiseAnd", "BitwiseNot",
    "BitwiseOr", "BitwiseXor", "BlackmanWindow", "Cast", "CastLike", "Ceil", "Celu", "Clip",
    "Compress", "Concat", "ConcatFromSequence", "Constant", "ConstantOfShape", "Conv",
    "ConvInteger", "ConvTranspose", "Cos", "Cosh", "CumProd", "CumSum", "DFT", "DepthToSpace",
    "DequantizeLinear", "Div", "Dropout", "DynamicQuantizeLinear", "Einsum", "Elu", "Equal", "Erf",
    "Exp", "Expand", "EyeLike", "Flatten", "Floor", "GRU", "Gather", "GatherElements", "GatherND",
    "Gelu", "Gemm", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "Greater",
    "GreaterOrEqual", "GridSample", "GroupNormalization", "HammingWindow", "HannWindow",
    "HardSigmoid", "HardSwish", "Hardmax", "Identity", "If", "InstanceNormalization", "IsInf",
    "IsNaN", "LRN", "LSTM", "LayerNormalization", "LeakyRelu", "Less", "LessOrEqual", "Log",
    "LogSoftmax", "LpNormalization", "LpPool", "MatMul", "MatMulInteger", "Max", "MaxPool", "Mean",
    "MeanVarianceNormalization", "Min", "Mish", "Mod", "Mul", "Neg", "NonMaxSuppression", "NonZero",
    "Not", "OneHot", "Optional", "OptionalGetElement", "OptionalHasElement", "Or", "PRelu", "Pad",
    "Pow", "QLinearConv", "QLinearMatMul", "QuantizeLinear", "RMSNormalization", "RNN", "Range",
    "Reciprocal", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax",
    "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Relu", "Reshape",
    "Resize", "ReverseSequence", "RoiAlign", "RotaryEmbedding", "Round", "ScatterElements",
    "ScatterND", "Selu", "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase",
    "SequenceInsert", "SequenceLength", "Shape", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Size",
    "Slice", "Softmax", "Softplus", "Softsign", "SpaceToDepth", "Split", "SplitToSequence", "Sqrt",
    "Squeeze", "Sub", "Sum", "SwiGLU", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Tile", "TopK",
    "Transpose", "Trilu", "Unique", "Unsqueeze", "Upsample", "Where", "Xor",
};

// The ops of ai.onnx.ml. Sorted.
constexpr absl::string_view kClassicOps[] = {
    "ArrayFeatureExtractor", "Binarizer", "FeatureVectorizer", "Imputer", "LabelEncoder",
    "LinearClassifier", "LinearRegressor", "Normalizer", "OneHotEncoder", "SVMClassifier",
    "SVMRegressor", "Scaler", "TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor",
};
// clang-format on

bool IsKnown(const onnx::NodeProto& node) {
  const absl::string_view op = node.op_type();
  if (node.domain() == "ai.onnx.ml") {
    return std::binary_search(std::begin(kClassicOps), std::end(kClassicOps), op);
  }
  const bool standard = node.domain().empty() || node.domain() == "ai.onnx";
  return standard && std::binary_search(std::begin(kOps), std::end(kOps), op);
}

struct Exclusion {
  absl::string_view case_name;
  absl::string_view reason;
};

constexpr Exclusion kExclusions[] = {
    {"test_batchnorm_epsilon_training_mode", "training mode"},
    {"test_batchnorm_example_training_mode", "training mode"},
    {"test_averagepool_3d_dilations_large_count_include_pad_is_1_ceil_mode_is_True",
     "the expected values count what lies beyond the padding (onnxruntime agrees with us)"},
    {"test_batchnorm_epsilon_training_mode", "training mode"},
    {"test_batchnorm_example_training_mode", "training mode"},
    {"test_cast_FLOAT_to_BFLOAT16", "the suite truncates where conversions round to nearest"},
    {"test_castlike_FLOAT_to_BFLOAT16", "the suite truncates where conversions round to nearest"},
    {"test_castlike_FLOAT_to_BFLOAT16_expanded",
     "the suite truncates where conversions round to nearest"},
    {"test_qlinearmatmul_2D_int8_float16", "the expected values in this wheel are wrong"},
    {"test_qlinearmatmul_2D_int8_float32", "the expected values in this wheel are wrong"},
    {"test_qlinearmatmul_3D_int8_float16", "the expected values in this wheel are wrong"},
    {"test_qlinearmatmul_3D_int8_float32", "the expected values in this wheel are wrong"},
    {"test_resize_downsample_scales_cubic_align_corners",
     "the suite divides by the size before it is rounded down (onnxruntime agrees with us)"},
    {"test_resize_downsample_scales_cubic_antialias", "refused by name"},
    {"test_resize_downsample_scales_linear_align_corners",
     "the suite divides by the size before it is rounded down (onnxruntime agrees with us)"},
    {"test_resize_downsample_scales_linear_antialias", "refused by name"},
    {"test_resize_downsample_sizes_cubic_antialias", "refused by name"},
    {"test_resize_downsample_sizes_linear_antialias", "refused by name"},
    {"test_sequence_model1", "a position in a sequence is an input of the model"},
    {"test_sequence_model2", "a position in a sequence is an input of the model"},
    {"test_sequence_model3", "a position in a sequence is an input of the model"},
    {"test_sequence_model8", "the sizes of a sequence's pieces are an input of the model"},
    {"test_training_dropout", "training mode"},
    {"test_training_dropout_default", "training mode"},
    {"test_training_dropout_default_mask", "training mode"},
    {"test_training_dropout_mask", "training mode"},
    {"test_training_dropout_zero_ratio", "training mode"},
    {"test_training_dropout_zero_ratio_mask", "training mode"},
};

std::optional<std::string> TypeOutside(int64_t number) {
  const auto dtype = ops::DTypeFromOnnx(number);
  if (dtype.ok()) return std::nullopt;
  return std::string(dtype.status().message());
}

std::optional<std::string> ValueOutside(const onnx::ValueInfoProto& info) {
  if (!info.type().has_tensor_type()) return "a value that is no tensor";
  return TypeOutside(info.type().tensor_type().elem_type());
}

std::optional<std::string> GraphOutside(const onnx::GraphProto& graph) {
  for (const auto* list : {&graph.input(), &graph.output()}) {
    for (const auto& info : *list) {
      if (auto reason = ValueOutside(info)) return reason;
    }
  }
  for (const auto& tensor : graph.initializer()) {
    if (auto reason = TypeOutside(tensor.data_type())) return reason;
  }
  if (graph.sparse_initializer_size() > 0) return "sparse tensors";
  for (const auto& node : graph.node()) {
    if (!IsKnown(node)) {
      return absl::StrCat("op '", node.domain().empty() ? "" : absl::StrCat(node.domain(), "."),
                          node.op_type(), "'");
    }
    for (const auto& attribute : node.attribute()) {
      if (node.op_type() == "Cast" && attribute.name() == "to") {
        if (auto reason = TypeOutside(attribute.i())) return reason;
      }
      if (attribute.has_t()) {
        if (auto reason = TypeOutside(attribute.t().data_type())) return reason;
      }
      if (attribute.has_sparse_tensor()) return "sparse tensors";
      if (attribute.name() == "value_string" || attribute.name() == "value_strings") {
        return "dtype string is not supported";
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> OutsideScope(const onnx::ModelProto& model) {
  return GraphOutside(model.graph());
}

std::optional<std::string> ExclusionReason(const std::string& case_name) {
  for (const Exclusion& exclusion : kExclusions) {
    if (exclusion.case_name == case_name) return std::string(exclusion.reason);
  }
  return std::nullopt;
}

}  // namespace reprise
