#include "client/cli/random_inputs.h"

#include <cstring>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "runtime/base/status_macros.h"

namespace reprise::cli {
namespace {

using inference::ModelMetadataResponse;

std::vector<int64_t> ShapeOf(const ModelMetadataResponse::TensorMetadata& input,
                             const RandomInputOptions& options) {
  if (auto found = options.shapes.find(input.name()); found != options.shapes.end()) {
    return found->second;
  }
  std::vector<int64_t> shape(input.shape().begin(), input.shape().end());
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 0) shape[i] = i == 0 ? options.batch : options.length;
  }
  return shape;
}

template <typename T, typename Make>
void Fill(OwnedTensor& tensor, size_t elements, Make make) {
  tensor.bytes.resize(elements * sizeof(T));
  for (size_t i = 0; i < elements; ++i) {
    const T value = static_cast<T>(make());
    std::memcpy(tensor.bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
}

// Fills short words, each after its length.
void FillWords(OwnedTensor& tensor, size_t elements, std::mt19937_64& random) {
  for (size_t i = 0; i < elements; ++i) {
    const auto size = static_cast<uint32_t>(1 + random() % 8);
    const auto* length = reinterpret_cast<const std::byte*>(&size);
    tensor.bytes.insert(tensor.bytes.end(), length, length + sizeof(size));
    for (uint32_t k = 0; k < size; ++k) {
      tensor.bytes.push_back(static_cast<std::byte>('a' + random() % 26));
    }
  }
}

absl::Status FillRandom(OwnedTensor& tensor, int64_t max_id, std::mt19937_64& random) {
  size_t elements = 1;
  for (int64_t dim : tensor.shape) elements *= static_cast<size_t>(dim);
  const std::string name = absl::AsciiStrToLower(tensor.name);
  const bool ones = absl::StrContains(name, "mask");
  const bool zeros = absl::StrContains(name, "type") || absl::StrContains(name, "segment");
  auto integer = [&]() -> int64_t {
    if (ones || zeros) return ones;
    return 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(max_id));
  };
  auto small = [&] { return integer() % 128; };
  auto real = [&] { return static_cast<double>(random() >> 11) * 0x1.0p-52 - 1; };
  const std::string& type = tensor.datatype;
  if (type == "INT64" || type == "UINT64") {
    Fill<int64_t>(tensor, elements, integer);
  } else if (type == "INT32" || type == "UINT32") {
    Fill<int32_t>(tensor, elements, integer);
  } else if (type == "INT16" || type == "UINT16") {
    Fill<int16_t>(tensor, elements, integer);
  } else if (type == "INT8" || type == "UINT8") {
    Fill<int8_t>(tensor, elements, small);
  } else if (type == "BOOL") {
    Fill<uint8_t>(tensor, elements, [] { return 1; });
  } else if (type == "FP32") {
    Fill<float>(tensor, elements, real);
  } else if (type == "FP64") {
    Fill<double>(tensor, elements, real);
  } else if (type == "FP16" || type == "BF16") {
    // The sign and the fraction are drawn; the exponent is that of numbers from 0.5 up to 1.
    const uint16_t drawn = type == "FP16" ? 0x83ff : 0x807f;
    const uint16_t exponent = type == "FP16" ? 0x3800 : 0x3f00;
    Fill<uint16_t>(tensor, elements, [&] { return (random() & drawn) | exponent; });
  } else if (type == "BYTES") {
    FillWords(tensor, elements, random);
  } else {
    return absl::UnimplementedError(absl::StrCat("cannot make up input '", tensor.name,
                                                 "' of datatype ", type,
                                                 "; give it in a file with --inputs"));
  }
  return absl::OkStatus();
}

}  // namespace

bool HasLength(const ModelMetadataResponse& metadata) {
  return absl::c_any_of(metadata.inputs(), [](const auto& input) {
    return absl::c_any_of(absl::MakeSpan(input.shape()).subspan(input.shape().empty() ? 0 : 1),
                          [](int64_t size) { return size < 0; });
  });
}

OwnedTensor TextTensor(const std::vector<std::string>& texts) {
  OwnedTensor tensor{"text", "BYTES", {static_cast<int64_t>(texts.size())}, {}};
  // Each after its length in four bytes.
  for (const std::string& text : texts) {
    const auto size = static_cast<uint32_t>(text.size());
    const size_t at = tensor.bytes.size();
    tensor.bytes.resize(at + sizeof(size) + text.size());
    std::memcpy(tensor.bytes.data() + at, &size, sizeof(size));
    std::memcpy(tensor.bytes.data() + at + sizeof(size), text.data(), text.size());
  }
  return tensor;
}

std::vector<client::InputTensor> Views(const std::vector<OwnedTensor>& tensors) {
  std::vector<client::InputTensor> views;
  for (const OwnedTensor& tensor : tensors) views.push_back(tensor.View());
  return views;
}

absl::StatusOr<std::vector<OwnedTensor>> RandomInputs(const ModelMetadataResponse& metadata,
                                                      const RandomInputOptions& options,
                                                      std::mt19937_64& random) {
  std::vector<OwnedTensor> tensors;
  std::map<std::string, std::vector<int64_t>> unused = options.shapes;
  for (const auto& input : metadata.inputs()) {
    OwnedTensor tensor{input.name(), input.datatype(), ShapeOf(input, options), {}};
    RETURN_IF_ERROR(FillRandom(tensor, options.max_id, random));
    tensors.push_back(std::move(tensor));
    unused.erase(input.name());
  }
  if (!unused.empty()) {
    return absl::NotFoundError(absl::StrCat("model '", metadata.name(), "' has no input '",
                                            unused.begin()->first, "' that --shape names"));
  }
  return tensors;
}

}  // namespace reprise::cli
