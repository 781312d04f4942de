#include "runtime/engine/metrics/metrics_file.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/recipe/record_file.h"

namespace reprise {

MetricsFile::MetricsFile(std::string path, MetricsTriggers triggers,
                         std::function<std::string()> make,
                         std::function<void(const std::string&)> warn)
    : path_(std::move(path)), triggers_(triggers), make_(std::move(make)), warn_(std::move(warn)) {}

MetricsFile::~MetricsFile() { Finish(); }

void MetricsFile::Start() {
  if (path_.empty()) return;
  // The first write may be hours away.
  const std::string folder = std::filesystem::absolute(path_).parent_path().string();
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    warn_(absl::StrCat("the metrics file ", path_, " cannot be written: '", folder,
                       "': ", std::strerror(errno)));
  } else if (std::filesystem::is_directory(path_)) {
    warn_(absl::StrCat("the metrics file ", path_, " cannot be written: it is a folder"));
  }
  writer_ = std::thread([this] { Run(); });
}

void MetricsFile::OnCapture() {
  if (path_.empty() || !triggers_.at_capture) return;
  MutexLock lock(mutex_);
  news_ = true;
  changed_.NotifyAll();
}

void MetricsFile::Finish() {
  if (!writer_.joinable()) return;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  writer_.join();
}

void MetricsFile::Run() {
  auto last = std::chrono::steady_clock::now();
  while (true) {
    bool news = false, stopping = false;
    {
      MutexLock lock(mutex_);
      while (!news_ && !stopping_) {
        if (triggers_.interval.count() == 0) {
          changed_.Wait(mutex_);
          continue;
        }
        const auto left = last + triggers_.interval - std::chrono::steady_clock::now();
        if (left <= left.zero() || !changed_.WaitFor(mutex_, left)) break;
      }
      news = std::exchange(news_, false);
      stopping = stopping_;
    }
    const bool due = triggers_.interval.count() > 0 &&
                     std::chrono::steady_clock::now() >= last + triggers_.interval;
    if (due) last = std::chrono::steady_clock::now();
    if (news || due || (stopping && triggers_.at_exit)) WhereMemoryAllows([&] { Write(); });
    if (stopping) return;
  }
}

absl::Status MetricsFile::WriteNow() const {
  const std::filesystem::path path = std::filesystem::absolute(path_);
  return WriteFileAtomically(path.parent_path().string(), path.filename().string(), make_());
}

void MetricsFile::Write() {
  const absl::Status written = WriteNow();
  if (written.ok()) {
    last_failure_.clear();
    return;
  }
  if (last_failure_ == written.message()) return;
  last_failure_ = std::string(written.message());
  warn_(absl::StrCat("the metrics file ", path_, " was not written: ", last_failure_));
}

}  // namespace reprise
