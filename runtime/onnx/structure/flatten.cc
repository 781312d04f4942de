#include "runtime/onnx/structure/flatten.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/file/newer_fields.h"
#include "runtime/onnx/structure/branches.h"
#include "runtime/onnx/structure/free_separator.h"
#include "runtime/onnx/structure/node_order.h"
#include "runtime/ops/control/control_op.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/shape_op.h"

namespace reprise {
namespace {

constexpr int kMaxDepth = 32;         // functions that call functions
constexpr size_t kMaxNodes = 500000;  // the limit after inlining

using AttributeList = google::protobuf::RepeatedPtrField<onnx::AttributeProto>;

struct Function {
  const onnx::FunctionProto* proto = nullptr;
  std::vector<onnx::AttributeProto> defaults;  // attributes that a call need not give
};

class Inliner {
 public:
  // `separator`: of parts of names that are made.
  Inliner(LoadBudget& budget, FlatModel& out, std::string separator)
      : budget_(budget), out_(out), separator_(std::move(separator)) {}

  absl::Status AddFunctions(const onnx::ModelProto& model) {
    for (const onnx::FunctionProto& function : model.functions()) {
      Function& known =
          functions_[{CanonicalDomain(function.domain()), function.name(), OverloadOf(function)}];
      known.proto = &function;
      ASSIGN_OR_RETURN(known.defaults, DefaultsOf(function));
    }
    return absl::OkStatus();
  }

  absl::Status Add(const onnx::NodeProto& node, const OpsetMap& opsets, int depth) {
    RETURN_IF_ERROR(budget_.TakeNode(0, Label(node)));
    const auto it =
        functions_.find({CanonicalDomain(node.domain()), node.op_type(), OverloadOf(node)});
    if (it == functions_.end()) {
      if (out_.nodes.size() >= kMaxNodes) {
        return absl::InvalidArgumentError(absl::StrCat("the model has over ", kMaxNodes, " nodes"));
      }
      if (CanonicalDomain(node.domain()).empty()) {
        const bool nests = node.op_type() == IfOp::kName || node.op_type() == LoopOp::kName ||
                           node.op_type() == "Scan";
        if (nests && depth >= kMaxDepth) {
          return absl::InvalidArgumentError(absl::StrCat(Label(node), " nests too deeply"));
        }
        if (node.op_type() == IfOp::kName) return AddIf(node, opsets, depth);
        if (node.op_type() == LoopOp::kName) return AddLoop(node, opsets, depth);
        if (node.op_type() == "Scan") return AddScan(node, opsets, depth);
      }
      out_.nodes.push_back({&node, &opsets});
      return absl::OkStatus();
    }
    if (depth >= kMaxDepth) {
      return absl::InvalidArgumentError(
          absl::StrCat("function '", node.op_type(), "' calls itself or nests too deeply"));
    }
    return Call(node, it->second, opsets, depth);
  }

 private:
  // Domain, name, overload.
  using FunctionName = std::tuple<std::string, std::string, std::string>;

  absl::Status Call(const onnx::NodeProto& call, const Function& called,
                    const OpsetMap& caller_opsets, int depth) {
    const onnx::FunctionProto& function = *called.proto;
    if (call.input_size() > function.input_size() || call.output_size() > function.output_size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(Label(call), " does not fit the function's inputs and outputs"));
    }
    OpsetMap& opsets = out_.opsets.emplace_back(caller_opsets);
    for (const auto& opset : function.opset_import()) {
      opsets[CanonicalDomain(opset.domain())] = opset.version();
    }
    // Names inside the body -> names outside.
    const std::string prefix = NextPrefix(call);
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
    const AttributeList given = GivenBy(call, called.defaults);
    for (const onnx::NodeProto& body : function.node()) {
      RETURN_IF_ERROR(TakeCopy(body, call));
      onnx::NodeProto& node = out_.inlined.emplace_back(body);
      node.set_name(absl::StrCat(prefix, body.name()));
      for (std::string& name : *node.mutable_input()) name = rename(name);
      for (std::string& name : *node.mutable_output()) name = rename(name);
      RenameCaptured(node, rename, prefix);
      BindAttributes(given, node);
      RETURN_IF_ERROR(Add(node, opsets, depth + 1));
    }
    return absl::OkStatus();
  }

