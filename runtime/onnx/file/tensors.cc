#include "runtime/onnx/file/tensors.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/kit/onnx_types.h"
#include "runtime/ops/quantized/float8.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

// All sparse tensors of a file together: they are dense after the importer, and a few bytes of a
// file must not fill the memory. So many are made of any, and for each byte that the file holds of
// values and indices, up to a limit: of a hundred elements one that is not zero is enough.
constexpr int64_t kFewSparseBytes = int64_t{256} << 20;
constexpr int64_t kSparseBytesOfOne = 64;
constexpr int64_t kMostSparseBytes = int64_t{1} << 31;

// Copies `count` values of a repeated field, narrowed to T.
template <typename T, typename Field>
Tensor FromField(DType dtype, Shape shape, const Field& field) {
  return Tensor::Make(dtype, std::move(shape), [&](void* data) {
    T* out = static_cast<T*>(data);
    for (const auto value : field) *out++ = static_cast<T>(value);
  });
}

absl::StatusOr<Shape> ShapeOf(const onnx::TensorProto& proto) {
  Shape shape(proto.dims().begin(), proto.dims().end());
  const auto elements = CheckedNumElements(shape);
  if (elements.ok() && *elements <= INT64_MAX / 8) return shape;
  return absl::InvalidArgumentError(
      absl::StrCat("the dims ", ShapeToString(shape), " are negative or too large"));
}

absl::StatusOr<Tensor> Labelled(absl::StatusOr<Tensor> tensor, absl::string_view label) {
  if (tensor.ok()) return tensor;
  return absl::Status(tensor.status().code(), absl::StrCat(label, ": ", tensor.status().message()));
}

absl::Status CountError(int64_t have, int64_t want, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("has ", have, " ", what, " of data, expected ", want));
}

}  // namespace

TensorReader::TensorReader(const std::string& model_path, FileBytes file,
                           const Vocabulary* vocabulary)
    : model_path_(model_path), file_(std::move(file)), vocabulary_(vocabulary) {}

absl::StatusOr<Tensor> TensorReader::Read(const onnx::TensorProto& proto, absl::string_view raw,
                                          absl::string_view label) {
  const auto read = [&]() -> absl::StatusOr<Tensor> {
    if (vocabulary_ != nullptr && proto.data_type() == onnx::TensorProto::STRING) {
      return ReadTexts(proto);
    }
    DType dtype = DType::kUInt8;  // the bits of float8
    if (!ops::IsFloat8(proto.data_type())) {
      ASSIGN_OR_RETURN(dtype, ops::DTypeFromOnnx(proto.data_type()));
    }
    ASSIGN_OR_RETURN(Shape shape, ShapeOf(proto));
    return ReadAs(proto, dtype, std::move(shape), raw);
  };
  return Labelled(read(), label);
}

absl::StatusOr<Tensor> TensorReader::ReadSparse(const onnx::SparseTensorProto& proto,
                                                absl::string_view label) {
  if (proto.values().data_type() == onnx::TensorProto::STRING) {
    return absl::UnimplementedError(absl::StrCat(label, ": a sparse tensor of text"));
  }
  ASSIGN_OR_RETURN(const Tensor values, Read(proto.values(), {}, label));
  ASSIGN_OR_RETURN(const Tensor indices, Read(proto.indices(), {}, label));
  const auto read = [&]() -> absl::StatusOr<Tensor> {
    const Shape shape(proto.dims().begin(), proto.dims().end());
    ASSIGN_OR_RETURN(const int64_t elements, CheckedNumElements(shape));
    const auto size = static_cast<int64_t>(DTypeSize(values.dtype()));
    sparse_file_bytes_ += static_cast<int64_t>(values.bytes() + indices.bytes());
    const int64_t most =
        std::min(kFewSparseBytes + kSparseBytesOfOne * sparse_file_bytes_, kMostSparseBytes);
    if (elements > (most - sparse_bytes_) / size) {
      return absl::UnimplementedError(
          absl::StrCat("with the sparse tensor ", ShapeToString(shape),
                       " the sparse tensors of the model have more than ", most,
                       " bytes, zeros included, the limit for ", sparse_file_bytes_,
                       " bytes of values and indices"));
    }
    sparse_bytes_ += elements * size;
    const int64_t count = values.num_elements(), rank = static_cast<int64_t>(shape.size());
    const bool by_dim = indices.shape().size() == 2;
    const Shape expected = by_dim ? Shape{count, rank} : Shape{count};
    if (values.shape().size() != 1 || indices.dtype() != DType::kInt64 ||
        indices.shape() != expected) {
      return absl::InvalidArgumentError(absl::StrCat(
          "values ", ShapeToString(values.shape()), " and indices ", DTypeName(indices.dtype()),
          ShapeToString(indices.shape()), " do not fit the sparse tensor ", ShapeToString(shape)));
    }
    ASSIGN_OR_RETURN(const std::vector<int64_t> places, indices.ToInt64s());
    std::vector<int64_t> offsets(count, 0);
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t d = 0; d < (by_dim ? rank : 1); ++d) {
        const int64_t place = places[by_dim ? i * rank + d : i],
                      most = by_dim ? shape[d] : elements;
        if (place < 0 || place >= most) {
          return absl::InvalidArgumentError(absl::StrCat("index ", place, " of the sparse tensor ",
                                                         ShapeToString(shape),
                                                         " is out of range [0, ", most - 1, "]"));
        }
        offsets[i] = offsets[i] * (by_dim ? shape[d] : 1) + place;
      }
    }
    return Tensor::Make(values.dtype(), shape, [&](void* data) {
      if (elements > 0) std::memset(data, 0, elements * size);
      const auto* const from = static_cast<const char*>(values.data());
      for (int64_t i = 0; i < count; ++i) {
        std::memcpy(static_cast<char*>(data) + offsets[i] * size, from + i * size, size);
      }
    });
  };
  return Labelled(read(), label);
}

