#include "tests/conformance/case.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/onnx/file/onnx_proto.h"
#include "runtime/onnx/file/tensors.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

// Tensors <prefix>_0.pb, <prefix>_1.pb, ...
absl::StatusOr<std::vector<Tensor>> ReadTensors(const fs::path& folder, const std::string& prefix) {
  std::vector<Tensor> tensors;
  TensorReader reader("", FileBytes{});
  for (int i = 0;; ++i) {
    const fs::path path = folder / absl::StrCat(prefix, "_", i, ".pb");
    std::ifstream file(path, std::ios::binary);
    if (!file) return tensors;
    std::stringstream bytes;
    bytes << file.rdbuf();
    onnx::TensorProto proto;
    if (!proto.ParseFromString(bytes.str())) {
      return absl::InvalidArgumentError(absl::StrCat(path.string(), " is no tensor"));
    }
    ASSIGN_OR_RETURN(Tensor tensor, reader.Read(proto, {}, path.filename().string()));
    tensors.push_back(std::move(tensor));
  }
}

// Returns two steps of a narrow dtype, relative: the expected values of the suite are rounded to it
// after every operation of an op, ours once.
double StepsOf(DType dtype) {
  if (dtype == DType::kFloat16) return 0x1p-9;
  if (dtype == DType::kBFloat16) return 0x1p-6;
  return 0;
}

}  // namespace

absl::StatusOr<std::vector<DataSet>> ReadDataSets(const std::string& case_folder) {
  std::vector<DataSet> sets;
  for (int i = 0;; ++i) {
    const fs::path folder = fs::path(case_folder) / absl::StrCat("test_data_set_", i);
    if (!fs::is_directory(folder)) break;
    DataSet& set = sets.emplace_back();
    ASSIGN_OR_RETURN(set.inputs, ReadTensors(folder, "input"));
    ASSIGN_OR_RETURN(set.outputs, ReadTensors(folder, "output"));
  }
  if (sets.empty()) return absl::NotFoundError(absl::StrCat(case_folder, " has no data set"));
  return sets;
}

Tensor AsDeclared(const Tensor& tensor, DType dtype) {
  const bool bits = tensor.dtype() == DType::kUInt16 && dtype == DType::kBFloat16;
  if (!bits) return tensor;
  return Tensor::Make(dtype, tensor.shape(), [&](void* data) {
    if (tensor.bytes() > 0) std::memcpy(data, tensor.data(), tensor.bytes());
  });
}

absl::Status CompareTensors(const Tensor& actual, const Tensor& expected,
                            const Tolerance& tolerance) {
  if (actual.dtype() != expected.dtype() || actual.shape() != expected.shape()) {
    return absl::InternalError(
        absl::StrCat("is ", DTypeName(actual.dtype()), ShapeToString(actual.shape()), ", expected ",
                     DTypeName(expected.dtype()), ShapeToString(expected.shape())));
  }
  if (!IsFloating(expected.dtype())) {
    const auto a = actual.ToInt64s(), b = expected.ToInt64s();
    for (size_t i = 0; i < b->size(); ++i) {
      if ((*a)[i] == (*b)[i]) continue;
      return absl::InternalError(
          absl::StrCat("element ", i, " is ", (*a)[i], ", expected ", (*b)[i]));
    }
    return absl::OkStatus();
  }
  const std::vector<double> a = actual.ToDoubles(), b = expected.ToDoubles();
  const double relative = std::max(tolerance.relative, StepsOf(expected.dtype()));
  double largest = 0;
  for (double x : b) {
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  }
  for (size_t i = 0; i < b.size(); ++i) {
    const bool same = (std::isnan(a[i]) && std::isnan(b[i])) || a[i] == b[i] ||
                      std::abs(a[i] - b[i]) <= relative * std::abs(b[i]) +
                                                   tolerance.of_largest * largest +
                                                   tolerance.absolute;
    if (!same || (std::isinf(b[i]) && a[i] != b[i])) {
      return absl::InternalError(absl::StrCat("element ", i, " is ", a[i], ", expected ", b[i]));
    }
  }
  return absl::OkStatus();
}

}  // namespace reprise