  // Adds the nodes of both branches, and an If that chooses between their results: its inputs
  // are the condition, the results of the first branch, then of the second.
  absl::Status AddIf(const onnx::NodeProto& call, const OpsetMap& opsets, int depth) {
    if (call.input_size() != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(Label(call), " has ", call.input_size(), " inputs, takes a condition"));
    }
    RETURN_IF_ERROR(CheckGiven(call, 0, "operand"));
    onnx::NodeProto chosen = call;
    chosen.clear_attribute();
    for (const char* name : {"then_branch", "else_branch"}) {
      ASSIGN_OR_RETURN(const onnx::GraphProto* branch, BranchOf(call, name));
      RETURN_IF_ERROR(AddSubgraph(*branch, call, NextPrefix(call), opsets, depth, chosen));
    }
    AddControl(std::move(chosen), opsets, call);
    return absl::OkStatus();
  }

  // Adds the nodes of the body between a LoopStep and a Loop.
  absl::Status AddLoop(const onnx::NodeProto& call, const OpsetMap& opsets, int depth) {
    const int carried = std::max(call.input_size() - 2, 0);
    RETURN_IF_ERROR(CheckGiven(call, 2, "carried value"));
    ASSIGN_OR_RETURN(const onnx::GraphProto* body,
                     BodyOf(call, 2 + carried, 1 + std::max(carried, call.output_size())));
    onnx::NodeProto loop = call, step;
    loop.clear_attribute();
    while (loop.input_size() < 2) loop.add_input("");
    BeginLoop(call, carried, loop, step);
    const std::string prefix = NextPrefix(call);
    for (const auto& input : body->input()) step.add_output(absl::StrCat(prefix, input.name()));
    SetInts(step, "dtypes", DeclaredTypes(*body));
    DeclareScanned(*body, 1 + carried, loop);
    AddControl(std::move(step), opsets, call);
    RETURN_IF_ERROR(AddSubgraph(*body, call, prefix, opsets, depth, loop));
    AddControl(std::move(loop), opsets, call);
    return absl::OkStatus();
  }

  // The parts of a Scan, as the node states them.
  struct ScanCall {
    const onnx::GraphProto* body = nullptr;
    int carried = 0;                                     // inputs, before those that are scanned
    int64_t scanned = 0;                                 // inputs
    std::vector<int64_t> axes, backwards;                // one per scanned input
    std::vector<int64_t> result_axes, result_backwards;  // one per stacked result
  };

  static absl::StatusOr<ScanCall> ReadScan(const onnx::NodeProto& call, const OpsetMap& opsets) {
    const auto version = opsets.find("");
    if (version == opsets.end() || version->second < 9) {
      return absl::UnimplementedError(absl::StrCat(Label(call), " of opset ",
                                                   version == opsets.end() ? 0 : version->second,
                                                   " is not supported, only since 9"));
    }
    ScanCall scan;
    const std::vector<int64_t> given = IntsOf(call, "num_scan_inputs");
    scan.scanned = given.empty() ? 0 : given[0];
    if (scan.scanned < 1 || scan.scanned > call.input_size()) {
      return absl::InvalidArgumentError(absl::StrCat(Label(call), " scans ", scan.scanned,
                                                     " of its ", call.input_size(), " inputs"));
    }
    scan.carried = call.input_size() - static_cast<int>(scan.scanned);
    ASSIGN_OR_RETURN(scan.body,
                     BodyOf(call, call.input_size(), std::max(scan.carried, call.output_size())));
    const int64_t stacked = scan.body->output_size() - scan.carried;
    ASSIGN_OR_RETURN(scan.axes, ScanInts(call, "scan_input_axes", scan.scanned));
    ASSIGN_OR_RETURN(scan.backwards, ScanInts(call, "scan_input_directions", scan.scanned));
    ASSIGN_OR_RETURN(scan.result_axes, ScanInts(call, "scan_output_axes", stacked));
    ASSIGN_OR_RETURN(scan.result_backwards, ScanInts(call, "scan_output_directions", stacked));
    return scan;
  }

