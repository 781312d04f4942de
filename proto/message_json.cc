#include "proto/message_json.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/timestamp.pb.h>

#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

namespace reprise {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using Json = nlohmann::ordered_json;

Json Object(const Message& message);

// "2026-01-31T12:00:00.250Z".
std::string TimeText(const Message& message) {
  const auto& timestamp = static_cast<const google::protobuf::Timestamp&>(message);
  const std::time_t seconds = timestamp.seconds();
  std::tm utc = {};
  gmtime_r(&seconds, &utc);
  char day[32];
  std::strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &utc);
  char text[48];
  std::snprintf(text, sizeof(text), "%s.%03dZ", day, timestamp.nanos() / 1'000'000);
  return text;
}

// `index` negative: the field is not repeated.
Json Value(const Message& message, const FieldDescriptor& field, int index) {
  const google::protobuf::Reflection& of = *message.GetReflection();
  const bool one = index < 0;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return one ? of.GetInt32(message, &field) : of.GetRepeatedInt32(message, &field, index);
    case FieldDescriptor::CPPTYPE_INT64:
      return one ? of.GetInt64(message, &field) : of.GetRepeatedInt64(message, &field, index);
    case FieldDescriptor::CPPTYPE_UINT32:
      return one ? of.GetUInt32(message, &field) : of.GetRepeatedUInt32(message, &field, index);
    case FieldDescriptor::CPPTYPE_UINT64:
      return one ? of.GetUInt64(message, &field) : of.GetRepeatedUInt64(message, &field, index);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return one ? of.GetDouble(message, &field) : of.GetRepeatedDouble(message, &field, index);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return one ? of.GetFloat(message, &field) : of.GetRepeatedFloat(message, &field, index);
    case FieldDescriptor::CPPTYPE_BOOL:
      return one ? of.GetBool(message, &field) : of.GetRepeatedBool(message, &field, index);
    case FieldDescriptor::CPPTYPE_ENUM:
      return std::string(one ? of.GetEnum(message, &field)->name()
                             : of.GetRepeatedEnum(message, &field, index)->name());
    case FieldDescriptor::CPPTYPE_STRING:
      return one ? of.GetString(message, &field) : of.GetRepeatedString(message, &field, index);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      if (field.message_type() == google::protobuf::Timestamp::descriptor() && one) {
        return TimeText(of.GetMessage(message, &field));
      }
      return Object(one ? of.GetMessage(message, &field)
                        : of.GetRepeatedMessage(message, &field, index));
  }
  return nullptr;
}

Json Map(const Message& message, const FieldDescriptor& field) {
  const google::protobuf::Reflection& of = *message.GetReflection();
  Json json = Json::object();
  for (int i = 0; i < of.FieldSize(message, &field); ++i) {
    const Message& entry = of.GetRepeatedMessage(message, &field, i);
    const google::protobuf::Descriptor& type = *entry.GetDescriptor();
    const Json key = Value(entry, *type.map_key(), -1);
    json[key.is_string() ? key.get<std::string>() : key.dump()] =
        Value(entry, *type.map_value(), -1);
  }
  return json;
}

Json Object(const Message& message) {
  const google::protobuf::Reflection& of = *message.GetReflection();
  Json json = Json::object();
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.is_map()) {
      json[field.name()] = Map(message, field);
    } else if (field.is_repeated()) {
      json[field.name()] = Json::array();
      for (int k = 0; k < of.FieldSize(message, &field); ++k) {
        json[field.name()].push_back(Value(message, field, k));
      }
    } else if (!field.has_presence() || of.HasField(message, &field)) {
      json[field.name()] = Value(message, field, -1);
    }
  }
  return json;
}

}  // namespace

std::string MessageToJson(const Message& message, int indent) {
  return Object(message).dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace reprise
