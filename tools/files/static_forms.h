// StaticForms: nodes of an ONNX model whose results have sizes that data decide, and the forms of
// fixed size that would do in their place.
//
//   NonZero(mask) -> Transpose -> GatherND(x, .) -> f -> ReduceSum
//     is   ReduceSum(Where(mask, f(x), 0))
//   Compress(x, mask) -> f -> ReduceMean
//     is   ReduceSum(Where(mask, f(x), 0)) / ReduceSum(mask)
//   the same before an output
//     is   Where(mask, f(x), 0), and the mask as an output
//
// where f is any chain of elementwise operators over x and constants of one element. TopK over a
// computed k and NonMaxSuppression have forms of their own: see row_forms.h. Other dynamic
// operators (Unique, selections that are used otherwise) are reported, with the form that a
// change of the model would need, and left as they are.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/onnx/file/onnx_proto.h"

namespace reprise::cli {

struct StaticForm {
  std::string node;     // name of the dynamic node, or of its first result
  std::string op;       // "NonZero"
  std::string words;    // the form that would do: "Where and ReduceSum"
  std::string why_not;  // the node that stands in the way of a rewrite: "Gather 'x' reads places"
  // The parts that a rewrite needs, where it knows one. Values by name.
  bool known = false;
  bool has_rows = false;        // its form is one of row_forms.h, for the result `output`
  bool reaches_output = false;  // an output has its dynamic size
  std::string values;           // x
  std::string mask;             // that decides which of them are selected
  std::vector<int> chain;       // positions of the nodes f, in their order
  std::vector<int> selection;   // indices of the selecting nodes, which are removed
  int reduction = -1;           // position of the reduction; -1 where it reaches an output
  std::string output;           // the value that the rewrite makes
  bool flattens = false;        // the selection is over all elements (Compress without an axis)
  int axis = -1;                // that Compress selects along; -1: the mask covers the first dims
};

// The facts about the two values of a form that make the rewrite right.
struct FormFacts {
  int value_rank = 0;
  int mask_rank = 0;
  int dtype = 0;  // x has this TensorProto::DataType
};

// Returns every dynamic node of the graph, in its order.
std::vector<StaticForm> FindStaticForms(const onnx::GraphProto& graph);

struct RewriteOptions {
  bool allow_output_change = false;
};

// Puts the static form of `form` into `model`. UNIMPLEMENTED where it is not known,
// FAILED_PRECONDITION where it changes an output and that is not allowed.
absl::Status ApplyStaticForm(const StaticForm& form, const FormFacts& facts,
                             const RewriteOptions& options, onnx::ModelProto& model);

}  // namespace reprise::cli