  // Adds a Loop that runs once for each slice of the scanned inputs, and looks the slices up.
  absl::Status AddScan(const onnx::NodeProto& call, const OpsetMap& opsets, int depth) {
    ASSIGN_OR_RETURN(const ScanCall scan, ReadScan(call, opsets));
    RETURN_IF_ERROR(CheckGiven(call, 0, "operand"));
    const std::string prefix = NextPrefix(call);
    const auto own_name = [&](absl::string_view name) {
      return absl::StrCat(prefix, "scan:", name);
    };
    const std::string count = own_name("count"), step_number = own_name("step");
    AddScanNode(call, ShapeOp::kName, {call.input(scan.carried)}, own_name("shape"));
    AddNumber(own_name("axis"), scan.axes[0]);
    AddScanNode(call, GatherOp::kName, {own_name("shape"), own_name("axis")}, count);

    onnx::NodeProto loop, step;
    loop.set_op_type(LoopOp::kName);
    loop.set_name(call.name());
    loop.add_input(count);
    loop.add_input("");
    for (int i = 0; i < scan.carried; ++i) loop.add_input(call.input(i));
    *loop.mutable_output() = call.output();
    BeginLoop(call, scan.carried, loop, step);
    SetInts(loop, "axes", scan.result_axes);
    SetInts(loop, "directions", scan.result_backwards);
    DeclareScanned(*scan.body, scan.carried, loop);
    step.add_output(step_number);
    step.add_output(own_name("condition"));
    for (int i = 0; i < scan.carried; ++i) {
      step.add_output(absl::StrCat(prefix, scan.body->input(i).name()));
    }
    std::vector<int64_t> types = DeclaredTypes(*scan.body);
    types.resize(scan.carried);
    types.insert(types.begin(), {onnx::TensorProto::INT64, onnx::TensorProto::BOOL});
    SetInts(step, "dtypes", types);
    AddControl(std::move(step), opsets, call);

    const std::string from_last = own_name("from_last");
    AddNumber(own_name("one"), 1);
    AddScanNode(call, SubOp::kName, {count, own_name("one")}, own_name("last"));
    AddScanNode(call, SubOp::kName, {own_name("last"), step_number}, from_last);
    for (int i = 0; i < scan.scanned; ++i) {
      const int input = scan.carried + i;
      AddSlice(call, input, scan.backwards[i] != 0 ? from_last : step_number, scan.axes[i],
               absl::StrCat(prefix, scan.body->input(input).name()));
    }
    loop.add_input(own_name("condition"));
    RETURN_IF_ERROR(AddSubgraph(*scan.body, call, prefix, opsets, depth, loop));
    AddControl(std::move(loop), opsets, call);
    return absl::OkStatus();
  }

  // Adds the slice of an input of a Scan that one step sees.
  void AddSlice(const onnx::NodeProto& call, int input, const std::string& place, int64_t along,
                const std::string& slice_name) {
    onnx::NodeProto& slice =
        AddScanNode(call, GatherOp::kName, {call.input(input), place}, slice_name);
    onnx::AttributeProto& axis = *slice.add_attribute();
    axis.set_name("axis");
    axis.set_type(onnx::AttributeProto::INT);
    axis.set_i(along);
  }

  // Attribute `name` of a Scan, one number for each of `count` values; directions are 0 or 1.
  static absl::StatusOr<std::vector<int64_t>> ScanInts(const onnx::NodeProto& call,
                                                       const std::string& name, int64_t count) {
    std::vector<int64_t> values = IntsOf(call, name, std::vector<int64_t>(count));
    if (static_cast<int64_t>(values.size()) != count) {
      return absl::InvalidArgumentError(absl::StrCat(Label(call), ": attribute '", name, "' has ",
                                                     values.size(), " entries for ", count,
                                                     " values"));
    }
    for (const int64_t value : values) {
      if (!absl::EndsWith(name, "directions") || value == 0 || value == 1) continue;
      return absl::InvalidArgumentError(absl::StrCat(Label(call), ": attribute '", name, "' holds ",
                                                     value, ", a direction is 0 or 1"));
    }
    return values;
  }

