#include "runtime/engine/load/promotion.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/nearest_name.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/model/model_variants.h"
#include "runtime/engine/model/tail.h"
#include "runtime/ops/kit/op.h"
#include "runtime/passes/kit/pass.h"
#include "runtime/passes/specialize/specialize.h"

namespace reprise {
namespace {

// Sizes of dims at which the graph is tried: the first that it takes.
constexpr int64_t kTriedSizes[] = {8, 12, 7, 16, 64, 224, 1, 1000};
constexpr int64_t kRows = 2;

absl::Status Refused(const std::string& name, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("reprise.promote: constant '", name, "' ", why));
}

// Returns the bytes of a constant, or of a parameter among `parameters` (null: its bytes are not
// known).
std::optional<Tensor> BytesOf(const Value& value, const std::vector<Tensor>* parameters) {
  if (value.kind == Value::Kind::kConstant) return value.constant;
  if (value.kind != Value::Kind::kParameter || parameters == nullptr) return std::nullopt;
  if (!value.parameter->is_leaf()) return std::nullopt;
  return (*parameters)[value.parameter->index()];
}

std::vector<std::string> ConstantNames(const Graph& graph) {
  std::vector<std::string> names;
  for (ValueId id = 0; id < static_cast<ValueId>(graph.num_values()); ++id) {
    const Value& value = graph.value(id);
    if (value.kind == Value::Kind::kConstant && !value.users.empty()) names.push_back(value.name);
  }
  return names;
}

// Returns the node whose shape depends on the value, or kNone.
NodeId DecidesShapeOf(const Graph& graph, ValueId from) {
  std::set<ValueId> seen = {from};
  std::vector<ValueId> open = {from};
  while (!open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    for (const NodeId user : graph.value(id).users) {
      const Node& node = graph.node(user);
      const OpRow* row = FindOp(node.op);
      if (row == nullptr || row->Has(kDataDependent)) continue;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] == id && row->IsValueInput(i)) return user;
      }
      if (row->Has(kShapeOnly)) continue;
      for (const ValueId output : node.outputs) {
        if (output != kNone && seen.insert(output).second) open.push_back(output);
      }
    }
  }
  return kNone;
}

// Makes `name` of a graph a parameter, whose number does not matter.
void MakeParameter(Graph& graph, ValueId id, int index) {
  Value& value = graph.value(id);
  value.overridable = false;
  if (value.kind != Value::Kind::kConstant) return;
  graph.ReplaceWithParameter(
      id, ParameterExpr::Leaf(index, value.constant.dtype(), value.constant.shape()));
}

// Returns `graph` at the sizes of `binding`, which becomes the first ones that it takes where it is
// empty.
absl::StatusOr<Graph> SpecializeSomewhere(const Graph& graph, const std::vector<ModelIo>& inputs,
                                          Binding& binding) {
  absl::StatusOr<Graph> specialized = Specialize(graph, binding);
  if (specialized.ok() || !binding.axes.empty()) return specialized;
  for (const int64_t size : kTriedSizes) {
    for (const int64_t rows : {kRows, size}) {
      for (const ModelIo& input : inputs) {
        for (size_t d = 0; d < input.dims.size(); ++d) {
          if (input.dims[d].is_constant()) continue;
          binding.axes[input.dims[d].symbol] = d == 0 ? rows : size;
        }
      }
      specialized = Specialize(graph, binding);
      if (specialized.ok()) return specialized;
    }
  }
  return specialized;
}

