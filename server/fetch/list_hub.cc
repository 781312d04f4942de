// The Hugging Face Hub: /api/models for the commit and the tree, /ORG/REPO/resolve for files.

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"
#include "server/fetch/credentials.h"
#include "server/fetch/remote_model.h"

namespace reprise {
namespace {

using Json = nlohmann::json;

constexpr char kHubHint[] =
    "a repository that is private or gated needs a token: $HF_TOKEN, or `hf auth login`, which "
    "writes ~/.cache/huggingface/token";

std::string TextAt(const Json& json, const char* name) {
  const auto it = json.is_object() ? json.find(name) : json.end();
  return it != json.end() && it->is_string() ? it->get<std::string>() : "";
}

int64_t NumberAt(const Json& json, const char* name) {
  const auto it = json.is_object() ? json.find(name) : json.end();
  return it != json.end() && it->is_number_integer() ? it->get<int64_t>() : -1;
}

// Returns the address of rel="next" in a header Link; "" where there is none, or where it leads
// away from `endpoint`.
std::string NextPage(const std::string& link, const std::string& endpoint) {
  for (const absl::string_view part : absl::StrSplit(link, ',')) {
    const size_t open = part.find('<'), close = part.find('>');
    if (open == absl::string_view::npos || close == absl::string_view::npos || close < open)
      continue;
    if (!absl::StrContains(part.substr(close), "rel=\"next\"")) continue;
    std::string next(part.substr(open + 1, close - open - 1));
    if (absl::StartsWith(next, endpoint + "/")) return next;
  }
  return "";
}

}  // namespace

absl::StatusOr<RemoteModel> ListHub(const ModelUrl& url, const std::function<bool()>& cancelled) {
  if (const std::string offline = Environment("HF_HUB_OFFLINE");
      offline == "1" || offline == "true") {
    return absl::UnavailableError("$HF_HUB_OFFLINE is set");
  }
  std::string endpoint = Environment("HF_ENDPOINT");
  if (endpoint.empty()) endpoint = "https://huggingface.co";
  endpoint = std::string(absl::StripSuffix(endpoint, "/"));
  const HttpGet base = {.bearer = HubToken(), .authorities = AuthoritiesFile()};
  const auto at = [&base](std::string address) {
    HttpGet request = base;
    request.url = std::move(address);
    return request;
  };
  const std::string api = absl::StrCat(endpoint, "/api/models/", url.place);
  const std::string revision = url.revision.empty() ? "main" : url.revision;
  const auto info = GetText(at(absl::StrCat(api, "/revision/", UrlEncoded(revision, false))),
                            kMostListingBytes, cancelled);
  if (!info.ok()) return WithHint(info.status(), kHubHint);
  RemoteModel model = {.version = TextAt(Json::parse(*info, nullptr, false), "sha")};
  if (model.version.empty()) {
    return absl::UnavailableError(absl::StrCat(api, " does not name a commit"));
  }
  std::string page = absl::StrCat(api, "/tree/", model.version, "?recursive=true");
  while (!page.empty()) {
    HttpHead head;
    ASSIGN_OR_RETURN(const std::string text,
                     GetText(at(page), kMostListingBytes, cancelled, &head));
    const Json entries = Json::parse(text, nullptr, false);
    if (!entries.is_array()) {
      return absl::UnavailableError(
          absl::StrCat(ShownUrl(page), " does not answer with a list of files"));
    }
    for (const Json& entry : entries) {
      if (TextAt(entry, "type") != "file") continue;
      RemoteFile file = {.path = TextAt(entry, "path"), .bytes = NumberAt(entry, "size")};
      const auto lfs = entry.find("lfs");
      if (lfs != entry.end() && lfs->is_object()) {
        file.digest = absl::StrCat("sha256:", TextAt(*lfs, "oid"));
        file.bytes = NumberAt(*lfs, "size");
      } else {
        file.digest = absl::StrCat("git:", TextAt(entry, "oid"));
      }
      file.identity = file.digest;
      file.get = at(absl::StrCat(endpoint, "/", url.place, "/resolve/", model.version, "/",
                                 UrlEncoded(file.path, true)));
      model.files.push_back(std::move(file));
    }
    if (model.files.size() > kMostRemoteFiles) {
      return absl::ResourceExhaustedError(
          absl::StrCat(url.shown, " has more than ", kMostRemoteFiles, " files"));
    }
    page = NextPage(head.Header("link"), endpoint);
  }
  return model;
}

}  // namespace reprise
