#include "runtime/onnx/values/sequences.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/onnx/kit/known_numbers.h"
#include "runtime/onnx/structure/branches.h"

namespace reprise {
namespace {

constexpr int64_t kMaxListLength = 65536;       // pieces of one tensor
constexpr int64_t kMaxListed = 1 << 21;         // tensors in all lists that are made or taken
constexpr int64_t kMaxSize = int64_t{1} << 31;  // size of a piece, and the largest place of one

int64_t IntOf(const FlatNode& node, absl::string_view name, int64_t fallback) {
  const std::vector<int64_t> given = IntsOf(*node.proto, name, {fallback});
  return given.empty() ? fallback : given[0];
}

bool HasInput(const FlatNode& node, int i) {
  return i < node.proto->input_size() && !node.proto->input(i).empty();
}

absl::Status NotKnown(absl::string_view what) {
  return absl::UnimplementedError(absl::StrCat(
      what, "; sequences are supported where the file says which tensors are in them"));
}

}  // namespace

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
        absl::StrCat("input ", i, " ('", proto.input(i), "') is no tensor"));
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

absl::StatusOr<SequenceWalk::Results> SequenceWalk::Construct(const FlatNode& node) {
  Held held{.kind = Held::Kind::kList};
  for (int i = 0; i < node.proto->input_size(); ++i) {
    ASSIGN_OR_RETURN(const ValueId id, TensorOf(node, i));
    held.list.push_back(id);
  }
  return Keep(node, std::move(held));
}

absl::StatusOr<SequenceWalk::Results> SequenceWalk::Empty(const FlatNode& node) {
  return Keep(node, {.kind = Held::Kind::kList});
}

absl::StatusOr<SequenceWalk::Results> SequenceWalk::Insert(const FlatNode& node) {
  ASSIGN_OR_RETURN(std::vector<ValueId> list, ListOf(node, 0));
  ASSIGN_OR_RETURN(const ValueId id, TensorOf(node, 1));
  const auto size = static_cast<int64_t>(list.size());
  std::optional<size_t> place = list.size();
  if (HasInput(node, 2)) {
    // One more place than there are tensors; -1 is the one before the last of them.
    ASSIGN_OR_RETURN(place, PlaceOf(node, 2, list.size(), size));
  }
  if (place.has_value()) {
    list.insert(list.begin() + static_cast<int64_t>(*place), id);
    return Keep(node, {.kind = Held::Kind::kList, .list = std::move(list)});
  }
  Held held{.kind = Held::Kind::kList};
  for (int64_t i = 0; i <= size; ++i) {
    const ValueId before = i > 0 ? list[i - 1] : id, behind = i < size ? list[i] : id;
    ASSIGN_OR_RETURN(const ValueId item,
                     Select(node, 2, list.size(), size, {before, id, behind}, {i, i + 1}));
    held.list.push_back(item);
  }
  return Keep(node, std::move(held));
}

absl::StatusOr<SequenceWalk::Results> SequenceWalk::Erase(const FlatNode& node) {
  ASSIGN_OR_RETURN(std::vector<ValueId> list, ListOf(node, 0));
  if (list.empty()) return absl::InvalidArgumentError("erases from an empty sequence");
  const auto last = static_cast<int64_t>(list.size()) - 1;
  std::optional<size_t> place = list.size() - 1;
  if (HasInput(node, 1)) {
    ASSIGN_OR_RETURN(place, PlaceOf(node, 1, list.size(), last));
  }
  if (place.has_value()) {
    list.erase(list.begin() + static_cast<int64_t>(*place));
    return Keep(node, {.kind = Held::Kind::kList, .list = std::move(list)});
  }
  Held held{.kind = Held::Kind::kList};
  for (int64_t i = 0; i < last; ++i) {
    ASSIGN_OR_RETURN(const ValueId item,
                     Select(node, 1, list.size(), last, {list[i + 1], list[i]}, {i + 1}));
    held.list.push_back(item);
  }
  return Keep(node, std::move(held));
}