// How many nodes of each op compute on data once passes have joined them, at the first sizes that
// `graph` takes; nullopt where there are none.
using Forms = std::map<std::string, int>;
std::optional<Forms> FormsAt(Graph graph, const ImportedModel& model, Binding& binding) {
  for (const ModelIo& input : model.inputs) {
    const ValueId id = graph.FindValue(input.name);
    if (id != kNone) graph.value(id).overridable = false;
  }
  if (!RunLoadPasses(graph).ok()) return std::nullopt;
  // Only the part before the cuts, where there are some.
  CutModel(graph, model.inputs, FindShapeInputs(graph, model.inputs), model.outputs);
  absl::StatusOr<Graph> specialized = SpecializeSomewhere(graph, model.inputs, binding);
  if (!specialized.ok() || !RunCapturePasses(*specialized).ok()) return std::nullopt;
  Forms forms;
  for (const NodeId id : specialized->NodeIds()) ++forms[specialized->node(id).op];
  return forms;
}

std::string CountsText(const Forms& forms) {
  return absl::StrJoin(forms, ", ", [](std::string* out, const auto& form) {
    absl::StrAppend(out, form.second, " ", form.first);
  });
}

// Returns the ops that `a` has more of than `b`, and how many more.
Forms MoreOf(const Forms& a, const Forms& b) {
  Forms more;
  for (const auto& [op, count] : a) {
    const auto it = b.find(op);
    const int others = it == b.end() ? 0 : it->second;
    if (count > others) more[op] = count - others;
  }
  return more;
}

int Total(const Forms& forms) {
  int all = 0;
  for (const auto& [op, count] : forms) all += count;
  return all;
}

// Returns why the constant has no form of an input; OK where it has one.
absl::Status CheckValue(const Graph& graph, const std::string& name) {
  const ValueId id = graph.FindValue(name);
  const bool known = id != kNone && (graph.value(id).kind == Value::Kind::kConstant ||
                                     graph.value(id).kind == Value::Kind::kParameter);
  if (!known) {
    return absl::InvalidArgumentError(absl::StrCat("reprise.promote: the model has no constant '",
                                                   name, "'",
                                                   DidYouMean(name, ConstantNames(graph))));
  }
  const Value& value = graph.value(id);
  if (value.kind == Value::Kind::kParameter && !value.parameter->is_leaf()) {
    return Refused(name, "is computed from others of the file");
  }
  if (NumElements(*value.shape) > kMostPromoted) {
    return Refused(
        name, absl::StrCat("has ", NumElements(*value.shape), " elements; at most ", kMostPromoted,
                           " may be sent with a request, and new weights in a file "
                           "compile nothing anyway"));
  }
  if (value.users.empty()) return Refused(name, "is read by no node");
  if (graph.IsOutput(id)) return Refused(name, "is an output of the model");
  if (const NodeId node = DecidesShapeOf(graph, id); node != kNone) {
    return Refused(name, absl::StrCat("decides a shape: ", NodeLabel(graph.node(node)),
                                      " reads it for its sizes"));
  }
  return absl::OkStatus();
}

// Returns whether `value` of this version is something else in `other`, of the same name and type.
bool Differs(const Value& value, const ImportedModel* version, const Graph& other) {
  const ValueId id = other.FindValue(value.name);
  if (id == kNone) return false;
  const Value& then = other.value(id);
  if (then.dtype != value.dtype || then.shape != value.shape) return false;
  const std::optional<Tensor> bytes =
      BytesOf(then, version == nullptr ? nullptr : &version->parameters);
  // A constant that is a parameter there was promoted.
  if (!bytes.has_value()) return then.kind == Value::Kind::kParameter;
  return std::memcmp(bytes->data(), value.constant.data(), value.constant.bytes()) != 0;
}

}  // namespace

