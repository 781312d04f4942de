// Buckets: S3 (ListObjectsV2) and Google's (the JSON API).

#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"
#include "server/fetch/credentials.h"
#include "server/fetch/remote_model.h"

namespace reprise {
namespace {

constexpr char kAwsHint[] =
    "credentials are looked for in $AWS_ACCESS_KEY_ID and $AWS_SECRET_ACCESS_KEY, in ~/.aws "
    "($AWS_PROFILE) and at $AWS_CONTAINER_CREDENTIALS_FULL_URI; without any, requests are "
    "anonymous";
constexpr char kGoogleHint[] =
    "credentials are looked for in the file of $GOOGLE_APPLICATION_CREDENTIALS and in "
    "~/.config/gcloud; without any, requests are anonymous";

// Returns the texts of the elements `name` in a piece of XML that has no attributes there, as S3's
// lists.
std::vector<std::string> Elements(absl::string_view xml, const std::string& name) {
  const std::string open = absl::StrCat("<", name, ">"), close = absl::StrCat("</", name, ">");
  std::vector<std::string> found;
  for (size_t at = xml.find(open); at != absl::string_view::npos; at = xml.find(open, at)) {
    at += open.size();
    const size_t end = xml.find(close, at);
    if (end == absl::string_view::npos) break;
    found.emplace_back(xml.substr(at, end - at));
    at = end;
  }
  return found;
}

std::string Element(absl::string_view xml, const std::string& name) {
  const std::vector<std::string> all = Elements(xml, name);
  return all.empty() ? ""
                     : absl::StrReplaceAll(all[0], {{"&quot;", "\""},
                                                    {"&apos;", "'"},
                                                    {"&#34;", "\""},
                                                    {"&#39;", "'"},
                                                    {"&lt;", "<"},
                                                    {"&gt;", ">"},
                                                    {"&amp;", "&"}});
}

// Returns the place of an object in the folder that `path` names, or of the object itself; "" where
// the key only begins with the same letters.
std::string PlaceIn(const std::string& path, const std::string& key, bool& is_file) {
  if (key == path) {
    is_file = true;
    return key.substr(key.find_last_of('/') + 1);
  }
  absl::string_view rest = key;
  if (path.empty()) return key;
  return absl::ConsumePrefix(&rest, path) && absl::ConsumePrefix(&rest, "/") ? std::string(rest)
                                                                             : "";
}

absl::Status AddObject(const ModelUrl& url, const std::string& key, RemoteFile file,
                       RemoteModel& model) {
  bool is_file = false;
  file.path = PlaceIn(url.path, key, is_file);
  // Folders of consoles are empty objects that end with a slash.
  if (file.path.empty() || file.path.back() == '/') return absl::OkStatus();
  if (is_file) model.files.clear();
  if (model.is_file) return absl::OkStatus();
  model.is_file = is_file;
  model.files.push_back(std::move(file));
  if (model.files.size() <= kMostRemoteFiles) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(url.shown, " has more than ", kMostRemoteFiles, " files"));
}

absl::Status NothingThere(const ModelUrl& url) {
  return absl::NotFoundError(
      absl::StrCat("the bucket ", url.place, " has no object ", url.path, ", and none below it"));
}

}  // namespace

