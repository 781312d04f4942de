#include "server/fetch/http_get.h"

#include <curl/curl.h>

#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/shown_text.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

constexpr long kConnectSeconds = 10;
// A transfer that moves fewer bytes a second than this for that long has stopped.
constexpr long kLeastBytesPerSecond = 512;
constexpr long kStillSeconds = 30;
constexpr long kMostRedirects = 10;
constexpr size_t kShownBody = 200;

struct Transfer {
  HttpSink sink;
  const std::function<bool()>& cancelled;
  HttpHead head;
  absl::Status failed;
  std::string refusal;  // the beginning of an error's body
  bool first_byte = false;
  bool enough = false;
};

// Takes a header line; a status line begins another answer's head (a redirect's, 100 Continue).
size_t OnHeaderLine(char* data, size_t size, size_t count, void* to) {
  auto& transfer = *static_cast<Transfer*>(to);
  const absl::string_view line(data, size * count);
  if (absl::StartsWith(line, "HTTP/")) {
    transfer.head = {};
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    if (words.size() > 1) {
      (void)absl::SimpleAtoi(absl::StripAsciiWhitespace(words[1]), &transfer.head.status);
    }
  } else if (const size_t colon = line.find(':'); colon != absl::string_view::npos) {
    transfer.head.headers[absl::AsciiStrToLower(line.substr(0, colon))] =
        std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
  }
  return size * count;
}

size_t OnBody(char* data, size_t size, size_t count, void* to) {
  auto& transfer = *static_cast<Transfer*>(to);
  const absl::string_view bytes(data, size * count);
  if (transfer.head.status >= 300 && transfer.head.status < 400) return bytes.size();
  if (transfer.head.status >= 400) {
    if (transfer.refusal.size() < kShownBody) {
      absl::StrAppend(&transfer.refusal, bytes.substr(0, kShownBody));
    }
    return bytes.size();
  }
  if (transfer.first_byte) {
    transfer.enough = true;
    return 0;
  }
  transfer.failed = transfer.sink(transfer.head, bytes);
  return transfer.failed.ok() ? bytes.size() : 0;
}

int OnProgress(void* of, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const auto& transfer = *static_cast<const Transfer*>(of);
  return transfer.cancelled() ? 1 : 0;
}

using Handle = std::unique_ptr<CURL, void (*)(CURL*)>;
using Lines = std::unique_ptr<curl_slist, void (*)(curl_slist*)>;

void AddLine(const std::string& line, Lines& lines) {
  lines.reset(curl_slist_append(lines.release(), line.c_str()));
}

void SetCredentials(CURL* handle, const HttpGet& request, Lines& lines) {
  if (!request.bearer.empty()) {
    curl_easy_setopt(handle, CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BEARER));
    curl_easy_setopt(handle, CURLOPT_XOAUTH2_BEARER, request.bearer.c_str());
  }
  if (request.aws_key_id.empty()) return;
  curl_easy_setopt(handle, CURLOPT_AWS_SIGV4,
                   absl::StrCat("aws:amz:", request.aws_region, ":s3").c_str());
  curl_easy_setopt(handle, CURLOPT_USERNAME, request.aws_key_id.c_str());
  curl_easy_setopt(handle, CURLOPT_PASSWORD, request.aws_secret.c_str());
  AddLine("x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
          lines);
  if (!request.aws_token.empty()) {
    AddLine(absl::StrCat("x-amz-security-token: ", request.aws_token), lines);
  }
}

absl::Status StatusOfAnswer(const Transfer& transfer, const std::string& shown) {
  const int status = transfer.head.status;
  const std::string words =
      absl::StrCat(shown, " answers ", status, transfer.refusal.empty() ? "" : ": ",
                   ShownText(transfer.refusal, kShownBody));
  if (status == 401 || status == 403) return absl::PermissionDeniedError(words);
  if (status == 404 || status == 410) return absl::NotFoundError(words);
  if (status == 408 || status == 429 || status >= 500) return absl::UnavailableError(words);
  return absl::FailedPreconditionError(words);
}

}  // namespace

