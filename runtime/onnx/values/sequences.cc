#include "runtime/onnx/values/sequences.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/kit/known_numbers.h"
#include "runtime/onnx/structure/branches.h"

namespace reprise {
namespace {

constexpr int64_t kMaxListed = 1 << 21;  // tensors in all lists that are made or taken

}  // namespace

bool SequenceWalk::HasInput(const FlatNode& node, int i) {
  return i < node.proto->input_size() && !node.proto->input(i).empty();
}

absl::Status SequenceWalk::NotKnown(absl::string_view what) {
  return absl::UnimplementedError(absl::StrCat(
      what, "; sequences are supported where the file says which tensors are in them"));
}

const SequenceWalk::Row* SequenceWalk::FindRow(const FlatNode& node) {
  using Walk = SequenceWalk;
  static constexpr Row kRows[] = {
      {"SequenceConstruct", 1, -1, false, &Walk::Construct},
      {"SequenceEmpty", 0, 0, false, &Walk::Empty},
      {"SequenceInsert", 2, 3, false, &Walk::Insert},
      {"SequenceErase", 1, 2, false, &Walk::Erase},
      {"SequenceAt", 2, 2, true, &Walk::At},
      {"SequenceLength", 1, 1, true, &Walk::Length},
      {"ConcatFromSequence", 1, 1, true, &Walk::Join},
      {"SplitToSequence", 1, 2, false, &Walk::Split},
      {"Optional", 0, 1, false, &Walk::MakeOptional},
      {"OptionalHasElement", 0, 1, true, &Walk::HasElement},
      {"OptionalGetElement", 1, 1, true, &Walk::GetElement},
  };
  if (node.is_control || !CanonicalDomain(node.proto->domain()).empty()) return nullptr;
  const auto* row =
      absl::c_find_if(kRows, [&](const Row& r) { return r.op == node.proto->op_type(); });
  return row == std::end(kRows) ? nullptr : row;
}

bool SequenceWalk::Concerns(const FlatNode& node) const {
  if (FindRow(node) != nullptr) return true;
  // The result of a refused node has a stand-in among the tensors too: see DefineUnknownResults.
  return absl::c_any_of(node.proto->input(), [&](const std::string& name) {
    return held_.contains(name) && !tensors_.contains(name);
  });
}

absl::StatusOr<SequenceWalk::Results> SequenceWalk::Resolve(const FlatNode& node) {
  const onnx::NodeProto& proto = *node.proto;
  if (node.is_control && proto.op_type() != "If") {
    return NotKnown("carries a sequence, which each turn may make longer");
  }
  for (const std::string& name : proto.input()) {
    const auto it = held_.find(name);
    if (it == held_.end() || it->second.kind != Held::Kind::kUnknown) continue;
    // Not a second reason for the same thing. The model is refused anyway.
    const Row* row = FindRow(node);
    Results results;
    for (const std::string& output : proto.output()) {
      if (output.empty()) continue;
      if (row == nullptr || !row->makes_tensor) held_.emplace(output, Held{});
      if (row == nullptr || row->makes_tensor) {
        results.push_back({output, graph_.AddInput(output, DType::kUndefined, {})});
      }
    }
    return results;
  }
  if (const Row* row = FindRow(node)) {
    const int have = proto.input_size();
    if (have < row->min_inputs || (row->max_inputs >= 0 && have > row->max_inputs)) {
      return absl::InvalidArgumentError(
          absl::StrCat("has ", have, " inputs, takes ", row->min_inputs, " to ", row->max_inputs));
    }
    if (proto.output_size() != 1) return absl::InvalidArgumentError("has not one output");
    return (this->*row->resolve)(node);
  }
  const bool of_onnx = node.is_control || CanonicalDomain(proto.domain()).empty();
  if (of_onnx && proto.op_type() == "If") return Choose(node);
  if (of_onnx && proto.op_type() == "Identity") {
    if (proto.input_size() != 1 || proto.output_size() != 1) {
      return absl::InvalidArgumentError("has not one input and one output");
    }
    return Keep(node, held_.at(proto.input(0)));
  }
  for (int i = 0; i < proto.input_size(); ++i) {
    if (!held_.contains(proto.input(i))) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("input ", i, " ('", proto.input(i), "') is not a tensor"));
  }
  return absl::InternalError("no sequence concerns it");
}

void SequenceWalk::DefineUnknown(const std::string& name) { held_.emplace(name, Held{}); }

void SequenceWalk::DefineUnknownResults(const FlatNode& node) {
  const Row* row = FindRow(node);
  if (row != nullptr && row->makes_tensor) return;
  for (const std::string& name : node.proto->output()) {
    if (!name.empty()) DefineUnknown(name);
  }
}

// --- Making and changing. ---

