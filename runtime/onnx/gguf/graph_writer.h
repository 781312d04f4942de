// GraphWriter: writes an ONNX graph whose weights are the tensors of a GGUF file, at their place in
// the file.
//
// Initializers are external data in the file itself, so that nothing is copied; blocks of numbers
// are bytes that a node `ggml.Dequantize` reads (runtime/ops/weights/stored_floats.h).
//
//   GraphWriter w(file);
//   const std::string x = w.Lookup("token_embd.weight", "input_ids", hidden);
//   const std::string y = w.Linear(x, "blk.0.attn_q", {.inputs = hidden});
//   ASSIGN_OR_RETURN(onnx::ModelProto model, w.Finish());
//
// Errors: the first one is kept, and Finish returns it: INVALID_ARGUMENT naming a tensor that is
// missing or has another shape. Ownership: borrows the file. Threads: one caller.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/onnx/file/onnx_proto.h"
#include "runtime/onnx/gguf/gguf_file.h"

namespace reprise {

class GraphWriter {
 public:
  using Setting =
      std::pair<const char*, std::variant<int64_t, float, std::string, std::vector<int64_t>>>;
  using Dim = std::variant<int64_t, std::string>;

  explicit GraphWriter(const GgufFile& file) : file_(file) {}

  // Adds a node, and returns its only or first result. `op` may begin with a domain
  // ("com.microsoft.Gelu"); an empty input is left out.
  std::string Node(const std::string& op, const std::vector<std::string>& inputs,
                   const std::vector<Setting>& settings = {}, int outputs = 1);
  // Writes a node with results of these names.
  void NodeInto(const std::string& op, const std::vector<std::string>& inputs,
                const std::vector<std::string>& outputs, const std::vector<Setting>& settings = {});
  // Returns the result number `i` of the node that was added last.
  std::string Result(int i) const;

  std::string Floats(const std::vector<float>& values, const std::vector<int64_t>& dims);
  std::string Float(float value) { return Floats({value}, {}); }
  std::string Ints(const std::vector<int64_t>& values) { return Ints(values, false); }
  std::string Int(int64_t value) { return Ints({value}, true); }

  bool Has(const std::string& tensor) const { return file_.Tensor(tensor) != nullptr; }
  // Returns a tensor of one dim, as floats; "" after an error.
  std::string Vector(const std::string& tensor, int64_t size);
  // Returns its numbers, of F32.
  std::vector<float> VectorValues(const std::string& tensor, int64_t size);
  // Rows of the matrix `tensor`, which has `columns`, by ids.
  std::string Lookup(const std::string& tensor, const std::string& ids, int64_t columns);

  struct Sizes {
    int64_t inputs = 0;
    int64_t outputs = -1;  // -1: any
  };
  // x times the matrix `name`.weight [outputs, inputs], plus `name`.bias where there is one.
  std::string Linear(const std::string& x, const std::string& name, Sizes sizes);
  // Returns the rows of a matrix; 0, and an error, where it is none.
  int64_t Rows(const std::string& tensor);

  void Input(const std::string& name, int type, const std::vector<Dim>& dims);
  // Declares the output `name`, floats, which some node makes.
  void Output(const std::string& name, const std::vector<Dim>& dims);

  // Marks the tensor, should there be one, as not to be read.
  void Ignore(const std::string& tensor) { used_.insert(tensor); }

  void Fail(absl::Status status) { status_.Update(std::move(status)); }
  const absl::Status& status() const { return status_; }

  // Returns the model. UNIMPLEMENTED naming a tensor of the file that nothing read.
  absl::StatusOr<onnx::ModelProto> Finish();

 private:
  std::string Ints(const std::vector<int64_t>& values, bool scalar);
  std::string Next(const std::string& hint);
  const GgufTensor* Use(const std::string& tensor);
  // Returns the initializer of a tensor; a row of blocks is a row of bytes.
  std::string Stored(const std::string& name, const GgufTensor& tensor);
  // `value`, numbers of `tensor`'s type, as floats.
  std::string AsFloats(const std::string& value, const GgufTensor& tensor);
  // Returns the matrix `tensor` with these sizes, -1: any; nullptr after an error.
  const GgufTensor* Matrix(const std::string& tensor, int64_t rows, int64_t columns);

  const GgufFile& file_;
  onnx::ModelProto model_;
  onnx::GraphProto& graph_ = *model_.mutable_graph();
  std::set<std::string> used_, stored_;
  absl::Status status_;
  int64_t names_ = 0;
};

}  // namespace reprise
