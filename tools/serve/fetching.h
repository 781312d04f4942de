// The flags of models from elsewhere, and bringing one with a progress bar: `pull` and `run`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "server/fetch/fetch_model.h"

namespace reprise::cli {

struct FetchingFlags {
  std::string model;
  std::string cache;
  std::string variant;
  int64_t max_download_mb = kDefaultMostDownloadMb;

  void Add(CLI::App& command, const char* meaning);
  // Errors as of FetchModel. Warnings go to the standard error.
  absl::StatusOr<FetchedModel> Fetch() const;
};

}  // namespace reprise::cli
