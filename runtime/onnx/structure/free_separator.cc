#include "runtime/onnx/structure/free_separator.h"

#include <algorithm>

namespace reprise {
namespace {

// The longest run of '#' in the names that it is shown.
class LongestRun {
 public:
  void See(const std::string& name) {
    size_t run = 0;
    for (const char c : name) {
      run = c == '#' ? run + 1 : 0;
      longest_ = std::max(longest_, run);
    }
  }
  void See(const onnx::NodeProto& node) {
    See(node.name());
    for (const std::string& name : node.input()) See(name);
    for (const std::string& name : node.output()) See(name);
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g()) See(attribute.g());
    }
  }
  void See(const onnx::GraphProto& graph) {
    for (const auto& value : graph.input()) See(value.name());
    for (const auto& value : graph.output()) See(value.name());
    for (const auto& tensor : graph.initializer()) See(tensor.name());
    for (const auto& tensor : graph.sparse_initializer()) See(tensor.values().name());
    for (const onnx::NodeProto& node : graph.node()) See(node);
  }
  void See(const onnx::FunctionProto& function) {
    for (const std::string& name : function.input()) See(name);
    for (const std::string& name : function.output()) See(name);
    for (const onnx::NodeProto& node : function.node()) See(node);
  }
  size_t longest() const { return longest_; }

 private:
  size_t longest_ = 0;
};

}  // namespace

std::string FreeSeparator(const onnx::ModelProto& model) {
  LongestRun run;
  run.See(model.graph());
  for (const onnx::FunctionProto& function : model.functions()) run.See(function);
  return std::string(run.longest() + 1, '#');
}

}  // namespace reprise
