// HttpGet: one request over HTTP to a place that models come from, by libcurl.
//
// Credentials go to the host, port and protocol of `url` alone: a redirect elsewhere loses them,
// and none leads from https to http. No error and no log line holds them, nor the query of an
// address.
//
// Threads: pure; each call has a connection of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace reprise {

struct HttpGet {
  std::string url;
  std::vector<std::string> headers = {};  // "Name: value", without secrets
  std::string bearer = {};                // empty: none
  // AWS's signature, version 4; empty without a key.
  std::string aws_key_id = {}, aws_secret = {}, aws_token = {}, aws_region = {};
  std::string form = {};         // not empty: a POST of it, which follows no redirect
  std::string authorities = {};  // a file of PEM; empty: the system's
  int64_t offset = 0;            // the first byte to read
  bool first_byte = false;       // and no other: to learn the size
};

struct HttpHead {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string Header(const std::string& name) const {
    const auto it = headers.find(name);
    return it == headers.end() ? "" : it->second;
  }
};

// Takes bytes of a body, once its head is known. An error ends the transfer and is returned.
using HttpSink = absl::FunctionRef<absl::Status(const HttpHead& head, absl::string_view bytes)>;

// Errors: UNAVAILABLE where no answer comes, or one that says to try again (429, 5xx); NOT_FOUND;
// PERMISSION_DENIED for 401 and 403; CANCELLED once `cancelled` returns true; errors of `sink`.
absl::StatusOr<HttpHead> Get(const HttpGet& request, HttpSink sink,
                             const std::function<bool()>& cancelled);

// Returns the whole body, of at most `most_bytes`; `head`, where not null, gets its head.
absl::StatusOr<std::string> GetText(const HttpGet& request, int64_t most_bytes,
                                    const std::function<bool()>& cancelled,
                                    HttpHead* head = nullptr);

// `text` as a part of an address; '/' stays where `slashes`.
std::string UrlEncoded(absl::string_view text, bool slashes);

// Returns the address without its query.
std::string WithoutQuery(absl::string_view url);
// Returns the address as people may see it: without user, password and query.
std::string ShownUrl(absl::string_view url);

}  // namespace reprise
