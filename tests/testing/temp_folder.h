// A folder for one test alone, whatever runs at the same time; removed at its end.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "absl/strings/string_view.h"

namespace reprise {

class TempFolder {
 public:
  TempFolder() : path_(std::filesystem::path(testing::TempDir()) / "reprise_test_XXXXXX") {
    std::string made = path_.string();
    EXPECT_NE(mkdtemp(made.data()), nullptr) << made;
    path_ = made;
  }
  ~TempFolder() {
    std::error_code ignored;
    // A test may have taken the right to write away.
    for (const auto& entry : std::filesystem::directory_iterator(path_, ignored)) {
      if (!entry.is_directory(ignored)) continue;
      std::filesystem::permissions(entry, std::filesystem::perms::owner_all, ignored);
    }
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string File(const std::string& name) const { return (path_ / name).string(); }

  // Writes a file of `bytes` and returns its path.
  std::string Write(const std::string& name, absl::string_view bytes) const {
    std::ofstream(path_ / name, std::ios::binary).write(bytes.data(), bytes.size());
    return File(name);
  }

 private:
  std::filesystem::path path_;
};

}  // namespace reprise