absl::StatusOr<SequenceWalk::Results> SequenceWalk::MakeOptional(const FlatNode& node) {
  if (!HasInput(node, 0)) return Keep(node, {.kind = Held::Kind::kAbsent});
  const auto it = held_.find(node.proto->input(0));
  if (it != held_.end()) return Keep(node, it->second);
  ASSIGN_OR_RETURN(const ValueId id, TensorOf(node, 0));
  return OneTensor(node, id);
}

absl::StatusOr<SequenceWalk::Results> SequenceWalk::HasElement(const FlatNode& node) {
  bool has = HasInput(node, 0);
  if (has) {
    const auto it = held_.find(node.proto->input(0));
    has = it == held_.end() || it->second.kind != Held::Kind::kAbsent;
  }
  const ValueId id = graph_.AddConstant(
      "", Tensor::Make(DType::kBool, {}, [&](void* data) { *static_cast<bool*>(data) = has; }));
  return OneTensor(node, id);
}

absl::StatusOr<SequenceWalk::Results> SequenceWalk::GetElement(const FlatNode& node) {
  if (!HasInput(node, 0)) return absl::InvalidArgumentError("has no input");
  const auto it = held_.find(node.proto->input(0));
  if (it == held_.end()) {
    ASSIGN_OR_RETURN(const ValueId id, TensorOf(node, 0));
    return OneTensor(node, id);
  }
  if (it->second.kind == Held::Kind::kAbsent) {
    return absl::InvalidArgumentError("takes the element of an Optional that is empty");
  }
  return Keep(node, it->second);
}

// --- An If: both branches must result in lists of one length. ---

absl::StatusOr<SequenceWalk::Results> SequenceWalk::Choose(const FlatNode& node) {
  const onnx::NodeProto& proto = *node.proto;
  const int outputs = proto.output_size();
  if (proto.input_size() != 1 + 2 * outputs) {
    return absl::InvalidArgumentError("its branches do not result in as many values as it has");
  }
  std::vector<ValueId> inputs(1), from_else;
  ASSIGN_OR_RETURN(inputs[0], TensorOf(node, 0));
  std::vector<std::string> names;
  std::vector<std::pair<int, size_t>> lists;  // outputs of that many results, in this order
  for (int k = 0; k < outputs; ++k) {
    const std::string& name = proto.output(k);
    const int first = 1 + k, second = 1 + outputs + k;
    const bool is_list = held_.contains(proto.input(first));
    if (is_list != held_.contains(proto.input(second))) {
      return NotKnown(absl::StrCat("output ", k, " is a tensor in one branch only"));
    }
    if (!is_list) {
      ASSIGN_OR_RETURN(const ValueId a, TensorOf(node, first));
      ASSIGN_OR_RETURN(const ValueId b, TensorOf(node, second));
      inputs.push_back(a), from_else.push_back(b), names.push_back(name);
      continue;
    }
    ASSIGN_OR_RETURN(const std::vector<ValueId> a, ListOf(node, first));
    ASSIGN_OR_RETURN(const std::vector<ValueId> b, ListOf(node, second));
    if (a.size() != b.size()) {
      return NotKnown(absl::StrCat("output ", k, " is a sequence of ", a.size(), " or of ",
                                   b.size(), " tensors, as its condition says"));
    }
    inputs.insert(inputs.end(), a.begin(), a.end());
    from_else.insert(from_else.end(), b.begin(), b.end());
    for (size_t i = 0; i < a.size(); ++i) names.push_back(absl::StrCat(name, "[", i, "]"));
    lists.push_back({k, a.size()});
  }
  inputs.insert(inputs.end(), from_else.begin(), from_else.end());
  std::vector<ValueId> made;
  if (!names.empty()) {
    made = graph_.node(graph_.AddNodeWithOutputs("If", std::move(inputs), {}, names, proto.name()))
               .outputs;
  }
  Results results;
  size_t next = 0;
  auto list = lists.begin();
  for (int k = 0; k < outputs; ++k) {
    if (list == lists.end() || list->first != k) {
      const ValueId id = made[next++];
      if (id != kNone) results.push_back({proto.output(k), id});
      continue;
    }
    Held held{.kind = Held::Kind::kList};
    for (size_t i = 0; i < list->second; ++i) held.list.push_back(made[next++]);
    if (!proto.output(k).empty()) held_.insert_or_assign(proto.output(k), std::move(held));
    ++list;
  }
  return results;
}

// --- Operands and results. ---

absl::StatusOr<ValueId> SequenceWalk::TensorOf(const FlatNode& node, int i) const {
  if (!HasInput(node, i)) return absl::InvalidArgumentError(absl::StrCat("has no input ", i));
  const auto it = tensors_.find(node.proto->input(i));
  if (it != tensors_.end()) return it->second;
  return absl::InvalidArgumentError(
      absl::StrCat("input ", i, " ('", node.proto->input(i), "') is not a tensor"));
}