absl::StatusOr<SequenceWalk::Results> SequenceWalk::Split(const FlatNode& node) {
  ASSIGN_OR_RETURN(const ValueId source, TensorOf(node, 0));
  const int64_t axis = IntOf(node, "axis", 0);
  Pieces pieces = {.source = source, .axis = axis};
  if (HasInput(node, 1)) {
    ASSIGN_OR_RETURN(const ValueId sizes, TensorOf(node, 1));
    const auto known = KnownNumbers(graph_, sizes);
    // A vector lists the sizes, of which there must be a known number; a scalar is the size of all.
    const auto count = KnownDim(graph_.value(sizes), 0);
    if (count.has_value() && KnownRank(graph_.value(sizes)) == 1) {
      if (known.has_value() && absl::c_any_of(*known, [](int64_t size) { return size < 0; })) {
        return absl::InvalidArgumentError("splits into pieces of negative size");
      }
      if (*count == 0) return absl::InvalidArgumentError("splits into no pieces");
      if (*count > kMaxListLength) return NotKnown(absl::StrCat("splits into ", *count, " pieces"));
      const NodeId split =
          graph_.AddNode("Split", {source, sizes}, {{"axis", axis}}, *count, node.proto->name());
      return Keep(node, {.kind = Held::Kind::kList, .list = graph_.node(split).outputs});
    }
    const std::optional<Shape>& shape = graph_.value(sizes).shape;
    if (!known.has_value() || !shape.has_value() || !shape->empty()) {
      return NotKnown("splits into sizes that the model computes");
    }
    if (known->front() < 0)
      return absl::InvalidArgumentError("splits into pieces of negative size");
    if (known->front() == 0) return absl::InvalidArgumentError("splits into pieces of size 0");
    pieces.size = std::min(known->front(), kMaxSize);
  } else {
    pieces.keep_axis = IntOf(node, "keepdims", 1) != 0;
  }
  return Keep(node, {.kind = Held::Kind::kPieces, .pieces = pieces});
}

// --- Taking apart. ---

absl::StatusOr<SequenceWalk::Results> SequenceWalk::At(const FlatNode& node) {
  ASSIGN_OR_RETURN(const Held* sequence, SequenceOf(node, 0));
  if (sequence->kind == Held::Kind::kPieces) return PieceAt(node, sequence->pieces);
  const std::vector<ValueId> list = sequence->list;
  const auto last = static_cast<int64_t>(list.size()) - 1;
  ASSIGN_OR_RETURN(const std::optional<size_t> place, PlaceOf(node, 1, list.size(), last));
  if (place.has_value()) return OneTensor(node, list[*place]);
  if (list.empty()) return absl::InvalidArgumentError("takes a tensor of an empty sequence");
  std::vector<int64_t> from;
  for (int64_t i = 1; i <= last; ++i) from.push_back(i);
  ASSIGN_OR_RETURN(const ValueId item, Select(node, 1, list.size(), last, list, std::move(from)));
  return OneTensor(node, item);
}

