#include "runtime/onnx/file/newer_fields.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/onnx/file/node_metadata.h"

namespace reprise {
namespace {

// As onnx.proto of format version 10 has them.
constexpr int kNodeOverload = 8;
constexpr int kNodeMetadata = 9;
constexpr int kFunctionDefaults = 11;
constexpr int kFunctionOverload = 13;

// Returns the texts, or the messages as bytes, that field `number` of `message` holds.
std::vector<std::string> FieldOf(const google::protobuf::Message& message, int number) {
  std::vector<std::string> held;
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  const auto* known = message.GetDescriptor()->FindFieldByNumber(number);
  if (known == nullptr) {
    const google::protobuf::UnknownFieldSet& unknown = reflection.GetUnknownFields(message);
    for (int i = 0; i < unknown.field_count(); ++i) {
      const google::protobuf::UnknownField& field = unknown.field(i);
      if (field.number() != number ||
          field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) {
        continue;
      }
      held.push_back(field.length_delimited());
    }
    return held;
  }
  const bool texts = known->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_STRING;
  if (!known->is_repeated()) {
    if (!reflection.HasField(message, known)) return held;
    held.push_back(texts ? reflection.GetString(message, known)
                         : reflection.GetMessage(message, known).SerializeAsString());
    return held;
  }
  for (int i = 0; i < reflection.FieldSize(message, known); ++i) {
    held.push_back(texts ? reflection.GetRepeatedString(message, known, i)
                         : reflection.GetRepeatedMessage(message, known, i).SerializeAsString());
  }
  return held;
}

// Returns the last one, as of any field that is there once.
std::string TextOf(const google::protobuf::Message& message, int number) {
  std::vector<std::string> held = FieldOf(message, number);
  return held.empty() ? std::string() : std::move(held.back());
}

}  // namespace

std::string OverloadOf(const onnx::NodeProto& node) { return TextOf(node, kNodeOverload); }

std::vector<std::pair<std::string, std::string>> MetadataOf(const onnx::NodeProto& node) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (const std::string& bytes : FieldOf(node, kNodeMetadata)) {
    onnx::StringStringEntryProto entry;
    if (entry.ParseFromString(bytes)) entries.emplace_back(entry.key(), entry.value());
  }
  return entries;
}

std::string OverloadOf(const onnx::FunctionProto& function) {
  return TextOf(function, kFunctionOverload);
}

absl::StatusOr<std::vector<onnx::AttributeProto>> DefaultsOf(const onnx::FunctionProto& function) {
  std::vector<onnx::AttributeProto> defaults;
  for (const std::string& bytes : FieldOf(function, kFunctionDefaults)) {
    if (defaults.emplace_back().ParseFromString(bytes)) continue;
    return absl::InvalidArgumentError(absl::StrCat("function '", function.name(),
                                                   "': the default of its attribute ",
                                                   defaults.size(), " is not an attribute"));
  }
  return defaults;
}

}  // namespace reprise
