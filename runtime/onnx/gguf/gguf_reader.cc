#include "runtime/onnx/gguf/gguf_reader.h"

#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

// Types of members.
enum : uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kText,
  kList,
  kUint64,
  kInt64,
  kFloat64,
};

constexpr int64_t kMostDims = 4;
constexpr int64_t kMostAlignment = 1 << 20;
// Fewer bytes than any member or tensor has.
constexpr uint64_t kLeastMember = 13, kLeastTensor = 32;
constexpr size_t kLongestName = 4096;  // shown in errors

// Returns the bytes of an element of a list; 0 where it has no fixed size.
uint64_t SizeOf(uint32_t type) {
  switch (type) {
    case kUint8:
    case kInt8:
    case kBool:
      return 1;
    case kUint16:
    case kInt16:
      return 2;
    case kUint32:
    case kInt32:
    case kFloat32:
      return 4;
    case kUint64:
    case kInt64:
    case kFloat64:
      return 8;
    default:
      return 0;
  }
}

template <typename T>
T Load(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

bool IsFloat(uint32_t type) { return type == kFloat32 || type == kFloat64; }

double FloatAt(uint32_t type, const char* from) {
  return type == kFloat32 ? static_cast<double>(Load<float>(from)) : Load<double>(from);
}

int64_t IntAt(uint32_t type, const char* from) {
  switch (type) {
    case kUint8:
    case kBool:
      return Load<uint8_t>(from);
    case kInt8:
      return Load<int8_t>(from);
    case kUint16:
      return Load<uint16_t>(from);
    case kInt16:
      return Load<int16_t>(from);
    case kUint32:
      return Load<uint32_t>(from);
    case kInt32:
      return Load<int32_t>(from);
    case kInt64:
      return Load<int64_t>(from);
    // Beyond the range of an int64 it is negative, which every caller refuses.
    default:
      return static_cast<int64_t>(Load<uint64_t>(from));
  }
}

}  // namespace

absl::StatusOr<absl::string_view> GgufReader::Take(uint64_t bytes) {
  if (bytes > bytes_.size() - at_) {
    return absl::InvalidArgumentError(absl::StrCat("it ends at byte ", bytes_.size(), ", ", bytes,
                                                   " bytes are to follow byte ", at_));
  }
  const absl::string_view taken = bytes_.substr(at_, bytes);
  at_ += bytes;
  return taken;
}

template <typename T>
absl::StatusOr<T> GgufReader::Number() {
  ASSIGN_OR_RETURN(const absl::string_view bytes, Take(sizeof(T)));
  return Load<T>(bytes.data());
}

absl::StatusOr<absl::string_view> GgufReader::ReadText() {
  ASSIGN_OR_RETURN(const uint64_t length, Number<uint64_t>());
  return Take(length);
}

absl::Status GgufReader::ReadInto(GgufFile& model) {
  int64_t tensors = 0, members = 0;
  RETURN_IF_ERROR(ReadHeader(tensors, members));
  for (int64_t i = 0; i < members; ++i) RETURN_IF_ERROR(ReadMember(model));
  for (int64_t i = 0; i < tensors; ++i) RETURN_IF_ERROR(ReadTensor(model));
  return PlaceTensors(model);
}

absl::Status GgufReader::ReadHeader(int64_t& tensors, int64_t& members) {
  ASSIGN_OR_RETURN(const absl::string_view magic, Take(4));
  if (!GgufFile::Begins(magic)) return absl::InvalidArgumentError("it does not begin with 'GGUF'");
  ASSIGN_OR_RETURN(const uint32_t version, Number<uint32_t>());
  if ((version & 0xFFFF) == 0 && version != 0) {
    return absl::UnimplementedError("it is big-endian, which is not supported");
  }
  if (version != 2 && version != 3) {
    return absl::UnimplementedError(
        absl::StrCat("version ", version, " is not supported: 2 and 3 are"));
  }
  ASSIGN_OR_RETURN(const uint64_t tensor_count, Number<uint64_t>());
  ASSIGN_OR_RETURN(const uint64_t member_count, Number<uint64_t>());
  const uint64_t left = bytes_.size() - at_;
  if (tensor_count > left / kLeastTensor || member_count > left / kLeastMember) {
    return absl::InvalidArgumentError(
        absl::StrCat(tensor_count, " tensors and ", member_count, " members in ", left, " bytes"));
  }
  tensors = static_cast<int64_t>(tensor_count);
  members = static_cast<int64_t>(member_count);
  return absl::OkStatus();
}

absl::Status GgufReader::ReadMember(GgufFile& model) {
  ASSIGN_OR_RETURN(const absl::string_view key, ReadText());
  if (key.empty() || key.size() > kLongestName) {
    return absl::InvalidArgumentError(absl::StrCat("a key has ", key.size(), " bytes"));
  }
  ASSIGN_OR_RETURN(const uint32_t type, Number<uint32_t>());
  auto value = type == kList ? ReadList() : ReadValue(type);
  if (!value.ok()) {
    return absl::Status(value.status().code(),
                        absl::StrCat("member '", key, "': ", value.status().message()));
  }
  if (key == "general.alignment") {
    const auto* const alignment = std::get_if<int64_t>(&*value);
    if (alignment == nullptr || *alignment <= 0 || *alignment > kMostAlignment ||
        !std::has_single_bit(static_cast<uint64_t>(*alignment))) {
      return absl::InvalidArgumentError(
          "member 'general.alignment' is not a power of two up to 1048576");
    }
    alignment_ = *alignment;
  }
  const bool is_known = model.members_.contains(key);
  if (is_known && file_ == 0) {
    return absl::InvalidArgumentError(absl::StrCat("member '", key, "' comes twice"));
  }
  if (!is_known || absl::StartsWith(key, "split.")) {
    model.members_.insert_or_assign(std::string(key), *std::move(value));
  }
  return absl::OkStatus();
}

