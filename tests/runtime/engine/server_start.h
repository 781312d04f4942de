// One start of a server on a folder that stays: an engine with a recipe store, one model, one
// stream.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/recipe/store.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise {

// The folder that starts share: `model.onnx`, and the files of the stores.
class StartFolder {
 public:
  explicit StartFolder(const std::string& model_bytes) { folder_.Write("model.onnx", model_bytes); }

  const std::filesystem::path& path() const { return folder_.path(); }

  // Returns the files of one kind of record in the store.
  std::vector<std::filesystem::path> Files(const std::string& kind) const {
    std::vector<std::filesystem::path> files;
    for (const auto& file : std::filesystem::directory_iterator(path() / "store")) {
      if (file.path().filename().string().rfind(kind, 0) == 0) files.push_back(file.path());
    }
    return files;
  }

 private:
  const TempFolder folder_;
};

class ServerStart {
 public:
  struct Options {
    ModelOptions model;  // its path is the folder's
    std::string store = "store";
    CapturePool* captures = nullptr;  // whose jobs are done before the start goes; stopped then
    bool frozen = false;
  };

  ServerStart(const StartFolder& folder, Options options) : captures_(options.captures) {
    auto opened = RecipeStore::Open({.folder = folder.path() / options.store});
    EXPECT_TRUE(opened.ok()) << opened.status();
    store = *std::move(opened);
    engine.emplace(EngineOptions{.device = &device,
                                 .clock = &clock,
                                 .cores = &cores,
                                 .store = store.get(),
                                 .captures = options.captures,
                                 .frozen = options.frozen,
                                 .log =
                                     [this](const std::string& line) {
                                       MutexLock lock(mutex_);
                                       log_.push_back(line);
                                       logged_.NotifyAll();
                                     }},
                   observer);
    options.model.path = folder.path() / "model.onnx";
    auto loaded = engine->Load(std::move(options.model));
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    model = *loaded;
    stream = *Stream::Create({.cores = &cores});
  }
  ~ServerStart() { End(); }
  ServerStart(const ServerStart&) = delete;

  // Stops everything that runs, and finishes pending writes.
  void End() {
    if (captures_ != nullptr) std::exchange(captures_, nullptr)->Stop();
    model.reset();
    store->WritePending();
  }

  Response Run(const Request& request) { return Run(request, *stream); }
  Response Run(const Request& request, Stream& on) {
    Response response = engine->RunOne(*model, request, on);
    EXPECT_TRUE(response.status.ok()) << response.status;
    return response;
  }

  // Returns the lines of the log that have `what` in them.
  std::vector<std::string> Logged(const std::string& what) const {
    MutexLock lock(mutex_);
    return LoggedLocked(what);
  }
  void WaitFor(const std::string& what, size_t count) const {
    MutexLock lock(mutex_);
    while (LoggedLocked(what).size() < count) logged_.Wait(mutex_);
  }

  SteadyClock clock;
  HelperPool cores{1};
  CpuDevice device{DetectIsa()};
  RememberingObserver observer;
  std::unique_ptr<RecipeStore> store;
  std::optional<Engine> engine;
  std::shared_ptr<Model> model;
  std::unique_ptr<Stream> stream;

 private:
  std::vector<std::string> LoggedLocked(const std::string& what) const REQUIRES(mutex_) {
    std::vector<std::string> lines;
    for (const std::string& line : log_) {
      if (line.find(what) != std::string::npos) lines.push_back(line);
    }
    return lines;
  }

  CapturePool* captures_;
  mutable Mutex mutex_;
  mutable CondVar logged_;
  std::vector<std::string> log_ GUARDED_BY(mutex_);
};

}  // namespace reprise
