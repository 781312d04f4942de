#include "server/fetch/credentials.h"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"
#include "server/fetch/digest.h"
#include "server/fetch/http_get.h"

namespace reprise {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMostAnswerBytes = 1 << 20;

std::string FileText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

std::string InHome(const char* path) { return absl::StrCat(Environment("HOME"), "/", path); }

// Returns the first one of variables that is set; "" where none is.
std::string FirstOf(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (std::string value = Environment(name); !value.empty()) return value;
  }
  return "";
}

std::string MemberText(const Json& json, const char* name) {
  const auto it = json.is_object() ? json.find(name) : json.end();
  return it != json.end() && it->is_string() ? it->get<std::string>() : "";
}

// Returns the members of the section of an INI file that `names` has one of.
std::map<std::string, std::string> Section(const std::string& path,
                                           std::initializer_list<std::string> names) {
  std::map<std::string, std::string> members;
  bool on = false;
  for (absl::string_view line : absl::StrSplit(FileText(path), '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (line[0] == '[') {
      on = false;
      for (const std::string& name : names) on = on || line == absl::StrCat("[", name, "]");
      continue;
    }
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits('=', 1));
    if (!on) continue;
    members[absl::AsciiStrToLower(absl::StripAsciiWhitespace(parts.first))] =
        std::string(absl::StripAsciiWhitespace(parts.second));
  }
  return members;
}

// Credentials that a container platform hands out over HTTP.
absl::Status ReadContainerCredentials(AwsCredentials& found,
                                      const std::function<bool()>& cancelled) {
  std::string url = Environment("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (const std::string path = Environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
      !path.empty()) {
    url = absl::StrCat("http://169.254.170.2", path);
  }
  if (url.empty()) return absl::OkStatus();
  HttpGet request = {.url = url};
  std::string token = Environment("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  if (const std::string file = Environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
      !file.empty()) {
    token = std::string(absl::StripAsciiWhitespace(FileText(file)));
  }
  if (!token.empty()) request.headers.push_back(absl::StrCat("Authorization: ", token));
  ASSIGN_OR_RETURN(const std::string text, GetText(request, kMostAnswerBytes, cancelled));
  const Json json = Json::parse(text, nullptr, false);
  found.key_id = MemberText(json, "AccessKeyId");
  found.secret = MemberText(json, "SecretAccessKey");
  found.token = MemberText(json, "Token");
  return absl::OkStatus();
}

std::string Base64Url(absl::string_view bytes) {
  std::string text;
  absl::WebSafeBase64Escape(bytes, &text);
  return std::string(absl::StripSuffix(absl::StripSuffix(text, "="), "="));
}

// Returns the form that asks a token's server for one; "" for a kind of account that is not known.
absl::StatusOr<std::string> TokenForm(const Json& account, const std::string& server,
                                      const std::string& path) {
  const std::string type = MemberText(account, "type");
  if (type == "authorized_user") {
    return absl::StrCat(
        "grant_type=refresh_token&client_id=", UrlEncoded(MemberText(account, "client_id"), false),
        "&client_secret=", UrlEncoded(MemberText(account, "client_secret"), false),
        "&refresh_token=", UrlEncoded(MemberText(account, "refresh_token"), false));
  }
  if (type != "service_account") {
    return absl::UnimplementedError(
        absl::StrCat(path, ": accounts of the type '", type,
                     "' are not supported; service_account and authorized_user are"));
  }
  const int64_t now = std::chrono::duration_cast<std::chrono::seconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
  const Json head = {{"alg", "RS256"}, {"typ", "JWT"}};
  const Json claims = {{"iss", MemberText(account, "client_email")},
                       {"scope", "https://www.googleapis.com/auth/devstorage.read_only"},
                       {"aud", server},
                       {"iat", now},
                       {"exp", now + 3600}};
  const std::string text = absl::StrCat(Base64Url(head.dump()), ".", Base64Url(claims.dump()));
  const std::string signature = SignRs256(MemberText(account, "private_key"), text);
  if (signature.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": private_key cannot sign"));
  }
  return absl::StrCat(
      "grant_type=", UrlEncoded("urn:ietf:params:oauth:grant-type:jwt-bearer", false),
      "&assertion=", text, ".", Base64Url(signature));
}

}  // namespace

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string AuthoritiesFile() {
  return FirstOf({"SSL_CERT_FILE", "AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"});
}

