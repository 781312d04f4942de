// Messages of the protocol as JSON, by their own names. Numbers of 64 bits are numbers, as clients
// of the protocol want them, where Protobuf's own form has texts.
#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace reprise {

// Fields that are not set are left out only where they are messages.
std::string MessageToJson(const google::protobuf::Message& message);

}  // namespace reprise
