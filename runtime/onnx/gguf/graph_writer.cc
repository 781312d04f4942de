#include "runtime/onnx/gguf/graph_writer.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/graph/tensor.h"
#include "runtime/ops/weights/block_formats.h"

namespace reprise {
namespace {

constexpr char kMicrosoft[] = "com.microsoft", kGgml[] = "ggml";
constexpr int kOpset = 23;

void SetDims(const std::vector<GraphWriter::Dim>& dims, onnx::ValueInfoProto& info, int type) {
  auto& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  tensor.mutable_shape();
  for (const GraphWriter::Dim& dim : dims) {
    auto& to = *tensor.mutable_shape()->add_dim();
    if (const auto* size = std::get_if<int64_t>(&dim)) {
      to.set_dim_value(*size);
    } else {
      to.set_dim_param(std::get<std::string>(dim));
    }
  }
}

int OnnxTypeOf(const GgufTensor& tensor) {
  switch (tensor.type) {
    case 0:
      return onnx::TensorProto::FLOAT;
    case 1:
      return onnx::TensorProto::FLOAT16;
    case 30:
      return onnx::TensorProto::BFLOAT16;
    default:
      return onnx::TensorProto::UINT8;
  }
}

}  // namespace

std::string GraphWriter::Next(const std::string& hint) { return absl::StrCat(hint, "_", ++names_); }

void GraphWriter::NodeInto(const std::string& op, const std::vector<std::string>& inputs,
                           const std::vector<std::string>& outputs,
                           const std::vector<Setting>& settings) {
  onnx::NodeProto& node = *graph_.add_node();
  const size_t dot = op.rfind('.');
  node.set_op_type(dot == std::string::npos ? op : op.substr(dot + 1));
  if (dot != std::string::npos) node.set_domain(op.substr(0, dot));
  for (const std::string& input : inputs) node.add_input(input);
  for (const std::string& output : outputs) node.add_output(output);
  node.set_name(outputs.front());
  for (const auto& [name, value] : settings) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    if (const auto* number = std::get_if<int64_t>(&value)) {
      attribute.set_type(onnx::AttributeProto::INT);
      attribute.set_i(*number);
    } else if (const auto* real = std::get_if<float>(&value)) {
      attribute.set_type(onnx::AttributeProto::FLOAT);
      attribute.set_f(*real);
    } else if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
      attribute.set_type(onnx::AttributeProto::INTS);
      for (const int64_t number : *list) attribute.add_ints(number);
    } else {
      attribute.set_type(onnx::AttributeProto::STRING);
      attribute.set_s(std::get<std::string>(value));
    }
  }
}

std::string GraphWriter::Node(const std::string& op, const std::vector<std::string>& inputs,
                              const std::vector<Setting>& settings, int outputs) {
  std::vector<std::string> names;
  names.reserve(static_cast<size_t>(outputs));
  for (int i = 0; i < outputs; ++i) names.push_back(Next(op));
  NodeInto(op, inputs, names, settings);
  return names.front();
}

std::string GraphWriter::Result(int i) const {
  return graph_.node(graph_.node_size() - 1).output(i);
}

std::string GraphWriter::Floats(const std::vector<float>& values,
                                const std::vector<int64_t>& dims) {
  onnx::TensorProto& tensor = *graph_.add_initializer();
  tensor.set_name(Next("floats"));
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  for (const int64_t dim : dims) tensor.add_dims(dim);
  tensor.set_raw_data(values.data(), values.size() * sizeof(float));
  return tensor.name();
}

std::string GraphWriter::Ints(const std::vector<int64_t>& values, bool scalar) {
  onnx::TensorProto& tensor = *graph_.add_initializer();
  tensor.set_name(Next("ints"));
  tensor.set_data_type(onnx::TensorProto::INT64);
  if (!scalar) tensor.add_dims(static_cast<int64_t>(values.size()));
  tensor.set_raw_data(values.data(), values.size() * sizeof(int64_t));
  return tensor.name();
}

const GgufTensor* GraphWriter::Use(const std::string& tensor) {
  const GgufTensor* const found = file_.Tensor(tensor);
  if (found == nullptr) {
    Fail(absl::InvalidArgumentError(absl::StrCat("there is no tensor '", tensor, "'")));
  }
  used_.insert(tensor);
  return found;
}

std::string GraphWriter::Stored(const std::string& name, const GgufTensor& tensor) {
  if (!stored_.insert(name).second) return name;
  onnx::TensorProto& proto = *graph_.add_initializer();
  proto.set_name(name);
  proto.set_data_type(OnnxTypeOf(tensor));
  for (const int64_t dim : tensor.dims) proto.add_dims(dim);
  if (const ops::BlockFormat* format = ops::FindBlockFormat(tensor.type); format != nullptr) {
    const int last = proto.dims_size() - 1;
    proto.set_dims(last, proto.dims(last) / format->numbers * format->bytes);
  }
  proto.set_data_location(onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] :
       {std::pair<std::string, std::string>("location", file_.files()[tensor.file].name),
        {"offset", absl::StrCat(tensor.offset)},
        {"length", absl::StrCat(tensor.bytes)}}) {
    auto& entry = *proto.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  }
  return name;
}

