#include "tests/fuzz/files/mutate.h"

#include <google/protobuf/descriptor.h>

#include <vector>

#include "runtime/onnx/file/onnx_proto.h"

namespace reprise::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

int64_t Telling(Chance& chance) {
  return chance.Of<int64_t>({0, 1, -1, 2, 3, 7, 8, 16, 127, 128, 255, 1 << 16, 1 << 28, 1 << 30,
                             INT32_MAX, INT32_MIN, int64_t{1} << 45, INT64_MAX, INT64_MIN});
}

float TellingFloat(Chance& chance) {
  return chance.Of<float>({0.0f, -0.0f, 1.0f, -1.0f, 0.5f, 1e-45f, 3.4e38f, -3.4e38f,
                           __builtin_inff(), -__builtin_inff(), __builtin_nanf("")});
}

// Any value for `field`, set (or added, where it is repeated).
void Put(Message& message, const FieldDescriptor& field, Chance& chance) {
  const Reflection& reflection = *message.GetReflection();
  const bool many = field.is_repeated();
  const int64_t number = Telling(chance);
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      many ? reflection.AddInt32(&message, &field, static_cast<int32_t>(number))
           : reflection.SetInt32(&message, &field, static_cast<int32_t>(number));
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      many ? reflection.AddInt64(&message, &field, number)
           : reflection.SetInt64(&message, &field, number);
      break;
    case FieldDescriptor::CPPTYPE_UINT64:
      many ? reflection.AddUInt64(&message, &field, static_cast<uint64_t>(number))
           : reflection.SetUInt64(&message, &field, static_cast<uint64_t>(number));
      break;
    case FieldDescriptor::CPPTYPE_FLOAT:
      many ? reflection.AddFloat(&message, &field, TellingFloat(chance))
           : reflection.SetFloat(&message, &field, TellingFloat(chance));
      break;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      many ? reflection.AddDouble(&message, &field, TellingFloat(chance))
           : reflection.SetDouble(&message, &field, TellingFloat(chance));
      break;
    case FieldDescriptor::CPPTYPE_ENUM: {
      const auto& type = *field.enum_type();
      const int value = type.value(static_cast<int>(chance.Below(type.value_count())))->number();
      many ? reflection.AddEnumValue(&message, &field, value)
           : reflection.SetEnumValue(&message, &field, value);
      break;
    }
    case FieldDescriptor::CPPTYPE_STRING: {
      std::string text = chance.Of<const char*>(
          {"", "x", "axis", "MatMul", "reprise.Attention", "\xff\xfe", "a/b\nc"});
      if (!many && reflection.HasField(message, &field)) {
        text = MutateBytes(reflection.GetString(message, &field), chance);
      }
      many ? reflection.AddString(&message, &field, text)
           : reflection.SetString(&message, &field, text);
      break;
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      if (many) {
        reflection.AddMessage(&message, &field);
      } else {
        reflection.MutableMessage(&message, &field);
      }
      break;
    default:
      break;
  }
}

// Messages within `message`, itself included.
void Collect(Message& message, int depth, std::vector<Message*>& all) {
  all.push_back(&message);
  if (depth == 0) return;
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      Collect(*reflection.MutableMessage(&message, field), depth - 1, all);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      Collect(*reflection.MutableRepeatedMessage(&message, field, i), depth - 1, all);
    }
  }
}

void MutateRepeated(Message& message, const FieldDescriptor& field, Chance& chance) {
  const Reflection& reflection = *message.GetReflection();
  const int size = reflection.FieldSize(message, &field);
  if (size == 0 || chance.OneIn(4)) return Put(message, field, chance);
  const int one = static_cast<int>(chance.Below(size));
  reflection.SwapElements(&message, &field, one, static_cast<int>(chance.Below(size)));
  if (chance.OneIn(2)) return;
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && chance.OneIn(2)) {
    const auto copy = reflection.GetRepeatedMessage(message, &field, one).New();
    copy->CopyFrom(reflection.GetRepeatedMessage(message, &field, one));
    reflection.AddAllocatedMessage(&message, &field, copy);
    return;
  }
  reflection.RemoveLast(&message, &field);
  if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) Put(message, field, chance);
}

}  // namespace

void MutateMessage(Message& message, Chance& chance) {
  constexpr int kDepth = 8;
  std::vector<Message*> all;
  Collect(message, kDepth, all);
  Message& one = *chance.Of(all);
  const auto& type = *one.GetDescriptor();
  if (type.field_count() == 0) return;
  const Reflection& reflection = *one.GetReflection();
  std::vector<const FieldDescriptor*> set;
  reflection.ListFields(one, &set);
  const FieldDescriptor& field =
      set.empty() || chance.OneIn(4)
          ? *type.field(static_cast<int>(chance.Below(type.field_count())))
          : *chance.Of(set);
  if (field.is_repeated()) return MutateRepeated(one, field, chance);
  if (chance.OneIn(4)) return reflection.ClearField(&one, &field);
  Put(one, field, chance);
}

std::string MutateBytes(absl::string_view bytes, Chance& chance) {
  std::string changed(bytes);
  const auto place = [&] { return static_cast<size_t>(chance.Below(changed.size() + 1)); };
  switch (chance.Below(5)) {
    case 0:
      changed.insert(place(), 1, static_cast<char>(chance.Below(256)));
      break;
    case 1:
      changed.resize(place());
      break;
    case 2: {
      const size_t from = place();
      changed.erase(from, static_cast<size_t>(chance.Between(1, 16)));
      break;
    }
    case 3: {
      const size_t from = place();
      changed.insert(place(), changed.substr(from, static_cast<size_t>(chance.Between(1, 64))));
      break;
    }
    default:
      if (!changed.empty()) {
        changed[static_cast<size_t>(chance.Below(changed.size()))] ^=
            static_cast<char>(1 << chance.Below(8));
      }
  }
  return changed;
}

std::string MutateOnnx(absl::string_view bytes, Chance& chance) {
  onnx::ModelProto model;
  if (!model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || chance.OneIn(16)) {
    return MutateBytes(bytes, chance);
  }
  for (int64_t i = chance.Between(1, 3); i > 0; --i) MutateMessage(model, chance);
  return model.SerializeAsString();
}

}  // namespace reprise::fuzz