absl::StatusOr<RemoteModel> ListS3(const ModelUrl& url, const std::function<bool()>& cancelled) {
  ASSIGN_OR_RETURN(const AwsCredentials aws, FindAwsCredentials(cancelled));
  const HttpGet base = {.aws_key_id = aws.key_id,
                        .aws_secret = aws.secret,
                        .aws_token = aws.token,
                        .aws_region = aws.region,
                        .authorities = AuthoritiesFile()};
  // Buckets are hosts at Amazon's, except those whose dots no certificate fits.
  const bool is_path = !aws.endpoint.empty() || absl::StrContains(url.place, '.');
  const std::string bucket =
      !aws.endpoint.empty() ? absl::StrCat(aws.endpoint, "/", url.place)
      : is_path             ? absl::StrCat("https://s3.", aws.region, ".amazonaws.com/", url.place)
                : absl::StrCat("https://", url.place, ".s3.", aws.region, ".amazonaws.com");
  RemoteModel model;
  std::string token;
  do {
    HttpGet request = base;
    // In the order of the alphabet, as the signature reads them.
    request.url = absl::StrCat(
        bucket, "/?",
        token.empty() ? "" : absl::StrCat("continuation-token=", UrlEncoded(token, false), "&"),
        "list-type=2&prefix=", UrlEncoded(url.path, false));
    const auto text = GetText(request, kMostListingBytes, cancelled);
    if (!text.ok()) return WithHint(text.status(), kAwsHint);
    for (const std::string& object : Elements(*text, "Contents")) {
      const std::string key = Element(object, "Key");
      RemoteFile file = {.get = base};
      if (!absl::SimpleAtoi(Element(object, "Size"), &file.bytes)) file.bytes = -1;
      const std::string tag = absl::StrReplaceAll(Element(object, "ETag"), {{"\"", ""}});
      // The md5 of a file that was uploaded in one piece.
      if (tag.size() == 32) file.digest = absl::StrCat("md5:", tag);
      file.etag = absl::StrCat("\"", tag, "\"");
      file.identity = absl::StrCat(bucket, "/", key, " ", tag, " ", file.bytes);
      file.get.url = absl::StrCat(bucket, "/", UrlEncoded(key, true));
      RETURN_IF_ERROR(AddObject(url, key, std::move(file), model));
    }
    token = Element(*text, "NextContinuationToken");
  } while (!token.empty());
  if (model.files.empty()) return NothingThere(url);
  NameVersion(model);
  return model;
}

absl::StatusOr<RemoteModel> ListGcs(const ModelUrl& url, const std::function<bool()>& cancelled) {
  ASSIGN_OR_RETURN(const std::string token, GoogleToken(cancelled));
  const HttpGet base = {.bearer = token, .authorities = AuthoritiesFile()};
  std::string endpoint = Environment("STORAGE_EMULATOR_HOST");
  if (endpoint.empty()) endpoint = "https://storage.googleapis.com";
  if (!absl::StrContains(endpoint, "://")) endpoint.insert(0, "http://");
  endpoint = std::string(absl::StripSuffix(endpoint, "/"));
  const std::string objects = absl::StrCat(endpoint, "/storage/v1/b/", url.place, "/o");
  RemoteModel model;
  std::string page;
  do {
    HttpGet request = base;
    request.url = absl::StrCat(objects, "?prefix=", UrlEncoded(url.path, false),
                               page.empty() ? "" : "&pageToken=", UrlEncoded(page, false));
    const auto text = GetText(request, kMostListingBytes, cancelled);
    if (!text.ok()) return WithHint(text.status(), kGoogleHint);
    const nlohmann::json list = nlohmann::json::parse(*text, nullptr, false);
    if (!list.is_object()) {
      return absl::UnavailableError(
          absl::StrCat(objects, " does not answer with a list of objects"));
    }
    const nlohmann::json none = nlohmann::json::array();
    for (const auto& item : list.contains("items") ? list["items"] : none) {
      if (!item.is_object()) continue;
      const auto text_of = [&item](const char* name) {
        const auto it = item.find(name);
        return it != item.end() && it->is_string() ? it->get<std::string>() : std::string();
      };
      RemoteFile file = {.get = base};
      if (!absl::SimpleAtoi(text_of("size"), &file.bytes)) file.bytes = -1;
      std::string md5;
      if (absl::Base64Unescape(text_of("md5Hash"), &md5) && md5.size() == 16) {
        file.digest = absl::StrCat("md5:", absl::BytesToHexString(md5));
      }
      const std::string key = text_of("name"), generation = text_of("generation");
      file.identity = absl::StrCat(objects, "/", key, " ", generation, " ", file.digest);
      file.get.url = absl::StrCat(objects, "/", UrlEncoded(key, false), "?alt=media",
                                  generation.empty() ? "" : "&generation=", generation);
      RETURN_IF_ERROR(AddObject(url, key, std::move(file), model));
    }
    const auto next = list.find("nextPageToken");
    page = next != list.end() && next->is_string() ? next->get<std::string>() : "";
  } while (!page.empty());
  if (model.files.empty()) return NothingThere(url);
  NameVersion(model);
  return model;
}

}  // namespace reprise
