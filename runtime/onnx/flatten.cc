#include "runtime/onnx/flatten.h"

#include <queue>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/onnx/branches.h"

namespace reprise {
namespace {

constexpr int kMaxDepth = 32;         // of functions that call functions
constexpr size_t kMaxNodes = 500000;  // after inlining

std::string Label(const onnx::NodeProto& node) {
  return node.name().empty() ? node.op_type()
                             : absl::StrCat(node.op_type(), " '", node.name(), "'");
}

using FunctionMap = std::map<std::pair<std::string, std::string>, const onnx::FunctionProto*>;

class Inliner {
 public:
  Inliner(const onnx::ModelProto& model, FlatModel& out) : out_(out) {
    for (const onnx::FunctionProto& function : model.functions()) {
      functions_[{CanonicalDomain(function.domain()), function.name()}] = &function;
    }
  }

  absl::Status Add(const onnx::NodeProto& node, const OpsetMap& opsets, int depth) {
    const auto it = functions_.find({CanonicalDomain(node.domain()), node.op_type()});
    if (it == functions_.end()) {
      if (out_.nodes.size() >= kMaxNodes) {
        return absl::InvalidArgumentError(absl::StrCat("the model has over ", kMaxNodes, " nodes"));
      }
      if (node.op_type() == "If" && CanonicalDomain(node.domain()).empty()) {
        return AddIf(node, opsets, depth);
      }
      out_.nodes.push_back({&node, &opsets});
      return absl::OkStatus();
    }
    if (depth >= kMaxDepth) {
      return absl::InvalidArgumentError(
          absl::StrCat("function '", node.op_type(), "' calls itself or nests too deeply"));
    }
    return Call(node, *it->second, opsets, depth);
  }

 private:
  absl::Status Call(const onnx::NodeProto& call, const onnx::FunctionProto& function,
                    const OpsetMap& caller_opsets, int depth) {
    if (call.input_size() > function.input_size() || call.output_size() > function.output_size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(Label(call), " does not fit the function's inputs and outputs"));
    }
    OpsetMap& opsets = out_.opsets.emplace_back(caller_opsets);
    for (const auto& opset : function.opset_import()) {
      opsets[CanonicalDomain(opset.domain())] = opset.version();
    }
    // Names inside the body -> names outside.
    const std::string prefix = absl::StrCat(call.name(), "#", calls_++, "/");
    std::map<std::string, std::string> names = {{"", ""}};
    for (int i = 0; i < function.input_size(); ++i) {
      names[function.input(i)] = i < call.input_size() ? call.input(i) : "";
    }
    for (int i = 0; i < function.output_size(); ++i) {
      if (i >= call.output_size() || call.output(i).empty()) continue;
      if (names.contains(function.output(i))) {
        return absl::UnimplementedError(
            absl::StrCat("function '", function.name(), "' hands an input through as output"));
      }
      names[function.output(i)] = call.output(i);
    }
    const auto rename = [&](const std::string& name) {
      const auto [it, inserted] = names.try_emplace(name);
      if (inserted) it->second = absl::StrCat(prefix, name);
      return it->second;
    };
    for (const onnx::NodeProto& body : function.node()) {
      onnx::NodeProto& node = out_.inlined.emplace_back(body);
      node.set_name(absl::StrCat(prefix, body.name()));
      for (std::string& name : *node.mutable_input()) name = rename(name);
      for (std::string& name : *node.mutable_output()) name = rename(name);
      RenameCaptured(node, rename);
      BindAttributes(call, node);
      RETURN_IF_ERROR(Add(node, opsets, depth + 1));
    }
    return absl::OkStatus();
  }

  // The nodes of both branches, and an If that chooses between their results: its inputs are the
  // condition, the results of the first branch, those of the second.
  absl::Status AddIf(const onnx::NodeProto& call, const OpsetMap& opsets, int depth) {
    if (depth >= kMaxDepth) {
      return absl::InvalidArgumentError(absl::StrCat(Label(call), " nests too deeply"));
    }
    if (call.input_size() != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(Label(call), " has ", call.input_size(), " inputs, takes a condition"));
    }
    onnx::NodeProto chosen = call;
    chosen.clear_attribute();
    for (const char* name : {"then_branch", "else_branch"}) {
      ASSIGN_OR_RETURN(const onnx::GraphProto* branch, BranchOf(call, name));
      RETURN_IF_ERROR(
          AddBranch(*branch, absl::StrCat(call.name(), "#", calls_++, "/"), opsets, depth, chosen));
    }
    out_.nodes.push_back({&out_.inlined.emplace_back(std::move(chosen)), &opsets});
    return absl::OkStatus();
  }

