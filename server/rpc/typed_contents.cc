#include "server/rpc/typed_contents.h"

#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "server/wire/datatype.h"

namespace reprise {
namespace {

using Input = inference::ModelInferRequest::InferInputTensor;
using inference::InferTensorContents;

template <typename T>
absl::string_view InPlace(const google::protobuf::RepeatedField<T>& field) {
  return {reinterpret_cast<const char*>(field.data()), field.size() * sizeof(T)};
}

// 8 and 16 bit elements travel in fields of 32 bits.
template <typename Narrow, typename Wide>
absl::StatusOr<absl::string_view> Narrowed(const Input& input,
                                           const google::protobuf::RepeatedField<Wide>& field,
                                           std::deque<std::string>& converted) {
  std::string& bytes = converted.emplace_back(field.size() * sizeof(Narrow), '\0');
  for (int i = 0; i < field.size(); ++i) {
    if (field[i] < static_cast<Wide>(std::numeric_limits<Narrow>::min()) ||
        field[i] > static_cast<Wide>(std::numeric_limits<Narrow>::max())) {
      return absl::InvalidArgumentError(absl::StrCat("input \"", input.name(), "\": element ", i,
                                                     " is ", field[i], ", out of the range of ",
                                                     input.datatype()));
    }
    const Narrow value = static_cast<Narrow>(field[i]);
    std::memcpy(&bytes[i * sizeof(Narrow)], &value, sizeof(Narrow));
  }
  return absl::string_view(bytes);
}

// Returns each text after its length, as raw contents have it.
absl::string_view Texts(const google::protobuf::RepeatedPtrField<std::string>& field,
                        std::deque<std::string>& converted) {
  size_t size = 0;
  for (const std::string& text : field) size += sizeof(uint32_t) + text.size();
  std::string& bytes = converted.emplace_back();
  bytes.reserve(size);
  for (const std::string& text : field) {
    const auto length = static_cast<uint32_t>(text.size());  // a message has less than 2^31 bytes
    bytes.append(reinterpret_cast<const char*>(&length), sizeof(length));
    bytes.append(text);
  }
  return bytes;
}

// Returns the field of InferTensorContents for a dtype; "" where there is none.
const char* FieldOf(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "bool_contents";
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
      return "int_contents";
    case DType::kInt64:
      return "int64_contents";
    case DType::kUInt8:
    case DType::kUInt16:
    case DType::kUInt32:
      return "uint_contents";
    case DType::kUInt64:
      return "uint64_contents";
    case DType::kFloat32:
      return "fp32_contents";
    case DType::kFloat64:
      return "fp64_contents";
    default:
      return "";
  }
}

}  // namespace

absl::StatusOr<absl::string_view> TypedBytes(const Input& input,
                                             std::deque<std::string>& converted) {
  const InferTensorContents& contents = input.contents();
  const DType dtype = ParseProtocolName(input.datatype()).value_or(DType::kUndefined);
  const bool text = input.datatype() == kTextDatatype;
  const std::string wanted = text ? "bytes_contents" : FieldOf(dtype);
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  contents.GetReflection()->ListFields(contents, &fields);
  for (const google::protobuf::FieldDescriptor* field : fields) {
    if (field->name() == wanted) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "input \"", input.name(), "\" of datatype ", input.datatype(), " has ", field->name(),
        wanted.empty() ? ", it must be sent as raw_input_contents" : ", it belongs in ", wanted));
  }
  if (text) return Texts(contents.bytes_contents(), converted);
  switch (dtype) {
    case DType::kBool:
      return InPlace(contents.bool_contents());
    case DType::kInt8:
      return Narrowed<int8_t>(input, contents.int_contents(), converted);
    case DType::kInt16:
      return Narrowed<int16_t>(input, contents.int_contents(), converted);
    case DType::kInt32:
      return InPlace(contents.int_contents());
    case DType::kInt64:
      return InPlace(contents.int64_contents());
    case DType::kUInt8:
      return Narrowed<uint8_t>(input, contents.uint_contents(), converted);
    case DType::kUInt16:
      return Narrowed<uint16_t>(input, contents.uint_contents(), converted);
    case DType::kUInt32:
      return InPlace(contents.uint_contents());
    case DType::kUInt64:
      return InPlace(contents.uint64_contents());
    case DType::kFloat32:
      return InPlace(contents.fp32_contents());
    case DType::kFloat64:
      return InPlace(contents.fp64_contents());
    default:
      return absl::string_view();  // admission compares datatype and bytes
  }
}

}  // namespace reprise
