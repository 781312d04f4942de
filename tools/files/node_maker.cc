#include "tools/files/node_maker.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace reprise::cli {

NodeMaker::NodeMaker(onnx::ModelProto& model) : graph_(*model.mutable_graph()) {
  for (const auto& opset : model.opset_import()) {
    if (opset.domain().empty() || opset.domain() == "ai.onnx") opset_ = opset.version();
  }
  for (const auto& node : graph_.node()) taken_.insert(node.output().begin(), node.output().end());
  for (const auto& tensor : graph_.initializer()) taken_.insert(tensor.name());
  for (const auto& input : graph_.input()) taken_.insert(input.name());
}

std::string NodeMaker::Unique(const std::string& wanted) {
  std::string name = wanted;
  for (int i = 1; !taken_.insert(name).second; ++i) name = absl::StrCat(wanted, "_", i);
  return name;
}

std::string NodeMaker::Add(const std::string& op, const std::vector<std::string>& inputs,
                           int outputs) {
  onnx::NodeProto& node = added_.emplace_back();
  node.set_op_type(op);
  for (const std::string& input : inputs) node.add_input(input);
  for (int i = 0; i < outputs; ++i) node.add_output(Unique(absl::StrCat(prefix_, "/", op)));
  node.set_name(node.output(0));
  return node.output(0);
}

void NodeMaker::SetInt(const char* name, int64_t value) {
  auto& attribute = *added_.back().add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
}

void NodeMaker::SetInts(const char* name, const std::vector<int64_t>& values) {
  auto& attribute = *added_.back().add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INTS);
  for (const int64_t value : values) attribute.add_ints(value);
}

std::string NodeMaker::OutputOf(const std::string& first, int output) const {
  for (const onnx::NodeProto& node : added_) {
    if (node.output(0) == first) return node.output(output);
  }
  return "";
}

void NodeMaker::Rename(const std::string& value, const std::string& name) {
  for (onnx::NodeProto& node : added_) {
    for (std::string& input : *node.mutable_input()) {
      if (input == value) input = name;
    }
    for (std::string& output : *node.mutable_output()) {
      if (output == value) output = name;
    }
  }
}

std::vector<onnx::NodeProto> NodeMaker::TakeNodes() { return std::exchange(added_, {}); }

std::string NodeMaker::Unsqueeze(const std::string& value, const std::vector<int64_t>& axes) {
  if (opset_ >= 13) return Add("Unsqueeze", {value, Ints(axes)});
  const std::string result = Add("Unsqueeze", {value});
  SetInts("axes", axes);
  return result;
}

std::string NodeMaker::Reduce(const std::string& op, const std::string& value,
                              const std::vector<int64_t>& axes, bool keepdims) {
  const bool as_input = opset_ >= 18 || (op == "ReduceSum" && opset_ >= 13);
  const std::string result = as_input ? Add(op, {value, Ints(axes)}) : Add(op, {value});
  if (!as_input) SetInts("axes", axes);
  SetInt("keepdims", keepdims ? 1 : 0);
  return result;
}

std::string NodeMaker::Range(const std::string& count) {
  return Add("Range", {Int(0), count, Int(1)});
}

std::string NodeMaker::ReduceMasked(const std::string& op, const std::string& value,
                                    const std::string& mask, const std::vector<int64_t>& axes,
                                    bool keepdims,
                                    const std::function<std::string(float)>& number) {
  const bool mean = op == "ReduceMean";
  const std::string kept = Add("Where", {mask, value, number(static_cast<float>(*NeutralOf(op)))});
  std::string reduced = Reduce(mean ? "ReduceSum" : op, kept, axes, keepdims);
  if (!mean) return reduced;
  const std::string ones = Add("Where", {mask, number(1), number(0)});
  const std::string all = Add("Expand", {ones, Add("Shape", {value})});
  return Add("Div", {reduced, Reduce("ReduceSum", all, axes, keepdims)});
}

std::string NodeMaker::AddMaskOutput(const std::string& name, const std::string& mask) {
  for (auto& output : *graph_.mutable_output()) {
    if (output.name() == name) output.mutable_type()->mutable_tensor_type()->clear_shape();
  }
  std::string added = Unique(absl::StrCat(name, ".mask"));
  Rename(Add("Identity", {mask}), added);
  onnx::ValueInfoProto& output = *graph_.add_output();
  output.set_name(added);
  output.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::BOOL);
  return added;
}

std::string NodeMaker::Like(float constant, const std::string& value) {
  return opset_ >= 15 ? Add("CastLike", {Float(constant), value}) : Float(constant);
}

std::string NodeMaker::Int(int64_t value) {
  onnx::TensorProto& tensor = *graph_.add_initializer();
  tensor.set_name(Unique(absl::StrCat(prefix_, "/int")));
  tensor.set_data_type(onnx::TensorProto::INT64);
  tensor.add_int64_data(value);
  return tensor.name();
}