  // Returns the operator sets of the nodes that a Scan is taken apart into.
  static const OpsetMap& ScanOpsets() {
    static const auto* const kOpsets = new OpsetMap{{"", 17}};
    return *kOpsets;
  }

  std::string NextPrefix(const onnx::NodeProto& call) {
    return absl::StrCat(call.name(), separator_, calls_++, "/");
  }

  // `source`: the node that `node` is a step of.
  void AddControl(onnx::NodeProto node, const OpsetMap& opsets, const onnx::NodeProto& source) {
    out_.nodes.push_back({.proto = &out_.inlined.emplace_back(std::move(node)),
                          .opsets = &opsets,
                          .is_control = true,
                          .source = &source});
  }

  // Sets the marks by which a Loop and its LoopStep belong together.
  void BeginLoop(const onnx::NodeProto& call, int carried, onnx::NodeProto& loop,
                 onnx::NodeProto& step) {
    const int64_t number[] = {loops_++}, count[] = {carried};
    SetInts(loop, "loop", number);
    SetInts(loop, "carried", count);
    SetInts(step, "loop", number);
    step.set_op_type("LoopStep");
    step.set_domain("reprise");
    step.set_name(call.name());
  }

  onnx::NodeProto& AddScanNode(const onnx::NodeProto& scan, absl::string_view op,
                               const std::vector<std::string>& inputs, const std::string& output) {
    onnx::NodeProto& node = out_.inlined.emplace_back();
    node.set_op_type(std::string(op));
    node.set_name(output);
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(output);
    out_.nodes.push_back({.proto = &node, .opsets = &ScanOpsets(), .source = &scan});
    return node;
  }

  void AddNumber(const std::string& name, int64_t number) {
    onnx::TensorProto tensor;
    tensor.set_data_type(onnx::TensorProto::INT64);
    tensor.add_int64_data(number);
    out_.nodes.push_back({&out_.inlined.emplace_back(ConstantNode(tensor, name)), &ScanOpsets()});
  }

  static std::vector<int64_t> DeclaredTypes(const onnx::GraphProto& graph) {
    std::vector<int64_t> types;
    for (const auto& input : graph.input()) {
      types.push_back(input.type().tensor_type().elem_type());
    }
    return types;
  }

  // Declares the results of `body` from `first` on, which the iterations of `loop` stack.
  static void DeclareScanned(const onnx::GraphProto& body, int first, onnx::NodeProto& loop) {
    std::vector<int64_t> types;
    for (int i = first; i < body.output_size(); ++i) {
      const auto& type = body.output(i).type().tensor_type();
      types.push_back(type.elem_type());
      if (!type.has_shape()) continue;
      std::vector<int64_t> dims;
      for (const auto& dim : type.shape().dim()) {
        dims.push_back(std::max<int64_t>(dim.dim_value(), 0));
      }
      SetInts(loop, absl::StrCat("dims", i - first), dims);
    }
    SetInts(loop, "dtypes", types);
  }

  // Charges the budget for a part of `call`'s body that is copied.
  absl::Status TakeCopy(const google::protobuf::MessageLite& part, const onnx::NodeProto& call) {
    return budget_.TakeBytes(static_cast<int64_t>(part.ByteSizeLong()), Label(call));
  }

  // `call` leaves no operand out from `first` on.
  static absl::Status CheckGiven(const onnx::NodeProto& call, int first, absl::string_view what) {
    for (int i = first; i < call.input_size(); ++i) {
      if (!call.input(i).empty()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(Label(call), ": ", what, " ", i - first, " is left out"));
    }
    return absl::OkStatus();
  }

