// Importer: an ONNX model -> Graph, parameters and signature.
//
// Rewrites every op into the newest form that op_table.cc defines. Collects every reason why a
// model cannot be imported before it gives up: UNIMPLEMENTED lists op, domain, version, node and
// dtype of each; INVALID_ARGUMENT for a file that is no valid model (truncated, cyclic, dangling).
//
// Threads: functions are pure; call from any thread.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/graph.h"

namespace reprise {

struct ModelIo {
  std::string name;
  DType dtype = DType::kUndefined;
  std::vector<Dim> dims;  // outputs: as declared, informative only
  bool optional = false;  // an initialiser listed as input: a request may leave it out
};

struct ImportedModel {
  Graph graph;                     // symbolic; graph.outputs() in the order of `outputs`
  std::vector<Tensor> parameters;  // by ParameterExpr leaf index
  std::vector<ModelIo> inputs;     // every graph input that a request gives
  std::vector<ModelIo> outputs;
  std::string producer;  // for people
};

// Reads the model at `path` (symbolic links are followed). External data must stay in the folder
// of the resolved file. Parameters point into mappings of the files where their alignment allows.
absl::StatusOr<ImportedModel> ImportOnnxFile(const std::string& path);

// The same for bytes in memory; external data is an error.
absl::StatusOr<ImportedModel> ImportOnnxBytes(absl::string_view bytes);

}  // namespace reprise