std::string NodeMaker::Ints(const std::vector<int64_t>& values) {
  onnx::TensorProto& tensor = *graph_.add_initializer();
  tensor.set_name(Unique(absl::StrCat(prefix_, "/ints")));
  tensor.set_data_type(onnx::TensorProto::INT64);
  tensor.add_dims(static_cast<int64_t>(values.size()));
  for (const int64_t value : values) tensor.add_int64_data(value);
  return tensor.name();
}

std::string NodeMaker::Float(float value, int dtype) {
  onnx::TensorProto& tensor = *graph_.add_initializer();
  tensor.set_name(Unique(absl::StrCat(prefix_, "/number")));
  tensor.set_data_type(dtype);
  switch (dtype) {
    case onnx::TensorProto::FLOAT:
      tensor.add_float_data(value);
      break;
    case onnx::TensorProto::DOUBLE:
      tensor.add_double_data(value);
      break;
    case onnx::TensorProto::INT64:
      tensor.add_int64_data(static_cast<int64_t>(value));
      break;
    default:
      tensor.add_int32_data(static_cast<int32_t>(value));
  }
  return tensor.name();
}

namespace {

const onnx::TensorProto* FindConstant(const onnx::GraphProto& graph, const std::string& value) {
  for (const auto& tensor : graph.initializer()) {
    if (tensor.name() == value) return &tensor;
  }
  for (const auto& node : graph.node()) {
    if (node.op_type() != "Constant" || node.output(0) != value) continue;
    for (const auto& attribute : node.attribute()) {
      if (attribute.name() == "value") return &attribute.t();
    }
  }
  return nullptr;
}

}  // namespace

std::optional<std::vector<int64_t>> ReadInts(const onnx::GraphProto& graph,
                                             const std::string& value) {
  for (const auto& node : graph.node()) {
    if (node.op_type() != "Constant" || node.output(0) != value) continue;
    for (const auto& attribute : node.attribute()) {
      if (attribute.name() == "value_int") return std::vector<int64_t>{attribute.i()};
      if (attribute.name() != "value_ints") continue;
      return std::vector<int64_t>(attribute.ints().begin(), attribute.ints().end());
    }
  }
  const onnx::TensorProto* const tensor = FindConstant(graph, value);
  if (tensor == nullptr) return std::nullopt;
  std::vector<int64_t> values(tensor->int64_data().begin(), tensor->int64_data().end());
  const std::string& raw = tensor->raw_data();
  if (tensor->data_type() == onnx::TensorProto::INT64) {
    if (!values.empty()) return values;
    values.resize(raw.size() / sizeof(int64_t));
    std::copy(raw.begin(), raw.begin() + static_cast<std::ptrdiff_t>(values.size() * 8),
              reinterpret_cast<char*>(values.data()));
    return values;
  }
  if (tensor->data_type() != onnx::TensorProto::INT32) return std::nullopt;
  values.assign(tensor->int32_data().begin(), tensor->int32_data().end());
  for (size_t i = 0; values.size() < raw.size() / sizeof(int32_t); ++i) {
    int32_t one = 0;
    std::copy_n(raw.data() + i * sizeof(one), sizeof(one), reinterpret_cast<char*>(&one));
    values.push_back(one);
  }
  return values;
}

std::optional<int> RankOfConstant(const onnx::GraphProto& graph, const std::string& value) {
  for (const auto& node : graph.node()) {
    if (node.op_type() != "Constant" || node.output(0) != value) continue;
    for (const auto& attribute : node.attribute()) {
      if (attribute.name() == "value_int" || attribute.name() == "value_float") return 0;
      if (attribute.name() == "value_ints" || attribute.name() == "value_floats") return 1;
    }
  }
  const onnx::TensorProto* const tensor = FindConstant(graph, value);
  if (tensor == nullptr) return std::nullopt;
  return tensor->dims_size();
}

bool HasOneElement(const onnx::GraphProto& graph, const std::string& value) {
  if (RankOfConstant(graph, value) == 0) return true;
  const onnx::TensorProto* const tensor = FindConstant(graph, value);
  return tensor != nullptr && std::all_of(tensor->dims().begin(), tensor->dims().end(),
                                          [](int64_t dim) { return dim == 1; });
}

int64_t IntAttribute(const onnx::NodeProto& node, const char* name, int64_t fallback) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == name) return attribute.i();
  }
  return fallback;
}

std::vector<int64_t> IntsAttribute(const onnx::NodeProto& node, const char* name) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == name) return {attribute.ints().begin(), attribute.ints().end()};
  }
  return {};
}

std::optional<double> NeutralOf(const std::string& reduction) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (reduction == "ReduceSum" || reduction == "ReduceMean" || reduction == "ReduceL1" ||
      reduction == "ReduceL2" || reduction == "ReduceSumSquare") {
    return 0;
  }
  if (reduction == "ReduceProd") return 1;
  if (reduction == "ReduceMax" || reduction == "ReduceLogSumExp") return -kInfinity;
  if (reduction == "ReduceMin") return kInfinity;
  return std::nullopt;
}

}  // namespace reprise::cli