  // `graph` is one of `call`. Results go to the inputs of `user`. Names that the subgraph defines
  // get `prefix`.
  absl::Status AddSubgraph(const onnx::GraphProto& graph, const onnx::NodeProto& call,
                           const std::string& prefix, const OpsetMap& opsets, int depth,
                           onnx::NodeProto& user) {
    std::set<std::string> own;
    for (const auto& input : graph.input()) own.insert(input.name());
    for (const auto& tensor : graph.initializer()) own.insert(tensor.name());
    for (const auto& sparse : graph.sparse_initializer()) own.insert(sparse.values().name());
    for (const auto& node : graph.node()) own.insert(node.output().begin(), node.output().end());
    own.erase("");
    const auto rename = [&](const std::string& name) {
      return own.contains(name) ? absl::StrCat(prefix, name) : name;
    };
    for (const auto& tensor : graph.initializer()) {
      RETURN_IF_ERROR(TakeCopy(tensor, call));
      out_.inlined.push_back(ConstantNode(tensor, rename(tensor.name())));
      RETURN_IF_ERROR(Add(out_.inlined.back(), opsets, depth + 1));
    }
    for (const auto& sparse : graph.sparse_initializer()) {
      out_.inlined.push_back(ConstantNode(sparse, rename(sparse.values().name())));
      RETURN_IF_ERROR(Add(out_.inlined.back(), opsets, depth + 1));
    }
    for (const onnx::NodeProto& body : graph.node()) {
      RETURN_IF_ERROR(TakeCopy(body, call));
      onnx::NodeProto& node = out_.inlined.emplace_back(body);
      node.set_name(absl::StrCat(prefix, body.name()));
      for (std::string& name : *node.mutable_input()) name = rename(name);
      for (std::string& name : *node.mutable_output()) name = rename(name);
      RenameCaptured(node, rename);
      RETURN_IF_ERROR(Add(node, opsets, depth + 1));
    }
    for (const auto& output : graph.output()) user.add_input(rename(output.name()));
    return absl::OkStatus();
  }

  // Returns the attributes of a call: its own, and the defaults of those that it leaves out.
  static AttributeList GivenBy(const onnx::NodeProto& call,
                               const std::vector<onnx::AttributeProto>& defaults) {
    AttributeList given = call.attribute();
    for (const onnx::AttributeProto& one : defaults) {
      const bool own = absl::c_any_of(call.attribute(), [&](const onnx::AttributeProto& attribute) {
        return attribute.name() == one.name();
      });
      if (!own) *given.Add() = one;
    }
    return given;
  }

  // References to the function's attributes become the values that are `given`, or vanish.
  static void BindAttributes(const AttributeList& given, onnx::NodeProto& node) {
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (!attribute.has_g()) continue;
      for (auto& inner : *attribute.mutable_g()->mutable_node()) BindAttributes(given, inner);
    }
    AttributeList bound;
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.ref_attr_name().empty()) {
        *bound.Add() = attribute;
        continue;
      }
      for (const onnx::AttributeProto& value : given) {
        if (value.name() != attribute.ref_attr_name()) continue;
        onnx::AttributeProto& copy = *bound.Add();
        copy = value;
        copy.set_name(attribute.name());
      }
    }
    node.mutable_attribute()->Swap(&bound);
  }

  LoadBudget& budget_;
  FlatModel& out_;
  const std::string separator_;
  std::map<FunctionName, Function> functions_;
  int64_t calls_ = 0;
  int64_t loops_ = 0;
};

}  // namespace

std::string CanonicalDomain(const std::string& domain) {
  return domain == "ai.onnx" ? std::string() : domain;
}

absl::StatusOr<FlatModel> FlattenModel(const onnx::ModelProto& model, LoadBudget& budget) {
  FlatModel flat;
  OpsetMap& opsets = flat.opsets.emplace_back();
  for (const auto& opset : model.opset_import()) {
    opsets[CanonicalDomain(opset.domain())] = opset.version();
  }
  if (model.opset_import_size() == 0 && model.ir_version() < 3) opsets[""] = 1;
  Inliner inliner(budget, flat, FreeSeparator(model));
  RETURN_IF_ERROR(inliner.AddFunctions(model));
  for (const onnx::NodeProto& node : model.graph().node()) {
    RETURN_IF_ERROR(inliner.Add(node, opsets, 0));
  }
  RETURN_IF_ERROR(SortNodes(model.graph(), flat.nodes));
  return flat;
}

}  // namespace reprise