absl::StatusOr<const SequenceWalk::Held*> SequenceWalk::SequenceOf(const FlatNode& node,
                                                                   int i) const {
  if (!HasInput(node, i)) return absl::InvalidArgumentError(absl::StrCat("has no input ", i));
  const auto it = held_.find(node.proto->input(i));
  if (it != held_.end() && it->second.kind != Held::Kind::kAbsent) return &it->second;
  return absl::InvalidArgumentError(
      absl::StrCat("input ", i, " ('", node.proto->input(i), "') is not a sequence"));
}

absl::Status SequenceWalk::Count(int64_t listed) {
  listed_ += listed;
  if (listed_ <= kMaxListed) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("the lists of tensors that are made of the file's sequences hold more than ",
                   kMaxListed, " together"));
}

absl::StatusOr<std::vector<ValueId>> SequenceWalk::ListOf(const FlatNode& node, int i) {
  ASSIGN_OR_RETURN(const Held* sequence, SequenceOf(node, i));
  if (sequence->kind == Held::Kind::kList) {
    RETURN_IF_ERROR(Count(static_cast<int64_t>(sequence->list.size())));
    return sequence->list;
  }
  const Pieces of = sequence->pieces;
  const auto dim = KnownDim(graph_.value(of.source), of.axis);
  if (!dim.has_value() || *dim > kMaxListLength * of.size) {
    return NotKnown(absl::StrCat("takes all pieces of '", node.proto->input(i),
                                 "', whose number the model's inputs decide"));
  }
  std::vector<int64_t> sizes;
  for (int64_t start = 0; start < *dim; start += of.size) {
    sizes.push_back(std::min(of.size, *dim - start));
  }
  if (sizes.empty()) return std::vector<ValueId>();
  RETURN_IF_ERROR(Count(static_cast<int64_t>(sizes.size())));
  const ValueId operand = graph_.AddConstant("", Tensor::Int64s(sizes));
  const NodeId split =
      graph_.AddNode("Split", {of.source, operand}, {{"axis", of.axis}}, sizes.size());
  std::vector<ValueId> list = graph_.node(split).outputs;
  if (of.keep_axis) return list;
  for (ValueId& id : list) {
    const ValueId axes = graph_.AddConstant("", Tensor::Int64s({of.axis}));
    id = graph_.node(graph_.AddNode("Squeeze", {id, axes})).outputs[0];
  }
  return list;
}

absl::StatusOr<std::optional<size_t>> SequenceWalk::PlaceOf(const FlatNode& node, int i,
                                                            size_t size, int64_t last) const {
  ASSIGN_OR_RETURN(const ValueId position, TensorOf(node, i));
  const auto known = KnownNumbers(graph_, position);
  if (!known.has_value()) return std::nullopt;
  const auto count = static_cast<int64_t>(size);
  if (known->size() != 1 || known->front() < -count || known->front() > last) {
    return absl::InvalidArgumentError(absl::StrCat("position ", known->empty() ? 0 : known->front(),
                                                   " lies outside a sequence of ", size,
                                                   " tensors"));
  }
  return static_cast<size_t>(known->front() + (known->front() < 0 ? count : 0));
}

absl::StatusOr<ValueId> SequenceWalk::Select(const FlatNode& node, int i, size_t size, int64_t last,
                                             std::vector<ValueId> items,
                                             std::vector<int64_t> from) {
  RETURN_IF_ERROR(Count(static_cast<int64_t>(items.size())));
  ASSIGN_OR_RETURN(const ValueId position, TensorOf(node, i));
  items.insert(items.begin(), position);
  return Add(node, "reprise.SelectItem", std::move(items),
             {{"count", static_cast<int64_t>(size)}, {"last", last}, {"from", std::move(from)}});
}

ValueId SequenceWalk::Add(const FlatNode& node, absl::string_view op, std::vector<ValueId> inputs,
                          Attributes attributes) {
  const NodeId id =
      graph_.AddNode(op, std::move(inputs), std::move(attributes), 1, node.proto->name());
  return graph_.node(id).outputs[0];
}

ValueId SequenceWalk::Numbers(const std::vector<int64_t>& numbers) {
  return graph_.AddConstant("", Tensor::Int64s(numbers));
}

ValueId SequenceWalk::Scalar(int64_t number) {
  return graph_.AddConstant("", Tensor::Int64Scalar(number));
}

absl::StatusOr<SequenceWalk::Results> SequenceWalk::Keep(const FlatNode& node, Held held) {
  RETURN_IF_ERROR(Count(static_cast<int64_t>(held.list.size())));
  held_.insert_or_assign(node.proto->output(0), std::move(held));
  return Results();
}

absl::StatusOr<SequenceWalk::Results> SequenceWalk::OneTensor(const FlatNode& node,
                                                              ValueId id) const {
  return Results{{node.proto->output(0), id}};
}

}  // namespace reprise