absl::StatusOr<Tensor> TensorReader::ReadTexts(const onnx::TensorProto& proto) const {
  ASSIGN_OR_RETURN(Shape shape, ShapeOf(proto));
  const int64_t elements = NumElements(shape);
  if (proto.string_data_size() != elements) {
    return CountError(proto.string_data_size(), elements, "texts");
  }
  return Tensor::Make(DType::kInt64, std::move(shape), [&](void* data) {
    auto* out = static_cast<int64_t*>(data);
    for (const std::string& text : proto.string_data()) {
      *out++ = vocabulary_->Find(text).value_or(Vocabulary::kNoText);
    }
  });
}

bool TensorReader::HoldsNibbles(const onnx::TensorProto& proto) {
  return proto.data_type() == ops::kOnnxUInt4 || proto.data_type() == ops::kOnnxInt4;
}

absl::StatusOr<Tensor> TensorReader::ReadNibbles(const onnx::TensorProto& proto,
                                                 absl::string_view raw, absl::string_view label) {
  const auto read = [&]() -> absl::StatusOr<Tensor> {
    ASSIGN_OR_RETURN(const Shape shape, ShapeOf(proto));
    return ReadAs(proto, DType::kUInt8, {(NumElements(shape) + 1) / 2}, raw);
  };
  return Labelled(read(), label);
}

absl::StatusOr<Tensor> TensorReader::ReadAs(const onnx::TensorProto& proto, DType dtype,
                                            Shape shape, absl::string_view raw) {
  if (proto.has_segment()) return absl::UnimplementedError("segments are not supported");
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) {
    return ReadExternal(proto, dtype, std::move(shape));
  }
  if (raw.data() != nullptr) return FromBytes(dtype, std::move(shape), raw, file_);
  if (proto.has_raw_data()) {
    const std::string& bytes = proto.raw_data();
    return FromBytes(dtype, std::move(shape), absl::string_view(bytes.data(), bytes.size()),
                     FileBytes{});
  }
  return ReadTyped(proto, dtype, std::move(shape));
}

std::vector<FileBytes> TensorReader::Files() const {
  std::vector<FileBytes> files = {file_};
  for (const auto& [location, file] : external_) files.push_back(file);
  return files;
}

absl::StatusOr<Tensor> TensorReader::FromBytes(DType dtype, Shape shape, absl::string_view bytes,
                                               const FileBytes& file) {
  const int64_t elements = NumElements(shape);
  const int64_t wanted = elements * static_cast<int64_t>(DTypeSize(dtype));
  if (static_cast<int64_t>(bytes.size()) != wanted) {
    return CountError(static_cast<int64_t>(bytes.size()), wanted, "bytes");
  }
  if (file.owner != nullptr && IsParameterLike(dtype, elements)) {
    return Tensor(dtype, std::move(shape), std::shared_ptr<const void>(file.owner, bytes.data()));
  }
  Tensor tensor = Tensor::Make(dtype, std::move(shape), [&](void* data) {
    if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
  });
  DropPages(file, bytes);
  return tensor;
}

