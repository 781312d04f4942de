#include "runtime/ops/result_types.h"

#include "runtime/ops/loop.h"
#include "runtime/ops/onnx_types.h"
#include "runtime/ops/op.h"

namespace reprise {
namespace {

constexpr size_t kEveryResult = SIZE_MAX;

// Result `result` of `op` has the dtype of operand `like`, or `dtype` where that is -1.
struct TypeRow {
  absl::string_view op;
  size_t result;
  int like;
  DType dtype = DType::kUndefined;
};

// All that is not like operand 0; of an op with several rows the first that fits.
constexpr TypeRow kRows[] = {
    {"And", 0, -1, DType::kBool},
    {"ArgMax", 0, -1, DType::kInt64},
    {"ArgMin", 0, -1, DType::kInt64},
    {"Attention", 1, 1},
    {"Attention", 2, 2},
    {"CastLike", 0, 1},
    {"DequantizeLinear", 0, 1},
    {"Dropout", 1, -1, DType::kBool},
    {"DynamicQuantizeLinear", 1, -1, DType::kFloat32},
    {"DynamicQuantizeLinear", kEveryResult, -1, DType::kUInt8},
    {"Equal", 0, -1, DType::kBool},
    {"Greater", 0, -1, DType::kBool},
    {"GreaterOrEqual", 0, -1, DType::kBool},
    {"IsInf", 0, -1, DType::kBool},
    {"IsNaN", 0, -1, DType::kBool},
    {"Less", 0, -1, DType::kBool},
    {"LessOrEqual", 0, -1, DType::kBool},
    {"MatMulInteger", 0, -1, DType::kInt32},
    {"MaxPool", 1, -1, DType::kInt64},
    {"NonMaxSuppression", 0, -1, DType::kInt64},
    {"NonZero", 0, -1, DType::kInt64},
    {"Not", 0, -1, DType::kBool},
    {"OneHot", 0, 2},
    {"Or", 0, -1, DType::kBool},
    {"QLinearMatMul", 0, 7},
    {"Shape", 0, -1, DType::kInt64},
    {"Size", 0, -1, DType::kInt64},
    {"TopK", 1, -1, DType::kInt64},
    {"Unique", 0, 0},
    {"Unique", kEveryResult, -1, DType::kInt64},
    {"Where", 0, 1},
    {"Xor", 0, -1, DType::kBool},
    {"com.microsoft.EmbedLayerNormalization", 1, -1, DType::kInt32},
    {"com.microsoft.EmbedLayerNormalization", kEveryResult, 2},
    {"com.microsoft.QAttention", 0, 3},
    {"reprise.ClassScores", 1, -1, DType::kInt64},
    {"reprise.DequantizeBits", 0, 1},
    {"reprise.IntegerLinear", 0, -1, DType::kFloat32},
    {"reprise.SegmentDynamicQuantizeLinear", 1, -1, DType::kFloat32},
    {"reprise.SegmentDynamicQuantizeLinear", kEveryResult, -1, DType::kUInt8},
    {"reprise.IntegerConv", 0, -1, DType::kFloat32},
    {"reprise.CategoryIndex", 0, -1, DType::kInt64},
    {"reprise.SvmScores", 1, -1, DType::kInt64},
    {"reprise.TreeEnsemble", 0, -1, DType::kFloat64},
};

DType Numbered(int64_t number) {
  const absl::StatusOr<DType> dtype = ops::DTypeFromOnnx(number);
  return dtype.ok() ? *dtype : DType::kUndefined;
}

DType TypeOf(const Node& node, size_t result, const std::vector<DType>& types) {
  const auto like = [&](size_t i) {
    const ValueId input = node.input(i);
    return input == kNone ? DType::kUndefined : types[input];
  };
  const Attributes& attributes = node.attributes;
  if (node.op == "Cast") return Numbered(attributes.Int("to", 0));
  for (absl::string_view op : {"Bernoulli", "EyeLike", "RandomNormalLike", "RandomUniformLike"}) {
    if (node.op == op && attributes.Has("dtype")) return Numbered(attributes.Int("dtype", 0));
  }
  if (node.op == "RandomNormal" || node.op == "RandomUniform") {
    return Numbered(attributes.Int("dtype", 1));
  }
  if (node.op == "LayerNormalization" && result > 0)
    return Numbered(attributes.Int("stash_type", 1));
  if (node.op == "ConstantOfShape") {
    const Tensor* value = attributes.Get<Tensor>("value");
    return value == nullptr ? DType::kFloat32 : value->dtype();
  }
  if (node.op == "QuantizeLinear") {
    if (node.input(2) != kNone) return like(2);
    const int64_t number = attributes.Int("output_dtype", 0);
    return number == 0 ? DType::kUInt8 : Numbered(number);
  }
  if (node.op == "reprise.ClassScores" && result == 0) {
    return attributes.Int("double", 0) != 0 ? DType::kFloat64 : DType::kFloat32;
  }
  if (node.op == "If") {
    const size_t results = node.inputs.size() / 2;
    const DType first = like(1 + result), second = like(1 + result + results);
    if (first == DType::kUndefined) return second;
    return first == second || second == DType::kUndefined ? first : DType::kUndefined;
  }
  if (node.op == "reprise.LoopStep") {
    const std::vector<int64_t> declared = attributes.Ints("dtypes");
    return result < declared.size() ? Numbered(declared[result]) : DType::kUndefined;
  }
  if (node.op == "Loop") {
    const LoopParts parts(node);
    const DType first =
        result < parts.carried ? like(LoopParts::kFirstCarried + result) : DType::kUndefined;
    return first != DType::kUndefined ? first : like(parts.first_result + 1 + result);
  }
  for (const TypeRow& row : kRows) {
    if (row.op != node.op || (row.result != result && row.result != kEveryResult)) continue;
    return row.like < 0 ? row.dtype : like(static_cast<size_t>(row.like));
  }
  return like(0);
}

}  // namespace

std::vector<DType> ResultTypes(const Graph& graph) {
  std::vector<DType> types(graph.num_values(), DType::kUndefined);
  for (ValueId id = 0; id < static_cast<ValueId>(graph.num_values()); ++id) {
    if (graph.value(id).kind != Value::Kind::kResult) types[id] = graph.value(id).dtype;
  }
  for (const NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNone) types[node.outputs[i]] = TypeOf(node, i, types);
    }
  }
  return types;
}

}  // namespace reprise
