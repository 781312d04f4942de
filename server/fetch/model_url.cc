#include "server/fetch/model_url.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"
#include "server/fetch/http_get.h"
#include "server/fetch/inner_path.h"

namespace reprise {
namespace {

constexpr char kForms[] =
    "known are hf://ORG/REPO[@REVISION][:FILE], s3://BUCKET/KEY, gs://BUCKET/KEY and "
    "https://HOST/PATH";

bool IsNameOf(absl::string_view text, absl::string_view more) {
  if (text.empty() || text[0] == '.') return false;
  for (const char c : text) {
    if (!absl::ascii_isalnum(c) && !absl::StrContains(more, c)) return false;
  }
  return true;
}

absl::Status BadUrl(absl::string_view shown, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(shown, " ", why, "; ", kForms));
}

// Takes "#sha256=DIGEST" from the end of `text`.
absl::StatusOr<std::string> TakeDigest(absl::string_view& text, const std::string& shown) {
  const size_t hash = text.find('#');
  if (hash == absl::string_view::npos) return "";
  absl::string_view digest = text.substr(hash + 1);
  text = text.substr(0, hash);
  if (!absl::ConsumePrefix(&digest, "sha256=") || digest.size() != 64 || !IsNameOf(digest, "") ||
      absl::AsciiStrToLower(digest).find_first_not_of("0123456789abcdef") != std::string::npos) {
    return BadUrl(shown, "ends in a # that no sha256= and 64 digits follow");
  }
  return absl::AsciiStrToLower(digest);
}

absl::StatusOr<ModelUrl> ParseHub(absl::string_view rest, ModelUrl url) {
  if (const size_t colon = rest.find(':'); colon != absl::string_view::npos) {
    url.file = std::string(rest.substr(colon + 1));
    rest = rest.substr(0, colon);
    if (!IsInnerPath(url.file)) return BadUrl(url.shown, "has no path of a file after its colon");
  }
  if (const size_t at = rest.find('@'); at != absl::string_view::npos) {
    url.revision = std::string(rest.substr(at + 1));
    rest = rest.substr(0, at);
    if (!IsInnerPath(url.revision)) return BadUrl(url.shown, "has no revision after its @");
  }
  const std::vector<std::string> parts = absl::StrSplit(rest, '/');
  if (parts.size() != 2 || !IsNameOf(parts[0], "-_.") || !IsNameOf(parts[1], "-_.")) {
    return BadUrl(url.shown, "does not name ORG/REPO");
  }
  url.place = std::string(rest);
  return url;
}

absl::StatusOr<ModelUrl> ParseBucket(absl::string_view rest, ModelUrl url) {
  const size_t slash = rest.find('/');
  url.place = std::string(rest.substr(0, slash));
  if (!IsNameOf(url.place, "-_.")) return BadUrl(url.shown, "does not name a bucket");
  if (slash != absl::string_view::npos) {
    url.path = std::string(absl::StripSuffix(rest.substr(slash + 1), "/"));
  }
  if (!url.path.empty() && !IsInnerPath(url.path)) return BadUrl(url.shown, "has no plain key");
  return url;
}

bool IsLoopback(absl::string_view address) {
  const absl::string_view host = absl::StripPrefix(address, "http://");
  for (const char* local : {"localhost", "127.0.0.1", "[::1]"}) {
    if (!absl::StartsWith(host, local)) continue;
    const absl::string_view after = absl::StripPrefix(host, local);
    if (after.empty() || after[0] == ':' || after[0] == '/') return true;
  }
  return false;
}

}  // namespace

bool ModelUrl::IsUrl(absl::string_view text) {
  const size_t colon = text.find("://");
  if (colon == absl::string_view::npos || colon == 0) return false;
  for (const char c : text.substr(0, colon)) {
    if (!absl::ascii_isalnum(c)) return false;
  }
  return true;
}

absl::StatusOr<ModelUrl> ModelUrl::Parse(absl::string_view text) {
  ModelUrl url = {.shown = ShownUrl(text)};
  for (const char c : text) {
    if (absl::ascii_iscntrl(c) || c == ' ')
      return BadUrl(url.shown, "has a blank or control character");
  }
  ASSIGN_OR_RETURN(url.sha256, TakeDigest(text, url.shown));
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "hf://")) {
    url.scheme = Scheme::kHub;
    url.shown = std::string(text);
    if (!url.sha256.empty())
      return BadUrl(url.shown, "names a repository: its revision pins bytes, @COMMIT");
    return ParseHub(rest, std::move(url));
  }
  if (absl::ConsumePrefix(&rest, "s3://")) {
    url.scheme = Scheme::kS3;
    return ParseBucket(rest, std::move(url));
  }
  if (absl::ConsumePrefix(&rest, "gs://")) {
    url.scheme = Scheme::kGcs;
    return ParseBucket(rest, std::move(url));
  }
  const bool plain = absl::ConsumePrefix(&rest, "http://");
  if (!plain && !absl::ConsumePrefix(&rest, "https://"))
    return BadUrl(url.shown, "has another scheme");
  if (plain && url.sha256.empty() && !IsLoopback(url.shown)) {
    return BadUrl(url.shown,
                  "is not encrypted: http is accepted with #sha256=DIGEST, or from this machine");
  }
  url.place = std::string(text);
  const absl::string_view shown = absl::string_view(url.shown).substr(url.shown.find("://") + 3);
  const size_t slash = shown.find('/');
  if (slash == 0 || slash == absl::string_view::npos || slash + 1 == shown.size()) {
    return BadUrl(url.shown, "has no host and path");
  }
  url.path = std::string(shown.substr(slash + 1));
  return url;
}

std::string ModelUrl::DefaultName() const {
  const std::string& from = scheme == Scheme::kHub || path.empty() ? place : path;
  std::string name = from.substr(from.find_last_of('/') + 1);
  for (const char* end : {".onnx", ".gz", ".xz", ".zst", ".bz2", ".tgz", ".tar", ".zip"}) {
    if (absl::EndsWith(name, end)) name = std::string(absl::StripSuffix(name, end));
  }
  return name;
}

}  // namespace reprise
