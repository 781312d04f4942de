// Importer: a model file, ONNX or GGUF (gguf/gguf_model.h) -> Graph, parameters and signature.
//
// Rewrites every op into the newest form that op_table.cc defines. Collects every reason why a
// model cannot be imported before it gives up (see Reasons): UNIMPLEMENTED for anything that
// we lack, INVALID_ARGUMENT for an invalid model (truncated, cyclic, dangling).
//
// Threads: functions are pure; call from any thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/hash_map.h"
#include "runtime/base/load_budget.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/vocabulary.h"
#include "runtime/onnx/file/file_bytes.h"
#include "runtime/onnx/kit/reasons.h"
#include "runtime/onnx/model_io.h"

namespace reprise {

struct ImportedModel {
  Graph graph;                     // symbolic; graph.outputs() in the order of `outputs`
  std::vector<Tensor> parameters;  // indexed by ParameterExpr leaf; may be unaligned
  std::vector<FileBytes> files;    // that parameters point into
  std::vector<ModelIo> inputs;     // every graph input that a request gives
  std::vector<ModelIo> outputs;
  std::shared_ptr<const Vocabulary> vocabulary;  // never null
  std::string producer;                          // shown to people
};

// Reads the model at `path` (symbolic links are followed). External data must stay in the folder
// of the resolved file. Parameters point into mappings of the files. RESOURCE_EXHAUSTED if it takes
// more than `budget` has (null: the budget of a file of its size). An input without a declared rank
// has the one in `ranks`, and a symbol for each dim.
absl::StatusOr<ImportedModel> ImportOnnxFile(const std::string& path, LoadBudget* budget = nullptr,
                                             const InputRanks& ranks = {});

// Returns the inputs that a request must give and whose rank the file leaves open, in the file's
// order.
absl::StatusOr<std::vector<std::string>> InputsWithoutRank(const std::string& path);

// Returns the same for bytes in memory; external data is an error.
absl::StatusOr<ImportedModel> ImportOnnxBytes(absl::string_view bytes);

// A node that cannot be imported.
struct RefusedNode {
  absl::StatusCode code = absl::StatusCode::kUnimplemented;
  NodeReason reason;  // its dtypes are left out
  std::vector<ValueId> inputs;
};

// A model as far as it can be read, to look for reasons in; not to run.
struct ExaminedModel {
  // Not compacted. Outputs of refused nodes are inputs without a dtype.
  Graph graph;
  std::vector<ModelIo> inputs;
  std::vector<RefusedNode> nodes;
  HashSet<ValueId> texts;                   // values that are text
  Reasons others;                           // that are not about a node
  std::map<std::string, ModelIo> declared;  // dtypes and dims that the file states, by value
  std::map<std::string, int64_t> versions;  // versions of operator sets, by domain
};

// Reads on where ImportOnnxFile refuses. Errors: a file whose structure is broken.
absl::StatusOr<ExaminedModel> ExamineOnnxFile(const std::string& path,
                                              const InputRanks& ranks = {});

// Returns the dtypes of `values` as NodeReason::dtypes shows them.
std::string DTypesText(const Graph& graph, const std::vector<ValueId>& values,
                       const HashSet<ValueId>& texts);

// Returns how people read the dtype of `io`: "f32", "text".
absl::string_view TypeText(const ModelIo& io);

}  // namespace reprise