  // Results go to the inputs of `chosen`. Names that the branch defines get `prefix`.
  absl::Status AddBranch(const onnx::GraphProto& branch, const std::string& prefix,
                         const OpsetMap& opsets, int depth, onnx::NodeProto& chosen) {
    std::set<std::string> own;
    for (const auto& tensor : branch.initializer()) own.insert(tensor.name());
    for (const auto& node : branch.node()) own.insert(node.output().begin(), node.output().end());
    own.erase("");
    const auto rename = [&](const std::string& name) {
      return own.contains(name) ? absl::StrCat(prefix, name) : name;
    };
    for (const auto& tensor : branch.initializer()) {
      out_.inlined.push_back(ConstantNode(tensor, rename(tensor.name())));
      RETURN_IF_ERROR(Add(out_.inlined.back(), opsets, depth + 1));
    }
    for (const onnx::NodeProto& body : branch.node()) {
      onnx::NodeProto& node = out_.inlined.emplace_back(body);
      node.set_name(absl::StrCat(prefix, body.name()));
      for (std::string& name : *node.mutable_input()) name = rename(name);
      for (std::string& name : *node.mutable_output()) name = rename(name);
      RenameCaptured(node, rename);
      RETURN_IF_ERROR(Add(node, opsets, depth + 1));
    }
    for (const auto& output : branch.output()) chosen.add_input(rename(output.name()));
    return absl::OkStatus();
  }

  // References to the function's attributes become the caller's values, or vanish.
  static void BindAttributes(const onnx::NodeProto& call, onnx::NodeProto& node) {
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (!attribute.has_g()) continue;
      for (auto& inner : *attribute.mutable_g()->mutable_node()) BindAttributes(call, inner);
    }
    google::protobuf::RepeatedPtrField<onnx::AttributeProto> bound;
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.ref_attr_name().empty()) {
        *bound.Add() = attribute;
        continue;
      }
      for (const onnx::AttributeProto& given : call.attribute()) {
        if (given.name() != attribute.ref_attr_name()) continue;
        onnx::AttributeProto& copy = *bound.Add();
        copy = given;
        copy.set_name(attribute.name());
      }
    }
    node.mutable_attribute()->Swap(&bound);
  }

  FlatModel& out_;
  FunctionMap functions_;
  int64_t calls_ = 0;
};

// Kahn's algorithm, stable: among ready nodes the first in the file goes first.
absl::Status Sort(const onnx::GraphProto& graph, std::vector<FlatNode>& nodes) {
  absl::flat_hash_set<std::string> given;
  absl::flat_hash_map<std::string, size_t> producer;
  for (const auto& input : graph.input()) given.insert(input.name());
  for (const auto& tensor : graph.initializer()) given.insert(tensor.name());
  for (const auto& tensor : graph.sparse_initializer()) given.insert(tensor.values().name());
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& name : nodes[i].proto->output()) {
      if (name.empty()) continue;
      if (given.contains(name) || !producer.emplace(name, i).second) {
        return absl::InvalidArgumentError(
            absl::StrCat("value '", name, "' is defined twice, by node ", Label(*nodes[i].proto)));
      }
    }
  }
  std::vector<int> missing(nodes.size(), 0);
  std::vector<std::vector<size_t>> users(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& name : nodes[i].proto->input()) {
      if (name.empty() || given.contains(name)) continue;
      const auto it = producer.find(name);
      if (it == producer.end()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "node ", Label(*nodes[i].proto), " uses value '", name, "', which nothing defines"));
      }
      users[it->second].push_back(i);
      ++missing[i];
    }
  }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (missing[i] == 0) ready.push(i);
  }
  std::vector<FlatNode> sorted;
  while (!ready.empty()) {
    const size_t i = ready.top();
    ready.pop();
    sorted.push_back(nodes[i]);
    for (size_t user : users[i]) {
      if (--missing[user] == 0) ready.push(user);
    }
  }
  if (sorted.size() != nodes.size()) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (missing[i] > 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("the graph is cyclic: node ", Label(*nodes[i].proto),
                         " depends on itself, directly or through others"));
      }
    }
  }
  nodes = std::move(sorted);
  return absl::OkStatus();
}

}  // namespace

std::string CanonicalDomain(const std::string& domain) {
  return domain == "ai.onnx" ? std::string() : domain;
}

absl::StatusOr<FlatModel> FlattenModel(const onnx::ModelProto& model) {
  FlatModel flat;
  OpsetMap& opsets = flat.opsets.emplace_back();
  for (const auto& opset : model.opset_import()) {
    opsets[CanonicalDomain(opset.domain())] = opset.version();
  }
  if (model.opset_import_size() == 0 && model.ir_version() < 3) opsets[""] = 1;
  Inliner inliner(model, flat);
  for (const onnx::NodeProto& node : model.graph().node()) {
    RETURN_IF_ERROR(inliner.Add(node, opsets, 0));
  }
  RETURN_IF_ERROR(Sort(model.graph(), flat.nodes));
  return flat;
}

}  // namespace reprise
