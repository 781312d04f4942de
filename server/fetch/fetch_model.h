// FetchModel: a model from elsewhere, as a folder or file on this machine.
//
//   <cache>/blobs     single files by their digests, and those that are under way (.part)
//   <cache>/models    a folder for each model and version; it appears once it is whole
//   <cache>/refs      which version a name had when its place was last asked
//
// Bytes come once, are checked against the digests that their place tells, and are resumed where a
// process ended before they were whole. Several processes may share the cache. A place that does
// not answer is no reason not to serve: the version of the last time is taken, with a warning.
//
// Threads: pure except for the files; calls for the same model wait for each other.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace reprise {

struct FetchProgress {
  std::string model;            // as it is shown
  int64_t done = 0, total = 0;  // bytes; total 0: not known
};

struct FetchOptions {
  std::string cache;       // its folder
  int64_t most_bytes = 0;  // the most of a model's files, and of those in its archive
  std::string variant;     // "int8": model_int8.onnx, where the name has no file
  std::function<void(const FetchProgress&)> on_progress = [](const FetchProgress&) {};
  std::function<void(const std::string&)> on_warning = [](const std::string&) {};
  std::function<bool()> cancelled = [] { return false; };
};

struct FetchedModel {
  std::string path;       // a model's folder, or its file
  std::string shown;      // its name for people: no secrets
  std::string version;    // a commit, or a digest of all bytes
  bool is_stale = false;  // its place did not answer
};

// `url`: see ModelUrl. Errors as of ListRemote and Download; INVALID_ARGUMENT for an archive or a
// list that leads out of its folder; NOT_FOUND with advice where there is no model.
absl::StatusOr<FetchedModel> FetchModel(const std::string& url, const FetchOptions& options);

// "fetching hf://acme/minilm: 45.1 of 90.4 MiB".
std::string ProgressText(const FetchProgress& progress);

// $CACHE_DIRECTORY (systemd's), $XDG_CACHE_HOME/reprise or ~/.cache/reprise, with "/models".
std::string DefaultModelCache();

inline constexpr int64_t kDefaultMostDownloadMb = 20'480;

}  // namespace reprise
