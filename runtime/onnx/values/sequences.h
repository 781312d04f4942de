// SequenceWalk: values of a file that are no tensors, while its nodes are imported.
//
// The graph has tensors alone. A sequence is the list of the tensors in it, an Optional the value
// that it holds, and the ops over them are resolved where the list is known when the file is read:
// SequenceAt becomes the tensor at that place, ConcatFromSequence a Concat. Pieces of a tensor
// that all have one size (SplitToSequence) are known without their number: the piece at a place is
// cut out, and counting them is arithmetic over the tensor's shape.
//
// A position that a request decides selects among tensors (ops/select_item.h), and is part of the
// binding. Lists not known by then are UNIMPLEMENTED, and the error names the cause: sequences
// that a Loop carries, lists of different lengths after an If, pieces of several elements at
// positions that the model computes.
//
// Ownership: borrows the graph and the table of tensors, both of which the caller adds to.
// Threads:   one caller.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/hash_map.h"
#include "runtime/graph/node.h"
#include "runtime/onnx/structure/flatten.h"

namespace reprise {

class SequenceWalk {
 public:
  using Tensors = HashMap<std::string, ValueId>;

  // `tensors`: the values of the file that are tensors, by name.
  SequenceWalk(Graph& graph, const Tensors& tensors) : graph_(graph), tensors_(tensors) {}

  // Returns whether `node` is one of these ops, or takes a result of one.
  bool Concerns(const FlatNode& node) const;
  // Returns whether `name` is a value of the file that is no tensor.
  bool Holds(const std::string& name) const { return held_.contains(name); }

  struct Named {
    std::string name;
    ValueId id;
  };
  // Returns the results of `node` that are tensors; those that are not are kept. Takes only
  // nodes that concern it, in topological order. INVALID_ARGUMENT, UNIMPLEMENTED: why not.
  absl::StatusOr<std::vector<Named>> Resolve(const FlatNode& node);

  // `name` is no tensor and nothing is known of it: the reason is reported elsewhere, and not
  // again by the nodes that take it.
  void DefineUnknown(const std::string& name);
  // Defines the results of `node` that are no tensors; `Resolve` said why they are not known.
  void DefineUnknownResults(const FlatNode& node);

 private:
  static constexpr int64_t kMaxListLength = 65536;  // pieces of one tensor

  // Pieces of `source` along `axis`, each of `size` elements but the last, which may be shorter.
  struct Pieces {
    ValueId source = kNone;
    int64_t axis = 0;
    int64_t size = 1;
    bool keep_axis = true;  // else pieces have one dim less; `size` is 1
  };
  struct Held {
    enum class Kind { kUnknown, kList, kPieces, kAbsent };
    Kind kind = Kind::kUnknown;
    std::vector<ValueId> list;
    Pieces pieces;
  };
  using Results = std::vector<Named>;
  using Method = absl::StatusOr<Results> (SequenceWalk::*)(const FlatNode&);
  struct Row {
    absl::string_view op;
    int min_inputs, max_inputs;  // -1: any number
    bool makes_tensor;
    Method resolve;
  };
  static const Row* FindRow(const FlatNode& node);

  static bool HasInput(const FlatNode& node, int i);
  // UNIMPLEMENTED for `what`, which is not known when the file is read.
  static absl::Status NotKnown(absl::string_view what);

  // sequence_ops.cc
  absl::StatusOr<Results> Construct(const FlatNode& node);
  absl::StatusOr<Results> Empty(const FlatNode& node);
  absl::StatusOr<Results> Insert(const FlatNode& node);
  absl::StatusOr<Results> Erase(const FlatNode& node);
  absl::StatusOr<Results> At(const FlatNode& node);
  absl::StatusOr<Results> Length(const FlatNode& node);
  absl::StatusOr<Results> Join(const FlatNode& node);
  absl::StatusOr<Results> Split(const FlatNode& node);
  // sequences.cc: Optionals, and the choices of an If.
  absl::StatusOr<Results> MakeOptional(const FlatNode& node);
  absl::StatusOr<Results> HasElement(const FlatNode& node);
  absl::StatusOr<Results> GetElement(const FlatNode& node);
  absl::StatusOr<Results> Choose(const FlatNode& node);

  absl::StatusOr<Results> PieceAt(const FlatNode& node, const Pieces& pieces);
  // Returns operand `i` as the kind that it has to be.
  absl::StatusOr<ValueId> TensorOf(const FlatNode& node, int i) const;
  absl::StatusOr<const Held*> SequenceOf(const FlatNode& node, int i) const;
  absl::StatusOr<std::vector<ValueId>> ListOf(const FlatNode& node, int i);
  // Counts `listed` more tensors in lists: a file of few bytes could make very many long lists.
  absl::Status Count(int64_t listed);
  // Returns the position that operand `i` is, among places from -size to `last`; nullopt:
  // the model computes it. One below 0 is counted from the end of a list of `size`.
  absl::StatusOr<std::optional<size_t>> PlaceOf(const FlatNode& node, int i, size_t size,
                                                int64_t last) const;
  // Adds a node that selects one of `items` by operand `i`, a position in a list of `size`.
  absl::StatusOr<ValueId> Select(const FlatNode& node, int i, size_t size, int64_t last,
                                 std::vector<ValueId> items, std::vector<int64_t> from);

  ValueId Add(const FlatNode& node, absl::string_view op, std::vector<ValueId> inputs,
              Attributes attributes = {});
  ValueId Numbers(const std::vector<int64_t>& numbers);
  ValueId Scalar(int64_t number);
  absl::StatusOr<Results> Keep(const FlatNode& node, Held held);
  absl::StatusOr<Results> OneTensor(const FlatNode& node, ValueId id) const;

  Graph& graph_;
  const Tensors& tensors_;
  HashMap<std::string, Held> held_;
  int64_t listed_ = 0;
};

}  // namespace reprise