std::string HubToken() {
  if (std::string token = FirstOf({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}); !token.empty()) {
    return token;
  }
  std::string path = Environment("HF_TOKEN_PATH");
  if (path.empty() && !Environment("HF_HOME").empty()) {
    path = absl::StrCat(Environment("HF_HOME"), "/token");
  }
  if (path.empty()) {
    const std::string cache = Environment("XDG_CACHE_HOME");
    path = absl::StrCat(cache.empty() ? InHome(".cache") : cache, "/huggingface/token");
  }
  return std::string(absl::StripAsciiWhitespace(FileText(path)));
}

absl::StatusOr<AwsCredentials> FindAwsCredentials(const std::function<bool()>& cancelled) {
  AwsCredentials found;
  std::string profile = FirstOf({"AWS_PROFILE", "AWS_DEFAULT_PROFILE"});
  if (profile.empty()) profile = "default";
  const std::string secrets = Environment("AWS_SHARED_CREDENTIALS_FILE");
  const std::string config = Environment("AWS_CONFIG_FILE");
  auto members = Section(config.empty() ? InHome(".aws/config") : config,
                         {profile == "default" ? "default" : "profile " + profile});
  for (const auto& [name, value] :
       Section(secrets.empty() ? InHome(".aws/credentials") : secrets, {profile})) {
    members[name] = value;
  }
  found.key_id = Environment("AWS_ACCESS_KEY_ID");
  found.secret = Environment("AWS_SECRET_ACCESS_KEY");
  found.token = Environment("AWS_SESSION_TOKEN");
  if (found.key_id.empty() || found.secret.empty()) {
    found.key_id = members["aws_access_key_id"];
    found.secret = members["aws_secret_access_key"];
    found.token = members["aws_session_token"];
  }
  if (found.key_id.empty()) RETURN_IF_ERROR(ReadContainerCredentials(found, cancelled));
  std::string region = FirstOf({"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (region.empty()) region = members["region"];
  if (!region.empty()) found.region = region;
  found.endpoint = FirstOf({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
  if (found.endpoint.empty()) found.endpoint = members["endpoint_url"];
  found.endpoint = std::string(absl::StripSuffix(found.endpoint, "/"));
  return found;
}

absl::StatusOr<std::string> GoogleToken(const std::function<bool()>& cancelled) {
  const std::string named = Environment("GOOGLE_APPLICATION_CREDENTIALS");
  const std::string path =
      named.empty() ? InHome(".config/gcloud/application_default_credentials.json") : named;
  const std::string text = FileText(path);
  if (text.empty()) {
    if (named.empty()) return "";
    return absl::InvalidArgumentError(absl::StrCat("$GOOGLE_APPLICATION_CREDENTIALS names ", path,
                                                   ", which cannot be read or is empty"));
  }
  const Json account = Json::parse(text, nullptr, false);
  std::string server = MemberText(account, "token_uri");
  if (server.empty()) server = "https://oauth2.googleapis.com/token";
  ASSIGN_OR_RETURN(const std::string form, TokenForm(account, server, path));
  ASSIGN_OR_RETURN(const std::string answer,
                   GetText({.url = server, .form = form, .authorities = AuthoritiesFile()},
                           kMostAnswerBytes, cancelled));
  const std::string token = MemberText(Json::parse(answer, nullptr, false), "access_token");
  if (token.empty()) {
    return absl::PermissionDeniedError(absl::StrCat(server, " answers without an access_token"));
  }
  return token;
}

}  // namespace reprise