absl::StatusOr<Tensor> TensorReader::ReadTyped(const onnx::TensorProto& proto, DType dtype,
                                               Shape shape) {
  const int64_t elements = NumElements(shape);
  const auto check = [&](int64_t have) {
    return have == elements ? absl::OkStatus() : CountError(have, elements, "elements");
  };
  switch (dtype) {
    case DType::kFloat32:
      RETURN_IF_ERROR(check(proto.float_data_size()));
      return FromField<float>(dtype, std::move(shape), proto.float_data());
    case DType::kFloat64:
      RETURN_IF_ERROR(check(proto.double_data_size()));
      return FromField<double>(dtype, std::move(shape), proto.double_data());
    case DType::kInt64:
      RETURN_IF_ERROR(check(proto.int64_data_size()));
      return FromField<int64_t>(dtype, std::move(shape), proto.int64_data());
    case DType::kUInt32:
      RETURN_IF_ERROR(check(proto.uint64_data_size()));
      return FromField<uint32_t>(dtype, std::move(shape), proto.uint64_data());
    case DType::kUInt64:
      RETURN_IF_ERROR(check(proto.uint64_data_size()));
      return FromField<uint64_t>(dtype, std::move(shape), proto.uint64_data());
    default:
      break;
  }
  // The rest, f16 and bf16 bits included, is kept in int32_data.
  RETURN_IF_ERROR(check(proto.int32_data_size()));
  switch (DTypeSize(dtype)) {
    case 1:
      return FromField<uint8_t>(dtype, std::move(shape), proto.int32_data());
    case 2:
      return FromField<uint16_t>(dtype, std::move(shape), proto.int32_data());
    default:
      return FromField<int32_t>(dtype, std::move(shape), proto.int32_data());
  }
}

absl::StatusOr<const FileBytes*> TensorReader::ExternalFile(const std::string& location) {
  if (auto it = external_.find(location); it != external_.end()) return &it->second;
  if (model_path_.empty()) {
    return absl::InvalidArgumentError("external data of a model that is not a file");
  }
  const fs::path relative(location);
  bool leaves = relative.empty() || relative.is_absolute();
  for (const fs::path& part : relative) leaves = leaves || part == "..";
  if (leaves) {
    return absl::InvalidArgumentError(
        absl::StrCat("external data location '", location, "' is not inside the model's folder"));
  }
  // Next to the resolved model file, or next to the link to it when that leads to the same folder.
  std::error_code error;
  const fs::path folder = fs::canonical(fs::path(model_path_), error).parent_path();
  fs::path file = fs::canonical(folder / relative, error);
  if (error) file = fs::canonical(fs::path(model_path_).parent_path() / relative, error);
  if (error) {
    return absl::InvalidArgumentError(
        absl::StrCat("external data file '", location, "' does not exist"));
  }
  const fs::path inside = file.lexically_relative(folder);
  if (inside.empty() || *inside.begin() == "..") {
    return absl::InvalidArgumentError(
        absl::StrCat("external data location '", location, "' leads out of the model's folder"));
  }
  ASSIGN_OR_RETURN(FileBytes mapped, MapFile(file.string()));
  return &(external_[location] = std::move(mapped));
}

absl::StatusOr<Tensor> TensorReader::ReadExternal(const onnx::TensorProto& proto, DType dtype,
                                                  Shape shape) {
  std::string location;
  int64_t offset = 0;
  int64_t length = -1;
  for (const auto& entry : proto.external_data()) {
    bool valid = true;
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") valid = absl::SimpleAtoi(entry.value(), &offset) && offset >= 0;
    if (entry.key() == "length") valid = absl::SimpleAtoi(entry.value(), &length) && length >= 0;
    if (!valid) {
      return absl::InvalidArgumentError(
          absl::StrCat("external data ", entry.key(), " '", entry.value(), "' is not a size"));
    }
  }
  ASSIGN_OR_RETURN(const FileBytes* file, ExternalFile(location));
  const int64_t size = static_cast<int64_t>(file->bytes.size());
  if (length < 0) length = NumElements(shape) * static_cast<int64_t>(DTypeSize(dtype));
  if (offset > size || length > size - offset) {
    return absl::InvalidArgumentError(absl::StrCat("external data [", offset, ", +", length,
                                                   ") is outside '", location, "' of ", size,
                                                   " bytes"));
  }
  return FromBytes(dtype, std::move(shape), file->bytes.substr(offset, length), *file);
}

}  // namespace reprise
