// Points in time, for people.
#pragma once

#include <google/protobuf/timestamp.pb.h>

#include <string>

namespace reprise::cli {

// "12 s ago", "3 min ago", by this machine's clock; "now" for the future.
std::string Ago(const google::protobuf::Timestamp& time);

}  // namespace reprise::cli
