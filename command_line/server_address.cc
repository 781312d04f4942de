#include "command_line/server_address.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace reprise::command_line {
namespace {

struct SchemeRow {
  const char* scheme;
  bool is_http;
  bool use_tls;
};

constexpr SchemeRow kSchemes[] = {{"grpc://", false, false},
                                  {"grpcs://", false, true},
                                  {"http://", true, false},
                                  {"https://", true, true}};

}  // namespace

absl::StatusOr<ServerAddress> ServerAddress::Parse(absl::string_view text) {
  const auto wrong = [text] {
    return absl::InvalidArgumentError(
        absl::StrCat("--server ", text,
                     ": it must be HOST:PORT, of gRPC or after grpc://, grpcs://, "
                     "http:// or https://"));
  };
  ServerAddress address;
  absl::string_view rest = text;
  bool known = !absl::StrContains(text, "://");
  for (const SchemeRow& row : kSchemes) {
    if (!absl::ConsumePrefix(&rest, row.scheme)) continue;
    address.is_http = row.is_http;
    address.use_tls = row.use_tls;
    known = true;
    break;
  }
  rest = absl::StripSuffix(rest, "/");
  const size_t colon = rest.find_last_of(':');
  int port = 0;
  if (!known || colon == 0 || colon == absl::string_view::npos ||
      !absl::SimpleAtoi(rest.substr(colon + 1), &port) || port < 1 || port > 65535) {
    return wrong();
  }
  address.host_and_port = std::string(rest);
  return address;
}

std::string ServerAddress::WithPort(int port) const {
  return absl::StrCat(host_and_port.substr(0, host_and_port.find_last_of(':')), ":", port);
}

}  // namespace reprise::command_line
