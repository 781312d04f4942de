// TensorProto -> Tensor, from typed fields, raw bytes or external files.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/tensor.h"
#include "runtime/graph/vocabulary.h"
#include "runtime/onnx/file/file_bytes.h"
#include "runtime/onnx/file/onnx_proto.h"

namespace reprise {

// Reads tensors of one model; keeps the external files that it mapped.
class TensorReader {
 public:
  // `model_path` is the file as it was asked for; empty: the model has no folder, and external data
  // is an error. `file` holds the model's own bytes. `vocabulary`, which outlives
  // the reader, has all texts of the model: tensors of text are read as their places, of int64;
  // null: they are UNIMPLEMENTED.
  TensorReader(const std::string& model_path, FileBytes file,
               const Vocabulary* vocabulary = nullptr);

  // Reads the tensor in `proto`, whose raw bytes are `raw` when data() is set (they may be views
  // of the model's file), else in the message. A parameter keeps pointing into a mapping, at any
  // address (see Tensor::Aligned); everything else is copied. Float8 is read as its bits, uint8.
  // INVALID_ARGUMENT for a broken tensor, UNIMPLEMENTED for dtypes that we lack; both name
  // `label`.
  absl::StatusOr<Tensor> Read(const onnx::TensorProto& proto, absl::string_view raw,
                              absl::string_view label);

  // Reads the tensor in `proto`, zeros included. Errors as of Read, and UNIMPLEMENTED where all of
  // the reader's come to more than 256 MiB and 64 for each byte of their values and indices, or to
  // 2 GiB.
  absl::StatusOr<Tensor> ReadSparse(const onnx::SparseTensorProto& proto, absl::string_view label);

  // Reads numbers of four bits: their bytes, two numbers each, low bits first, as Read would read
  // that many uint8.
  absl::StatusOr<Tensor> ReadNibbles(const onnx::TensorProto& proto, absl::string_view raw,
                                     absl::string_view label);
  static bool HoldsNibbles(const onnx::TensorProto& proto);

  // Returns all that tensors may point into.
  std::vector<FileBytes> Files() const;

 private:
  absl::StatusOr<Tensor> ReadTexts(const onnx::TensorProto& proto) const;
  absl::StatusOr<Tensor> ReadAs(const onnx::TensorProto& proto, DType dtype, Shape shape,
                                absl::string_view raw);
  absl::StatusOr<Tensor> ReadTyped(const onnx::TensorProto& proto, DType dtype, Shape shape);
  absl::StatusOr<Tensor> ReadExternal(const onnx::TensorProto& proto, DType dtype, Shape shape);
  absl::StatusOr<const FileBytes*> ExternalFile(const std::string& location);
  // Returns the bytes, shared with `file` when they are a parameter's, else copied.
  absl::StatusOr<Tensor> FromBytes(DType dtype, Shape shape, absl::string_view bytes,
                                   const FileBytes& file);

  std::string model_path_;
  FileBytes file_;
  const Vocabulary* vocabulary_;
  int64_t sparse_bytes_ = 0;                   // bytes that ReadSparse has returned
  int64_t sparse_file_bytes_ = 0;              // bytes that they take in the file
  std::map<std::string, FileBytes> external_;  // keyed by location
};

}  // namespace reprise
