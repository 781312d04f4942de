// Tensors as they go into a request and come out of a response: names, shapes and spans.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace reprise::client {

// Returns the protocol's name of an element type ("FP32", "INT64", ...), at compile time. FP16 and
// BF16 have no C++ type here: read and write them as raw bytes.
template <typename T>
constexpr absl::string_view DatatypeOf() {
  if constexpr (std::is_same_v<T, bool>) return "BOOL";
  if constexpr (std::is_same_v<T, int8_t>) return "INT8";
  if constexpr (std::is_same_v<T, int16_t>) return "INT16";
  if constexpr (std::is_same_v<T, int32_t>) return "INT32";
  if constexpr (std::is_same_v<T, int64_t>) return "INT64";
  if constexpr (std::is_same_v<T, uint8_t>) return "UINT8";
  if constexpr (std::is_same_v<T, uint16_t>) return "UINT16";
  if constexpr (std::is_same_v<T, uint32_t>) return "UINT32";
  if constexpr (std::is_same_v<T, uint64_t>) return "UINT64";
  if constexpr (std::is_same_v<T, float>) return "FP32";
  if constexpr (std::is_same_v<T, double>) return "FP64";
}

// A range of shared memory that was registered with the server: see Client::RegisterSharedMemory.
struct RegionSlice {
  std::string region;  // the name that it is registered by
  int64_t offset = 0;  // bytes of the region that lie before it
  int64_t bytes = 0;
};

// One input of a request. `data` is a view: the caller keeps the bytes until the call has started
// (Infer and InferAsync copy them once, into the message).
struct InputTensor {
  std::string name;
  std::string datatype;
  std::vector<int64_t> shape;
  absl::Span<const std::byte> data;  // row-major, little-endian
  // Where the bytes lie that are not in `data`.
  std::optional<RegionSlice> region = std::nullopt;

  template <typename T>
  static InputTensor Of(absl::string_view name, std::vector<int64_t> shape,
                        absl::Span<const T> values) {
    static_assert(!DatatypeOf<T>().empty(), "no datatype of the protocol has this element type");
    return {std::string(name),
            std::string(DatatypeOf<T>()),
            std::move(shape),
            {reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(T)}};
  }

  // Elements of T that lie in shared memory.
  template <typename T>
  static InputTensor In(RegionSlice region, absl::string_view name, std::vector<int64_t> shape) {
    static_assert(!DatatypeOf<T>().empty(), "no datatype of the protocol has this element type");
    InputTensor tensor = Of<T>(name, std::move(shape), {});
    tensor.region = std::move(region);
    return tensor;
  }
};

// One output of a response: views into the response that owns it.
struct OutputTensor {
  absl::string_view name;
  absl::string_view datatype;
  absl::Span<const int64_t> shape;
  absl::Span<const std::byte> data;  // row-major, little-endian
  // Where the server has written the bytes, where the request asked for that; `data` is empty then.
  std::optional<RegionSlice> region = std::nullopt;

  // Returns the elements, without a copy. INVALID_ARGUMENT if T is not the tensor's element type.
  template <typename T>
  absl::StatusOr<absl::Span<const T>> As() const {
    if (datatype != DatatypeOf<T>()) {
      return absl::InvalidArgumentError(absl::StrCat("output '", name, "' has datatype ", datatype,
                                                     ", read as ", DatatypeOf<T>()));
    }
    return absl::MakeConstSpan(reinterpret_cast<const T*>(data.data()), data.size() / sizeof(T));
  }
};

// Size of one element in bytes; 0 for BYTES and for unknown names.
size_t ElementBytes(absl::string_view datatype);

// "1x128x384"; "scalar" for no dims.
std::string ShapeText(absl::Span<const int64_t> shape);

}  // namespace reprise::client
