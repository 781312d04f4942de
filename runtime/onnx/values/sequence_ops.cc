// The ops over lists of tensors, and over the pieces of one: construct, insert, erase, split,
// select, count, join.
#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/kit/known_numbers.h"
#include "runtime/onnx/structure/branches.h"
#include "runtime/onnx/values/sequences.h"

namespace reprise {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 31;  // size of a piece, and the largest place of one

int64_t IntOf(const FlatNode& node, absl::string_view name, int64_t fallback) {
  const std::vector<int64_t> given = IntsOf(*node.proto, name, {fallback});
  return given.empty() ? fallback : given[0];
}

}  // namespace

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

// --- Optionals: whether one is empty is known in the file. ---

}  // namespace reprise
