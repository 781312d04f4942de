// Builds small ONNX models for the importer's tests.
#pragma once

#include <string>
#include <vector>

#include "runtime/onnx/file/onnx_proto.h"

namespace reprise {

inline constexpr char kMicrosoft[] = "com.microsoft";

class ModelBuilder {
 public:
  explicit ModelBuilder(int64_t opset = 17) {
    model_.set_ir_version(8);
    auto* import = model_.add_opset_import();
    import->set_domain("");
    import->set_version(opset);
  }

  onnx::ModelProto& model() { return model_; }
  onnx::GraphProto& graph() { return *model_.mutable_graph(); }

  // Sets the type: a dim is a number ("3"), a symbol ("batch") or unnamed ("").
  static void SetType(onnx::ValueInfoProto* info, const std::string& name, int type,
                      const std::vector<std::string>& dims) {
    info->set_name(name);
    auto* tensor = info->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    tensor->mutable_shape();
    for (const std::string& dim : dims) {
      auto* proto = tensor->mutable_shape()->add_dim();
      if (dim.empty()) continue;
      if (dim[0] == '-' || (dim[0] >= '0' && dim[0] <= '9')) {
        proto->set_dim_value(std::stoll(dim));
      } else {
        proto->set_dim_param(dim);
      }
    }
  }
  ModelBuilder& Input(const std::string& name, const std::vector<std::string>& dims,
                      int type = onnx::TensorProto::FLOAT) {
    SetType(graph().add_input(), name, type, dims);
    return *this;
  }
  ModelBuilder& Output(const std::string& name) {
    graph().add_output()->set_name(name);
    return *this;
  }
  onnx::NodeProto& Node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs, const std::string& name = "n",
                        const std::string& domain = "") {
    auto* node = graph().add_node();
    node->set_op_type(op);
    node->set_name(name);
    node->set_domain(domain);
    for (const auto& input : inputs) node->add_input(input);
    for (const auto& output : outputs) node->add_output(output);
    return *node;
  }
  template <typename T>
  onnx::TensorProto& Initializer(const std::string& name, int type,
                                 const std::vector<int64_t>& dims, const std::vector<T>& values) {
    auto* tensor = graph().add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(type);
    for (int64_t dim : dims) tensor->add_dims(dim);
    tensor->set_raw_data(values.data(), values.size() * sizeof(T));
    return *tensor;
  }
  onnx::TensorProto& Floats(const std::string& name, const std::vector<int64_t>& dims,
                            const std::vector<float>& values) {
    return Initializer(name, onnx::TensorProto::FLOAT, dims, values);
  }

  std::string Bytes() const { return model_.SerializeAsString(); }

 private:
  onnx::ModelProto model_;
};

inline void SetAttribute(onnx::NodeProto& node, const std::string& name, int64_t value) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INT);
  attribute->set_i(value);
}
inline void SetAttribute(onnx::NodeProto& node, const std::string& name, float value) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::FLOAT);
  attribute->set_f(value);
}
inline void SetAttribute(onnx::NodeProto& node, const std::string& name, const std::string& value) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::STRING);
  attribute->set_s(value);
}
inline void SetAttribute(onnx::NodeProto& node, const std::string& name,
                         const std::vector<int64_t>& values) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INTS);
  for (int64_t value : values) attribute->add_ints(value);
}
inline void SetAttribute(onnx::NodeProto& node, const std::string& name,
                         const std::vector<float>& values) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::FLOATS);
  for (float value : values) attribute->add_floats(value);
}
inline void SetAttribute(onnx::NodeProto& node, const std::string& name,
                         const std::vector<std::string>& values) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::STRINGS);
  for (const std::string& value : values) attribute->add_strings(value);
}

// Adds a subgraph as attribute `name`.
inline onnx::GraphProto& AddBranch(onnx::NodeProto& node, const std::string& name) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::GRAPH);
  return *attribute->mutable_g();
}
inline onnx::NodeProto& AddBranchNode(onnx::GraphProto& branch, const std::string& op,
                                      const std::vector<std::string>& inputs,
                                      const std::string& output) {
  auto* node = branch.add_node();
  node->set_op_type(op);
  for (const auto& input : inputs) node->add_input(input);
  node->add_output(output);
  return *node;
}

// y = condition ? Relu(x) : Neg(x), by an If with the name 'choice'.
inline void AddChoice(ModelBuilder& b, const std::string& condition) {
  auto& node = b.Node("If", {condition}, {"y"}, "choice");
  onnx::GraphProto& first = AddBranch(node, "then_branch");
  AddBranchNode(first, "Relu", {"x"}, "r");
  first.add_output()->set_name("r");
  onnx::GraphProto& second = AddBranch(node, "else_branch");
  AddBranchNode(second, "Neg", {"x"}, "r");
  second.add_output()->set_name("r");
}

// y_i = Relu(x_i) of [len_i, 4], for each of `axes` axes that have nothing to do with each other.
inline ModelBuilder ManyLengths(int axes) {
  ModelBuilder b;
  for (int i = 0; i < axes; ++i) {
    const std::string number = std::to_string(i);
    b.Input("x" + number, {"len_" + number, "4"}).Output("y" + number);
    b.Node("Relu", {"x" + number}, {"y" + number});
  }
  return b;
}

}  // namespace reprise