absl::Status CheckPromotion(const ImportedModel& imported, const std::string& name) {
  RETURN_IF_ERROR(CheckValue(imported.graph, name));
  Binding binding;
  const std::optional<Forms> without = FormsAt(imported.graph, imported, binding);
  if (!without.has_value()) return absl::OkStatus();  // It takes other sizes only.
  Graph promoted = imported.graph;
  // Numbered after all parameters of the file.
  MakeParameter(promoted, promoted.FindValue(name), 1 << 30);
  const std::optional<Forms> with = FormsAt(std::move(promoted), imported, binding);
  if (!with.has_value()) return Refused(name, "is needed to know the sizes of results");
  const Forms lost = MoreOf(*without, *with);
  if (Total(*with) <= Total(*without) && lost.empty()) return absl::OkStatus();
  const Forms instead = MoreOf(*with, *without);
  return Refused(
      name,
      absl::StrCat("is read by passes that join nodes: ",
                   lost.empty() ? "" : absl::StrCat(CountsText(lost), " would be lost, "),
                   CountsText(instead), " would run ", lost.empty() ? "in addition" : "instead"));
}

std::vector<std::string> FindPromotable(const ImportedModel& imported, const ModelOptions& options,
                                        const Graph* before,
                                        const std::function<void(const std::string&)>& log) {
  std::map<std::string, std::string> candidates;  // name -> why it is one
  for (const ModelIo& input : imported.inputs) {
    const ValueId id = imported.graph.FindValue(input.name);
    if (!input.optional || input.text || id == kNone) continue;
    const Value& value = imported.graph.value(id);
    if (value.kind != Value::Kind::kConstant || value.users.empty()) continue;
    candidates.emplace(input.name, "is listed as an input");
  }
  const auto compare = [&](const ImportedModel* version, const Graph& other,
                           absl::string_view what) {
    for (ValueId id = 0; id < static_cast<ValueId>(imported.graph.num_values()); ++id) {
      const Value& value = imported.graph.value(id);
      if (value.kind != Value::Kind::kConstant || value.users.empty()) continue;
      if (Differs(value, version, other)) {
        candidates.emplace(value.name, absl::StrCat("differs from ", what));
      }
    }
  };
  for (const std::string& path : options.other_versions) {
    const absl::StatusOr<ImportedModel> other = ImportOnnxFile(path);
    if (other.ok()) compare(&*other, other->graph, path);
  }
  if (before != nullptr) compare(nullptr, *before, "the model that was served before");
  std::vector<std::string> names;
  for (const auto& [name, why] : candidates) {
    const absl::Status possible = CheckPromotion(imported, name);
    if (possible.ok()) {
      names.push_back(name);
    } else {
      log(absl::StrCat("constant '", name, "' ", why,
                       " and stays part of the key: ", possible.message()));
    }
  }
  return names;
}

absl::Status Promote(ImportedModel& imported, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    RETURN_IF_ERROR(CheckPromotion(imported, name));
  }
  for (const std::string& name : names) {
    const ValueId id = imported.graph.FindValue(name);
    const Value& value = imported.graph.value(id);
    ModelIo io = {.name = name, .dtype = value.dtype, .optional = true};
    for (const int64_t size : *value.shape) io.dims.push_back({.size = size});
    io.parameter = value.kind == Value::Kind::kParameter
                       ? value.parameter->index()
                       : static_cast<int>(imported.parameters.size());
    if (value.kind == Value::Kind::kConstant) imported.parameters.push_back(value.constant);
    MakeParameter(imported.graph, id, io.parameter);
    const auto listed =
        absl::c_find_if(imported.inputs, [&](const ModelIo& input) { return input.name == name; });
    if (listed == imported.inputs.end()) {
      imported.inputs.push_back(std::move(io));
    } else {
      *listed = std::move(io);
    }
  }
  return absl::OkStatus();
}

std::string CertificateLost(const ModelProof& without, const ModelProof& with) {
  for (size_t i = 0; i < std::min(without.axes.size(), with.axes.size()); ++i) {
    if (!without.axes[i].certificate.certified || with.axes[i].certificate.certified) continue;
    return absl::StrCat("the certificate of axis ", with.axes[i].label,
                        " reads its value: ", with.axes[i].certificate.reason);
  }
  if (without.packing != nullptr && with.packing == nullptr) {
    return absl::StrCat("packing reads its value: ", with.packing_refusal);
  }
  return "";
}

}  // namespace reprise