std::string WithoutQuery(absl::string_view url) {
  return std::string(url.substr(0, url.find('?')));
}

std::string ShownUrl(absl::string_view url) {
  std::string shown = WithoutQuery(url.substr(0, url.find('#')));
  const size_t scheme = shown.find("://");
  const size_t host = scheme == std::string::npos ? 0 : scheme + 3;
  const size_t at = shown.find('@', host);
  if (at != std::string::npos && at < shown.find('/', host)) shown.erase(host, at + 1 - host);
  return shown;
}

std::string UrlEncoded(absl::string_view text, bool slashes) {
  std::string encoded;
  for (const char c : text) {
    if (absl::ascii_isalnum(c) || absl::StrContains("-._~", c) || (slashes && c == '/')) {
      encoded += c;
    } else {
      constexpr char kDigits[] = "0123456789ABCDEF";
      const auto byte = static_cast<unsigned char>(c);
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return encoded;
}

absl::StatusOr<HttpHead> Get(const HttpGet& request, HttpSink sink,
                             const std::function<bool()>& cancelled) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  const Handle handle(curl_easy_init(), curl_easy_cleanup);
  if (ready != CURLE_OK || handle == nullptr) {
    return absl::ResourceExhaustedError("libcurl cannot be started");
  }
  CURL* const curl = handle.get();
  Transfer transfer = {.sink = sink, .cancelled = cancelled, .first_byte = request.first_byte};
  Lines lines(nullptr, curl_slist_free_all);
  for (const std::string& header : request.headers) AddLine(header, lines);
  SetCredentials(curl, request, lines);
  const bool https = absl::StartsWith(request.url, "https://");
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, lines.get());
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "reprise");
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, https ? "https" : "http,https");
  // A signature is for one host, and so is a posted form.
  const bool follows = request.aws_key_id.empty() && request.form.empty();
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, follows ? 1L : 0L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, kMostRedirects);
  curl_easy_setopt(curl, CURLOPT_UNRESTRICTED_AUTH, 0L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, kLeastBytesPerSecond);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, kStillSeconds);
  if (!request.authorities.empty()) {
    curl_easy_setopt(curl, CURLOPT_CAINFO, request.authorities.c_str());
  }
  if (!request.form.empty()) {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, static_cast<long>(request.form.size()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request.form.c_str());
  }
  if (request.first_byte) {
    curl_easy_setopt(curl, CURLOPT_RANGE, "0-0");
  } else if (request.offset > 0) {
    curl_easy_setopt(curl, CURLOPT_RANGE, absl::StrCat(request.offset, "-").c_str());
  }
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, OnHeaderLine);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, OnBody);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, OnProgress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  const CURLcode code = curl_easy_perform(curl);
  const std::string shown = ShownUrl(request.url);
  RETURN_IF_ERROR(transfer.failed);
  if (code == CURLE_ABORTED_BY_CALLBACK) {
    return absl::CancelledError(absl::StrCat(shown, ": the transfer was stopped"));
  }
  if (code != CURLE_OK && !transfer.enough) {
    return absl::UnavailableError(absl::StrCat(shown, ": ", curl_easy_strerror(code)));
  }
  if (transfer.head.status >= 300) return StatusOfAnswer(transfer, shown);
  return transfer.head;
}

absl::StatusOr<std::string> GetText(const HttpGet& request, int64_t most_bytes,
                                    const std::function<bool()>& cancelled, HttpHead* head) {
  std::string text;
  const auto sink = [&](const HttpHead&, absl::string_view bytes) -> absl::Status {
    if (static_cast<int64_t>(text.size() + bytes.size()) > most_bytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat(ShownUrl(request.url), " answers more than ", most_bytes, " bytes"));
    }
    absl::StrAppend(&text, bytes);
    return absl::OkStatus();
  };
  ASSIGN_OR_RETURN(HttpHead got, Get(request, sink, cancelled));
  if (head != nullptr) *head = std::move(got);
  return text;
}

}  // namespace reprise
