// Downloads of single files into a folder that several processes share.
//
// A file grows as NAME.part, which its downloader has locked, and gets its name once its bytes are
// whole and have the digest that the place gave. The next process resumes an unfinished file; two
// that need the same file wait for one transfer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "server/fetch/remote_model.h"

namespace reprise {

struct DownloadLimits {
  int64_t most_bytes = 0;  // the limit, which errors name
  int64_t left = 0;        // the bytes that may still come; falls as they do
  // Called as bytes come, with how many.
  std::function<void(int64_t bytes)> on_bytes = [](int64_t) {};
  std::function<bool()> cancelled = [] { return false; };
};

// Downloads `file` into `folder` and returns the path there. Errors: UNAVAILABLE where the place
// does not answer after some attempts; DATA_LOSS where the bytes differ from its digest;
// RESOURCE_EXHAUSTED for the limit, or a full disk, with the kept files; CANCELLED.
absl::StatusOr<std::filesystem::path> Download(const RemoteFile& file,
                                               const std::filesystem::path& folder,
                                               DownloadLimits& limits);

}  // namespace reprise
