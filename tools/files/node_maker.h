// NodeMaker: new nodes and constants of an ONNX graph, with names that nothing else has.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/onnx/file/onnx_proto.h"

namespace reprise::cli {

class NodeMaker {
 public:
  // `model` outlives the maker.
  explicit NodeMaker(onnx::ModelProto& model);

  // New names begin with it.
  void SetPrefix(const std::string& prefix) { prefix_ = prefix; }
  // Returns `wanted`, with a number appended where a value of the graph has that name.
  std::string Unique(const std::string& wanted);

  // Adds a node after the ones made since TakeNodes; returns the name of its first output.
  std::string Add(const std::string& op, const std::vector<std::string>& inputs, int outputs = 1);
  // Adds a node as it is.
  void AddCopy(onnx::NodeProto node) { added_.push_back(std::move(node)); }
  // Attributes of the node that was added last.
  void SetInt(const char* name, int64_t value);
  void SetInts(const char* name, const std::vector<int64_t>& values);
  // Another output of the node that makes `first`.
  std::string OutputOf(const std::string& first, int output) const;
  // Renames the value that a node of these makes to `name`.
  void Rename(const std::string& value, const std::string& name);
  std::vector<onnx::NodeProto> TakeNodes();

  // In the form of the model's opset.
  std::string Unsqueeze(const std::string& value, const std::vector<int64_t>& axes);
  std::string Reduce(const std::string& op, const std::string& value,
                     const std::vector<int64_t>& axes, bool keepdims);
  // 0 up to `count`, which is left out.
  std::string Range(const std::string& count);
  // Reduces the elements of `value` that `mask` keeps; a mean divides by their number. `number`
  // makes a constant of the values' type.
  std::string ReduceMasked(const std::string& op, const std::string& value, const std::string& mask,
                           const std::vector<int64_t>& axes, bool keepdims,
                           const std::function<std::string(float)>& number);
  // Lets the output `name` have any size; makes `mask` an output, whose name it returns.
  std::string AddMaskOutput(const std::string& name, const std::string& mask);
  // `constant` with the type of `value`.
  std::string Like(float constant, const std::string& value);

  std::string Int(int64_t value);                        // a scalar
  std::string Ints(const std::vector<int64_t>& values);  // a list
  // Returns a number of no dims; of this TensorProto::DataType.
  std::string Float(float value, int dtype = onnx::TensorProto::FLOAT);

 private:
  onnx::GraphProto& graph_;
  int64_t opset_ = 0;
  std::string prefix_;
  std::set<std::string> taken_;
  std::vector<onnx::NodeProto> added_;
};

// Returns the integers of an initialiser or a Constant; nullopt where `value` is none.
std::optional<std::vector<int64_t>> ReadInts(const onnx::GraphProto& graph,
                                             const std::string& value);
std::optional<int> RankOfConstant(const onnx::GraphProto& graph, const std::string& value);
bool HasOneElement(const onnx::GraphProto& graph, const std::string& value);

// Returns an attribute of `node`; where it is absent `fallback`, or none.
int64_t IntAttribute(const onnx::NodeProto& node, const char* name, int64_t fallback);
std::vector<int64_t> IntsAttribute(const onnx::NodeProto& node, const char* name);

// Returns the value that changes no result of `reduction`, or nullopt for one that has none here.
std::optional<double> NeutralOf(const std::string& reduction);

}  // namespace reprise::cli
