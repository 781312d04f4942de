#include "server/rpc/printable_message.h"

#include <string>
#include <vector>

#include "runtime/base/shown_text.h"

namespace reprise {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr size_t kMostBytes = 2048;

bool IsFine(const std::string& text) { return text.size() <= kMostBytes && IsPrintable(text); }

void MakeFieldPrintable(Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  const int size = field.is_repeated() ? reflection.FieldSize(message, &field) : 1;
  std::string scratch;
  for (int i = 0; i < size; ++i) {
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      MakePrintable(field.is_repeated() ? *reflection.MutableRepeatedMessage(&message, &field, i)
                                        : *reflection.MutableMessage(&message, &field));
    } else if (field.is_repeated()) {
      const std::string& text = reflection.GetRepeatedStringReference(message, &field, i, &scratch);
      if (!IsFine(text)) {
        reflection.SetRepeatedString(&message, &field, i, ShownText(text, kMostBytes));
      }
    } else {
      const std::string& text = reflection.GetStringReference(message, &field, &scratch);
      if (!IsFine(text)) reflection.SetString(&message, &field, ShownText(text, kMostBytes));
    }
  }
}

}  // namespace

void MakePrintable(Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const bool holds_texts = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE ||
                             field->type() == FieldDescriptor::TYPE_STRING;
    if (holds_texts && !field->is_map()) MakeFieldPrintable(message, *field);
  }
}

}  // namespace reprise
