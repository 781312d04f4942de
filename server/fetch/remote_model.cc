#include "server/fetch/remote_model.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "server/fetch/credentials.h"
#include "server/fetch/digest.h"

namespace reprise {
namespace {

// Asks for the first byte: servers that sign addresses for GET refuse HEAD.
absl::Status AskAbout(RemoteFile& file, const std::function<bool()>& cancelled) {
  HttpGet request = file.get;
  request.first_byte = true;
  const auto ignore = [](const HttpHead&, absl::string_view) { return absl::OkStatus(); };
  ASSIGN_OR_RETURN(const HttpHead head, Get(request, ignore, cancelled));
  const std::string range = head.Header("content-range");
  const std::string size = head.status == 206 ? range.substr(range.find_last_of('/') + 1)
                                              : head.Header("content-length");
  if (!absl::SimpleAtoi(size, &file.bytes)) file.bytes = -1;
  file.etag = head.Header("etag");
  std::string mark = file.etag;
  if (mark.empty()) mark = head.Header("last-modified");
  if (!mark.empty()) file.identity = absl::StrCat(file.get.url, " ", mark, " ", file.bytes);
  return absl::OkStatus();
}

absl::StatusOr<RemoteModel> ListWeb(const ModelUrl& url, const std::function<bool()>& cancelled) {
  RemoteModel model = {.is_file = true};
  RemoteFile file = {.path = url.path.substr(url.path.find_last_of('/') + 1),
                     .get = {.url = url.place, .authorities = AuthoritiesFile()}};
  RETURN_IF_ERROR(AskAbout(file, cancelled));
  const bool tells = !file.identity.empty();
  model.files.push_back(std::move(file));
  if (tells) NameVersion(model);
  return model;
}

}  // namespace

absl::Status WithHint(const absl::Status& status, const std::string& hint) {
  if (status.code() != absl::StatusCode::kPermissionDenied) return status;
  return absl::Status(status.code(), absl::StrCat(status.message(), "; ", hint));
}

void NameVersion(RemoteModel& model) {
  std::string all;
  for (const RemoteFile& file : model.files)
    absl::StrAppend(&all, file.path, " ", file.identity, "\n");
  model.version = Sha256Hex(all).substr(0, 40);
}

absl::StatusOr<RemoteFile> RemoteFileBeside(const ModelUrl& url, const std::string& path,
                                            const std::function<bool()>& cancelled) {
  const std::string address = WithoutQuery(url.place);
  RemoteFile file = {
      .path = path,
      .get = {.url = absl::StrCat(address.substr(0, address.find_last_of('/') + 1),
                                  UrlEncoded(path, true), url.place.substr(address.size())),
              .authorities = AuthoritiesFile()}};
  RETURN_IF_ERROR(AskAbout(file, cancelled));
  return file;
}

absl::StatusOr<RemoteModel> ListRemote(const ModelUrl& url,
                                       const std::function<bool()>& cancelled) {
  absl::StatusOr<RemoteModel> model = url.scheme == ModelUrl::Scheme::kHub ? ListHub(url, cancelled)
                                      : url.scheme == ModelUrl::Scheme::kS3 ? ListS3(url, cancelled)
                                      : url.scheme == ModelUrl::Scheme::kGcs
                                          ? ListGcs(url, cancelled)
                                          : ListWeb(url, cancelled);
  if (!model.ok() || url.sha256.empty()) return model;
  if (!model->is_file) {
    return absl::InvalidArgumentError(
        absl::StrCat(url.shown, " is a folder: #sha256 is for one file"));
  }
  RemoteFile& file = model->files[0];
  file.digest = file.identity = absl::StrCat("sha256:", url.sha256);
  NameVersion(*model);
  return model;
}

}  // namespace reprise