absl::StatusOr<SequenceWalk::Results> SequenceWalk::PieceAt(const FlatNode& node,
                                                            const Pieces& pieces) {
  const Pieces of = pieces;
  ASSIGN_OR_RETURN(const ValueId position, TensorOf(node, 1));
  const auto known = KnownNumbers(graph_, position);
  if (known.has_value() && known->size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat("takes one position, is given ", known->size()));
  }
  if (of.size == 1) {
    // Counts from the end and refuses positions outside as SequenceAt does, computed ones as well.
    const ValueId place = known.has_value()
                              ? graph_.AddConstant("", Tensor::FromVector<int64_t>(
                                                           DType::kInt64, {}, {known->front()}))
                              : position;
    const ValueId piece = Add(node, "Gather", {of.source, place}, {{"axis", of.axis}});
    if (!of.keep_axis) return OneTensor(node, piece);
    return OneTensor(node, Add(node, "Unsqueeze", {piece, Numbers({of.axis})}));
  }
  if (!known.has_value()) return NotKnown("takes a piece at a position that the model computes");
  const int64_t place = known->front();
  const auto dim = KnownDim(graph_.value(of.source), of.axis);
  if (dim.has_value()) {
    const int64_t count = (*dim + of.size - 1) / of.size;
    if (place < -count || place >= count) {
      return absl::InvalidArgumentError(
          absl::StrCat("position ", place, " lies outside a sequence of ", count, " tensors"));
    }
  }
  if (place < -kMaxSize || place > kMaxSize) {
    return absl::InvalidArgumentError(
        absl::StrCat("position ", place, " lies outside any sequence"));
  }
  const ValueId axis = Numbers({of.axis});
  if (place >= 0) {
    return OneTensor(
        node, Add(node, "Slice",
                  {of.source, Numbers({place * of.size}), Numbers({(place + 1) * of.size}), axis}));
  }
  // From the end: the last piece begins at the largest multiple of the size below the length.
  const ValueId length = Add(node, "Gather", {Add(node, "Shape", {of.source}), Numbers({of.axis})},
                             {{"axis", int64_t{0}}});
  const ValueId size = Numbers({of.size});
  const ValueId count =
      Add(node, "Div", {Add(node, "Add", {length, Numbers({of.size - 1})}), size});
  const ValueId first = Add(node, "Mul", {Add(node, "Add", {count, Numbers({place})}), size});
  // Before the first piece there is nothing: a place below 0 would count from the end once more.
  const ValueId none = Numbers({0});
  const ValueId start = Add(node, "Max", {first, none});
  const ValueId end = Add(node, "Max", {Add(node, "Add", {first, size}), none});
  return OneTensor(node, Add(node, "Slice", {of.source, start, end, axis}));
}

absl::StatusOr<SequenceWalk::Results> SequenceWalk::Length(const FlatNode& node) {
  ASSIGN_OR_RETURN(const Held* sequence, SequenceOf(node, 0));
  if (sequence->kind == Held::Kind::kList) {
    return OneTensor(node, Scalar(static_cast<int64_t>(sequence->list.size())));
  }
  const Pieces of = sequence->pieces;
  const ValueId length = Add(node, "Gather", {Add(node, "Shape", {of.source}), Scalar(of.axis)},
                             {{"axis", int64_t{0}}});
  if (of.size == 1) return OneTensor(node, length);
  return OneTensor(
      node, Add(node, "Div", {Add(node, "Add", {length, Scalar(of.size - 1)}), Scalar(of.size)}));
}

absl::StatusOr<SequenceWalk::Results> SequenceWalk::Join(const FlatNode& node) {
  const int64_t axis = IntOf(node, "axis", 0);
  const bool new_axis = IntOf(node, "new_axis", 0) != 0;
  ASSIGN_OR_RETURN(const Held* sequence, SequenceOf(node, 0));
  if (sequence->kind == Held::Kind::kPieces) {
    const Pieces& of = sequence->pieces;
    // Put together again as it was, at any number.
    if (of.axis == axis && of.keep_axis != new_axis) return OneTensor(node, of.source);
  }
  ASSIGN_OR_RETURN(std::vector<ValueId> list, ListOf(node, 0));
  if (list.empty()) return absl::InvalidArgumentError("joins an empty sequence");
  if (new_axis) {
    const ValueId axes = Numbers({axis});
    for (ValueId& id : list) id = Add(node, "Unsqueeze", {id, axes});
  }
  return OneTensor(node, Add(node, "Concat", std::move(list), {{"axis", axis}}));
}

// --- Optionals: what is there is known in the file. ---

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
      return NotKnown(absl::StrCat("output ", k, " is a tensor behind one branch alone"));
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
      absl::StrCat("input ", i, " ('", node.proto->input(i), "') is no tensor"));
}

absl::StatusOr<const SequenceWalk::Held*> SequenceWalk::SequenceOf(const FlatNode& node,
                                                                   int i) const {
  if (!HasInput(node, i)) return absl::InvalidArgumentError(absl::StrCat("has no input ", i));
  const auto it = held_.find(node.proto->input(i));
  if (it != held_.end() && it->second.kind != Held::Kind::kAbsent) return &it->second;
  return absl::InvalidArgumentError(
      absl::StrCat("input ", i, " ('", node.proto->input(i), "') is no sequence"));
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