absl::StatusOr<GgufValue> GgufReader::ReadValue(uint32_t type) {
  if (type == kText) {
    ASSIGN_OR_RETURN(const absl::string_view text, ReadText());
    return GgufValue(text);
  }
  const uint64_t size = SizeOf(type);
  if (size == 0) return absl::InvalidArgumentError(absl::StrCat("there is no type ", type));
  ASSIGN_OR_RETURN(const absl::string_view bytes, Take(size));
  if (IsFloat(type)) return GgufValue(FloatAt(type, bytes.data()));
  const int64_t value = IntAt(type, bytes.data());
  if (type == kBool) return GgufValue(value != 0);
  return GgufValue(value);
}

absl::StatusOr<GgufValue> GgufReader::ReadList() {
  ASSIGN_OR_RETURN(const uint32_t type, Number<uint32_t>());
  ASSIGN_OR_RETURN(const uint64_t count, Number<uint64_t>());
  const uint64_t size = SizeOf(type);
  if (type == kList) return absl::UnimplementedError("lists of lists are not supported");
  if (type != kText && size == 0) {
    return absl::InvalidArgumentError(absl::StrCat("there is no type ", type));
  }
  constexpr uint64_t kLeastText = 8;
  const uint64_t left = bytes_.size() - at_;
  if (count > left / (type == kText ? kLeastText : size)) {
    return absl::InvalidArgumentError(absl::StrCat(count, " elements in ", left, " bytes"));
  }
  if (type == kText) {
    std::vector<absl::string_view> texts;
    texts.reserve(count);
    for (uint64_t i = 0; i < count; ++i) {
      ASSIGN_OR_RETURN(texts.emplace_back(), ReadText());
    }
    return GgufValue(std::move(texts));
  }
  ASSIGN_OR_RETURN(const absl::string_view bytes, Take(count * size));
  if (IsFloat(type)) {
    std::vector<double> numbers(count);
    for (uint64_t i = 0; i < count; ++i) numbers[i] = FloatAt(type, bytes.data() + i * size);
    return GgufValue(std::move(numbers));
  }
  std::vector<int64_t> numbers(count);
  for (uint64_t i = 0; i < count; ++i) numbers[i] = IntAt(type, bytes.data() + i * size);
  return GgufValue(std::move(numbers));
}

absl::Status GgufReader::ReadTensor(GgufFile& model) {
  ASSIGN_OR_RETURN(const absl::string_view name, ReadText());
  if (name.empty() || name.size() > kLongestName) {
    return absl::InvalidArgumentError(
        absl::StrCat("the name of a tensor has ", name.size(), " bytes"));
  }
  const std::string label = absl::StrCat("tensor '", name, "'");
  GgufTensor tensor = {.file = file_};
  ASSIGN_OR_RETURN(const uint32_t rank, Number<uint32_t>());
  if (rank > kMostDims) {
    return absl::InvalidArgumentError(absl::StrCat(label, " has ", rank, " dims"));
  }
  int64_t numbers = 1;
  for (uint32_t i = 0; i < rank; ++i) {
    ASSIGN_OR_RETURN(const uint64_t dim, Number<uint64_t>());
    const auto size = static_cast<int64_t>(dim);
    if (size <= 0 || __builtin_mul_overflow(numbers, size, &numbers)) {
      return absl::InvalidArgumentError(
          absl::StrCat(label, ": dim ", i, " is ", dim, ", and its size overflows or is 0"));
    }
    tensor.dims.insert(tensor.dims.begin(), size);
  }
  ASSIGN_OR_RETURN(const uint32_t type, Number<uint32_t>());
  ASSIGN_OR_RETURN(const uint64_t offset, Number<uint64_t>());
  const std::optional<GgufType> known = FindGgufType(type);
  if (!known.has_value()) {
    return absl::UnimplementedError(
        absl::StrCat(label, " is of type ", type, GgufTypeName(type), ", which is not supported"));
  }
  tensor.type = type;
  const int64_t row = tensor.dims.empty() ? 1 : tensor.dims.back();
  if (row % known->numbers != 0) {
    return absl::InvalidArgumentError(absl::StrCat(label, ": rows of ", row,
                                                   " numbers are not whole blocks of ",
                                                   known->numbers, " of ", known->name));
  }
  if (__builtin_mul_overflow(numbers / known->numbers, known->bytes, &tensor.bytes)) {
    return absl::InvalidArgumentError(absl::StrCat(label, ": its bytes overflow"));
  }
  if (offset > bytes_.size() || offset % static_cast<uint64_t>(alignment_) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        label, ": its offset ", offset, " is beyond the file, or no multiple of ", alignment_));
  }
  tensor.offset = static_cast<int64_t>(offset);
  if (!model.tensors_.try_emplace(std::string(name), std::move(tensor)).second) {
    return absl::InvalidArgumentError(absl::StrCat(label, " comes twice"));
  }
  return absl::OkStatus();
}

absl::Status GgufReader::PlaceTensors(GgufFile& model) {
  const auto size = static_cast<int64_t>(bytes_.size());
  const int64_t begin = (static_cast<int64_t>(at_) + alignment_ - 1) & -alignment_;
  for (auto& [name, tensor] : model.tensors_) {
    if (tensor.file != file_) continue;
    tensor.offset += begin;
    if (tensor.offset > size || tensor.bytes > size - tensor.offset) {
      return absl::InvalidArgumentError(absl::StrCat("tensor '", name, "' is bytes [",
                                                     tensor.offset, ", +", tensor.bytes,
                                                     ") of a file of ", size, " bytes"));
    }
  }
  return absl::OkStatus();
}

}  // namespace reprise
