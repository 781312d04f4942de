// RemoteModel: the files of a place, with the digests that it tells, and how to get each.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/fetch/http_get.h"
#include "server/fetch/model_url.h"

namespace reprise {

struct RemoteFile {
  std::string path;    // its place in the model's folder
  int64_t bytes = -1;  // -1: the place does not say
  // The digest of its bytes, "sha256:DIGITS", "md5:DIGITS" or "git:DIGITS" (a sha1 of git's);
  // empty: none is told, and the size counts alone.
  std::string digest;
  // A text that differs for other bytes; empty: none is known.
  std::string identity;
  std::string etag;  // as in the header, for requests that go on; empty: unknown
  HttpGet get;
};

struct RemoteModel {
  // A name of all its bytes: a commit, or a digest of the identities; empty where nothing is told.
  std::string version;
  std::vector<RemoteFile> files;
  bool is_file = false;  // one file, which may be an archive
};

// Lists the files at `url`. Errors: UNAVAILABLE where the place does not answer, NOT_FOUND
// and PERMISSION_DENIED as it says, with the credentials that were looked for.
absl::StatusOr<RemoteModel> ListRemote(const ModelUrl& url, const std::function<bool()>& cancelled);

// Returns the parts of ListRemote, a file each.
absl::StatusOr<RemoteModel> ListHub(const ModelUrl& url, const std::function<bool()>& cancelled);
absl::StatusOr<RemoteModel> ListS3(const ModelUrl& url, const std::function<bool()>& cancelled);
absl::StatusOr<RemoteModel> ListGcs(const ModelUrl& url, const std::function<bool()>& cancelled);

// Returns a file that lies at `path` in the folder of `url`, an address of the web.
absl::StatusOr<RemoteFile> RemoteFileBeside(const ModelUrl& url, const std::string& path,
                                            const std::function<bool()>& cancelled);

// Returns the error of a place, with a hint at its credentials where it refuses.
absl::Status WithHint(const absl::Status& status, const std::string& hint);

// Sets the version from the identities of the files.
void NameVersion(RemoteModel& model);

// The most files of one place, and the most bytes of one answer that lists them.
inline constexpr size_t kMostRemoteFiles = 100'000;
inline constexpr int64_t kMostListingBytes = int64_t{64} << 20;

}  // namespace reprise