std::string GraphWriter::AsFloats(const std::string& value, const GgufTensor& tensor) {
  if (const ops::BlockFormat* format = ops::FindBlockFormat(tensor.type); format != nullptr) {
    return Node(absl::StrCat(kGgml, ".Dequantize"), {value},
                {{"format", std::string(format->name)}});
  }
  if (tensor.type == 0) return value;
  return Node("Cast", {value}, {{"to", int64_t{onnx::TensorProto::FLOAT}}});
}

const GgufTensor* GraphWriter::Matrix(const std::string& tensor, int64_t rows, int64_t columns) {
  const GgufTensor* const found = Use(tensor);
  if (found == nullptr) return nullptr;
  const bool fits = found->dims.size() == 2 && (rows < 0 || found->dims[0] == rows) &&
                    (columns < 0 || found->dims[1] == columns);
  if (fits) return found;
  const auto text = [](int64_t size) { return size < 0 ? std::string("any") : absl::StrCat(size); };
  Fail(absl::InvalidArgumentError(
      absl::StrCat("tensor '", tensor, "' has the shape ",
                   ShapeToString(Shape(found->dims.begin(), found->dims.end())), ", expected [",
                   text(rows), ", ", text(columns), "]")));
  return nullptr;
}

int64_t GraphWriter::Rows(const std::string& tensor) {
  const GgufTensor* const found = Matrix(tensor, -1, -1);
  return found == nullptr ? 0 : found->dims[0];
}

std::string GraphWriter::Vector(const std::string& tensor, int64_t size) {
  const GgufTensor* const found = Use(tensor);
  if (found == nullptr) return "";
  if (found->dims != std::vector<int64_t>{size} || ops::FindBlockFormat(found->type) != nullptr) {
    Fail(absl::InvalidArgumentError(
        absl::StrCat("tensor '", tensor, "' has the shape ",
                     ShapeToString(Shape(found->dims.begin(), found->dims.end())), ", expected [",
                     size, "] of floats")));
    return "";
  }
  return AsFloats(Stored(tensor, *found), *found);
}

std::vector<float> GraphWriter::VectorValues(const std::string& tensor, int64_t size) {
  const GgufTensor* const found = Use(tensor);
  if (found == nullptr) return {};
  if (found->dims != std::vector<int64_t>{size} || found->type != 0) {
    Fail(absl::InvalidArgumentError(absl::StrCat("tensor '", tensor, "' is not ", size, " F32")));
    return {};
  }
  std::vector<float> values(static_cast<size_t>(size));
  const absl::string_view bytes = file_.files()[found->file].bytes.bytes;
  std::memcpy(values.data(), bytes.data() + found->offset, values.size() * sizeof(float));
  return values;
}

std::string GraphWriter::Lookup(const std::string& tensor, const std::string& ids,
                                int64_t columns) {
  const GgufTensor* const found = Matrix(tensor, -1, columns);
  if (found == nullptr) return "";
  return AsFloats(Node("Gather", {Stored(tensor, *found), ids}), *found);
}

std::string GraphWriter::Linear(const std::string& x, const std::string& name, Sizes sizes) {
  const std::string weight = name + ".weight", bias = name + ".bias";
  const GgufTensor* const found = Matrix(weight, sizes.outputs, sizes.inputs);
  if (found == nullptr) return "";
  const std::string rows = AsFloats(Stored(weight, *found), *found);
  std::string product = Node("MatMul", {x, Node("Transpose", {rows})});
  if (!Has(bias)) return product;
  return Node("Add", {product, Vector(bias, found->dims[0])});
}

void GraphWriter::Input(const std::string& name, int type, const std::vector<Dim>& dims) {
  onnx::ValueInfoProto& info = *graph_.add_input();
  info.set_name(name);
  SetDims(dims, info, type);
}

void GraphWriter::Output(const std::string& name, const std::vector<Dim>& dims) {
  onnx::ValueInfoProto& info = *graph_.add_output();
  info.set_name(name);
  SetDims(dims, info, onnx::TensorProto::FLOAT);
}

absl::StatusOr<onnx::ModelProto> GraphWriter::Finish() {
  if (!status_.ok()) return status_;
  for (const auto& [name, tensor] : file_.tensors()) {
    if (used_.contains(name)) continue;
    return absl::UnimplementedError(
        absl::StrCat("tensor '", name, "' has no place in this architecture as it is known"));
  }
  model_.set_ir_version(10);
  model_.set_producer_name("GGUF");
  graph_.set_name("gguf");
  for (const auto& [domain, version] :
       {std::pair<const char*, int64_t>("", kOpset), {kMicrosoft, 1}, {kGgml, 1}}) {
    auto& opset = *model_.add_opset_import();
    opset.set_domain(domain);
    opset.set_version(version);
  }
  return std::move(model_);
}

}  // namespace reprise
