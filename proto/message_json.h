// Messages as JSON, by the names of their fields. Numbers of 64 bits are numbers, as clients of the
// inference protocol expect them, where Protobuf's own form has texts. Times are texts.
#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace reprise {

// Fields that are not set are left out only where they are messages.
// `indent`: spaces a level; negative: all in one line.
std::string MessageToJson(const google::protobuf::Message& message, int indent = -1);

}  // namespace reprise
