#include "server/repository/repository.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <optional>
#include <thread>

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

class NoEvents final : public ServerEvents {
 public:
  class NoModelEvents final : public ModelEvents {
    void OnQueueDepth(int64_t) override {}
    void OnBatch() override {}
    void OnRequest(const RequestRecord&) override {}
    void OnState(ModelState, const absl::Status&) override {}
  };
  std::unique_ptr<ModelEvents> ForModel(const std::string&, const std::string&) override {
    return std::make_unique<NoModelEvents>();
  }
  void OnUnknownModel(const RequestRecord&) override {}
};

// A repository in a temporary folder. The loader accepts every file that holds "good".
class RepositoryTest : public ::testing::Test {
 protected:
  RepositoryTest() {
    std::string pattern = (fs::temp_directory_path() / "repositoryXXXXXX").string();
    root = mkdtemp(pattern.data());
  }
  ~RepositoryTest() override { fs::remove_all(root); }

  void Write(const fs::path& path, const std::string& text) {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  }

  static absl::StatusOr<std::shared_ptr<const Servable>> Load(const ModelVersion& version,
                                                              const std::string& folder,
                                                              const ModelSettings& settings,
                                                              const NewWeights& weights) {
    std::ifstream file(fs::path(folder) / settings.model_filename);
    std::string word;
    file >> word;
    if (word != "good") return absl::InvalidArgumentError("the file is \"" + word + "\"");
    auto servable = std::make_shared<Servable>();
    servable->settings = settings;
    return servable;
  }

  std::unique_ptr<Repository> Start(std::vector<std::string> folders = {}) {
    if (folders.empty()) folders = {root.string()};
    std::promise<void> settled;
    auto repository = std::make_unique<Repository>(
        Repository::Options{.folders = std::move(folders),
                            .threads = 2,
                            .on_settled = [&settled] { settled.set_value(); }},
        Load, events);
    const absl::Status status = repository->Start();
    EXPECT_TRUE(status.ok()) << status;
    settled.get_future().wait();
    return repository;
  }

  // "name/version" of every listed version, with "!" if it is not ready.
  static std::vector<std::string> Names(const Repository& repository) {
    std::vector<std::string> names;
    for (const Repository::Listed& listed : repository.List()) {
      names.push_back(listed.version->name + "/" + listed.version->version +
                      (listed.state == ModelState::kReady ? "" : "!"));
    }
    return names;
  }

  fs::path root;
  NoEvents events;
};

TEST_F(RepositoryTest, LatestVersionIsServedByDefault) {
  Write("bert/1/model.onnx", "good");
  Write("bert/10/model.onnx", "good");
  Write("bert/9/model.onnx", "good");
  auto repository = Start();
  EXPECT_THAT(Names(*repository), ElementsAre("bert/10"));
  auto found = repository->Find("bert", "");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->version->version, "10");
}

TEST_F(RepositoryTest, WhatIsLeftToDoIsDoneOnceTheVersionIsServed) {
  Write("bad/1/model.onnx", "broken");
  Write("bert/1/model.onnx", "good");
  std::promise<bool> found_ready;
  Repository* served = nullptr;
  Repository repository(
      {.folders = {root.string()},
       .after_ready =
           [&](const Servable&) { found_ready.set_value(served->Find("bert", "").ok()); }},
      Load, events);
  served = &repository;
  ASSERT_TRUE(repository.Start().ok());
  EXPECT_TRUE(found_ready.get_future().get());
}

TEST_F(RepositoryTest, VersionPolicyIsHonoured) {
  for (const char* model : {"all", "two", "some"}) {
    for (const char* version : {"1", "2", "3"}) {
      Write(fs::path(model) / version / "model.onnx", "good");
    }
  }
  Write("all/config.pbtxt", "version_policy { all {} }");
  Write("two/config.pbtxt", "version_policy { latest { num_versions: 2 } }");
  Write("some/config.pbtxt", "version_policy { specific { versions: [ 3, 1 ] } }");
  auto repository = Start();
  EXPECT_THAT(Names(*repository),
              ElementsAre("all/1", "all/2", "all/3", "some/1", "some/3", "two/2", "two/3"));
}

TEST_F(RepositoryTest, WhatFailsToLoadStopsNoOther) {
  Write("bad/1/model.onnx", "broken");
  Write("good/1/model.onnx", "good");
  Write("empty/readme", "");
  Write("misconfigured/2/model.onnx", "good");
  Write("misconfigured/config.pbtxt", "no_such_field: 1");
  Write(".hidden/1/model.onnx", "good");
  auto repository = Start();
  EXPECT_THAT(Names(*repository), ElementsAre("bad/1!", "empty/!", "good/1", "misconfigured/2!"));
  const struct {
    const char* name;
    const char* reason;
  } cases[] = {{"bad", "the file is \"broken\""},
               {"empty", "has no version"},
               {"misconfigured", "no_such_field"}};
  for (const auto& test : cases) {
    auto found = repository->Find(test.name, "");
    EXPECT_EQ(found.status().code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(found.status().message()), HasSubstr(test.reason));
  }
}

TEST_F(RepositoryTest, NewestReadyVersionAnswersWhereTheNewestIsRefused) {
  Write("bert/1/model.onnx", "good");
  Write("bert/2/model.onnx", "broken");
  Write("bert/config.pbtxt", "version_policy { all {} }");
  auto repository = Start();
  auto found = repository->Find("bert", "");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->version->version, "1");
}

TEST_F(RepositoryTest, UnknownModelAndVersionAreNotFoundByName) {
  Write("bert/1/model.onnx", "good");
  auto repository = Start();
  auto model = repository->Find("tert", "");
  EXPECT_EQ(model.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("\"tert\""));
  for (const char* version : {"2", "01", "one", "-1"}) {
    auto found = repository->Find("bert", version);
    EXPECT_EQ(found.status().code(), absl::StatusCode::kNotFound) << version;
    EXPECT_THAT(std::string(found.status().message()), HasSubstr("served are 1"));
  }
}

TEST_F(RepositoryTest, SymbolicLinksAreFollowed) {
  Write("elsewhere/files/model.onnx", "good");
  fs::create_directories(root / "models" / "bert");
  fs::create_directory_symlink(root / "elsewhere" / "files", root / "models" / "bert" / "1");
  fs::create_directory_symlink(root / "models" / "bert", root / "models" / "link");
  auto repository = Start({(root / "models").string()});
  EXPECT_THAT(Names(*repository), ElementsAre("bert/1", "link/1"));
}

TEST_F(RepositoryTest, NameInTwoRepositoriesIsRefused) {
  Write("a/bert/1/model.onnx", "good");
  Write("b/bert/1/model.onnx", "good");
  auto repository = Start({(root / "a").string(), (root / "b").string()});
  EXPECT_THAT(Names(*repository), ElementsAre("bert/!"));
}

TEST_F(RepositoryTest, NameThatIsNotUtf8IsRefusedAndShownEscaped) {
  Write("caf\xe9/1/model.onnx", "good");
  Write("caf\xc3\xa9/1/model.onnx", "good");
  auto repository = Start();
  EXPECT_THAT(Names(*repository), ElementsAre("caf\\xe9/1!", "caf\xc3\xa9/1"));
  EXPECT_THAT(std::string(repository->Find("caf\\xe9", "").status().message()),
              HasSubstr("the name on disk is not UTF-8"));
}

TEST_F(RepositoryTest, EmptyRepositorySettlesAtOnce) {
  auto repository = Start();
  EXPECT_THAT(Names(*repository), ElementsAre());
}

TEST_F(RepositoryTest, MissingFolderIsAnError) {
  Repository repository({.folders = {(root / "nowhere").string()}}, Load, events);
  EXPECT_EQ(repository.Start().code(), absl::StatusCode::kNotFound);
}

TEST_F(RepositoryTest, SixHundredModelsAreAllLoaded) {
  for (int i = 0; i < 600; ++i) Write("m" + std::to_string(i) + "/1/model.onnx", "good");
  auto repository = Start();
  EXPECT_EQ(repository->List().size(), 600u);
  EXPECT_TRUE(repository->Find("m599", "1").ok());
}

TEST_F(RepositoryTest, ConfiguredFileNameIsUsed) {
  Write("bert/1/bert.onnx", "good");
  Write("bert/config.pbtxt", "default_model_filename: \"bert.onnx\"");
  EXPECT_THAT(Names(*Start()), ElementsAre("bert/1"));
}

// Returns the status with which `ask(done)` ends.
template <typename Ask>
absl::Status Outcome(Ask ask) {
  std::promise<absl::Status> ended;
  ask([&](const absl::Status& status) { ended.set_value(status); });
  return ended.get_future().get();
}

class ExplicitRepositoryTest : public RepositoryTest {
 protected:
  std::unique_ptr<Repository> StartExplicit(std::vector<std::string> load = {}) {
    auto repository =
        std::make_unique<Repository>(Repository::Options{.folders = {root.string()},
                                                         .control = ModelControl::kExplicit,
                                                         .load_at_start = std::move(load),
                                                         .threads = 2},
                                     RepositoryTest::Load, events);
    EXPECT_TRUE(repository->Start().ok());
    return repository;
  }
  static absl::Status Load(Repository& repository, const std::string& name,
                           std::optional<std::string> config = std::nullopt) {
    return Outcome([&](auto done) { repository.Load(name, std::move(config), std::move(done)); });
  }
  static absl::Status Unload(Repository& repository, const std::string& name) {
    return Outcome([&](auto done) { repository.Unload(name, std::move(done)); });
  }
};

TEST_F(ExplicitRepositoryTest, ModelsWaitUntilTheyAreAskedFor) {
  Write("a/1/model.onnx", "good");
  Write("b/1/model.onnx", "good");
  auto repository = StartExplicit();
  EXPECT_THAT(Names(*repository), ElementsAre("a/1!", "b/1!"));
  EXPECT_EQ(repository->Find("a", "").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Load(*repository, "a").ok());
  EXPECT_THAT(Names(*repository), ElementsAre("a/1", "b/1!"));
  EXPECT_TRUE(Unload(*repository, "a").ok());
  EXPECT_THAT(Names(*repository), ElementsAre("a/1!", "b/1!"));
  EXPECT_TRUE(Unload(*repository, "a").ok());
  EXPECT_EQ(Load(*repository, "c").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Unload(*repository, "c").code(), absl::StatusCode::kNotFound);
}

TEST_F(ExplicitRepositoryTest, ModelThatCameLaterIsFound) {
  auto repository = StartExplicit();
  Write("a/1/model.onnx", "good");
  EXPECT_TRUE(Load(*repository, "a").ok());
  EXPECT_THAT(Names(*repository), ElementsAre("a/1"));
}

TEST_F(ExplicitRepositoryTest, UnchangedVersionIsNotLoadedAgain) {
  Write("a/1/model.onnx", "good");
  auto repository = StartExplicit();
  ASSERT_TRUE(Load(*repository, "a").ok());
  const Servable* before = repository->Find("a", "")->servable.get();
  ASSERT_TRUE(Load(*repository, "a").ok());
  EXPECT_EQ(repository->Find("a", "")->servable.get(), before);
  ASSERT_TRUE(Load(*repository, "a", "max_batch_size: 7").ok());
  EXPECT_EQ(repository->Find("a", "")->servable->settings.config.max_batch_size(), 7);
}

TEST_F(ExplicitRepositoryTest, SuccessorThatFailsChangesNothing) {
  Write("a/1/model.onnx", "good");
  auto repository = StartExplicit();
  ASSERT_TRUE(Load(*repository, "a").ok());
  const Servable* before = repository->Find("a", "")->servable.get();
  Write("a/1/model.onnx", "broken now");
  const absl::Status broken = Load(*repository, "a");
  EXPECT_EQ(broken.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(broken.message()), HasSubstr("model \"a\" version 1"));
  EXPECT_EQ(repository->Find("a", "")->servable.get(), before);
  Write("a/1/model.onnx", "good");
  Write("a/2/model.onnx", "broken");
  EXPECT_FALSE(Load(*repository, "a").ok());
  EXPECT_EQ(repository->Find("a", "")->version->version, "1");
  Write("a/2/model.onnx", "good again");
  EXPECT_TRUE(Load(*repository, "a").ok());
  EXPECT_THAT(Names(*repository), ElementsAre("a/2"));
}

TEST_F(ExplicitRepositoryTest, UnloadWaitsForThoseThatUseTheModel) {
  Write("a/1/model.onnx", "good");
  auto repository = StartExplicit({"a"});
  while (!repository->Find("a", "").ok()) std::this_thread::yield();
  auto used = repository->Find("a", "");
  std::promise<absl::Status> ended;
  auto unloaded = ended.get_future();
  repository->Unload("a", [&](const absl::Status& status) { ended.set_value(status); });
  while (repository->Find("a", "").ok()) std::this_thread::yield();
  EXPECT_EQ(unloaded.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  const std::weak_ptr<const Servable> left = used->servable;
  used = absl::CancelledError("done with it");
  EXPECT_TRUE(unloaded.get().ok());
  EXPECT_TRUE(left.expired());
}

TEST_F(ExplicitRepositoryTest, WhatIsAskedOfOneModelIsDoneInOrder) {
  Write("a/1/model.onnx", "good");
  auto repository = StartExplicit();
  std::vector<std::future<absl::Status>> ended;
  std::vector<std::promise<absl::Status>> promises(100);
  for (size_t i = 0; i < promises.size(); ++i) {
    ended.push_back(promises[i].get_future());
    const auto done = [&promise = promises[i]](const absl::Status& status) {
      promise.set_value(status);
    };
    if (i % 2 == 0) {
      repository->Load("a", std::nullopt, done);
    } else {
      repository->Unload("a", done);
    }
  }
  for (auto& one : ended) EXPECT_TRUE(one.get().ok());
  EXPECT_THAT(Names(*repository), ElementsAre("a/1!"));
}

TEST_F(ExplicitRepositoryTest, WhoStillWaitsAtTheEndIsTold) {
  Write("a/1/model.onnx", "good");
  auto repository = StartExplicit();
  std::vector<absl::Status> ended;
  Mutex mutex;
  std::promise<void> asked;
  const std::shared_future<void> all_asked = asked.get_future().share();
  for (int i = 0; i < 50; ++i) {
    repository->Load("a", std::to_string(i), [&, all_asked](const absl::Status& status) {
      all_asked.wait();
      MutexLock lock(mutex);
      ended.push_back(status);
    });
  }
  asked.set_value();
  repository->Stop();
  EXPECT_EQ(ended.size(), 50u);
  EXPECT_EQ(ended.back().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Load(*repository, "a").code(), absl::StatusCode::kUnavailable);
}

TEST_F(RepositoryTest, OtherModesRefuseToLoadByName) {
  Write("a/1/model.onnx", "good");
  auto repository = Start();
  const absl::Status refused =
      Outcome([&](auto done) { repository->Load("a", std::nullopt, std::move(done)); });
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("is none"));
}

TEST_F(RepositoryTest, MissingModelOfTheStartIsAnErrorByName) {
  Repository repository({.folders = {root.string()},
                         .control = ModelControl::kExplicit,
                         .load_at_start = {"nothing"}},
                        Load, events);
  const absl::Status started = repository.Start();
  EXPECT_EQ(started.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(started.message()), HasSubstr("nothing"));
}

TEST_F(RepositoryTest, PolledFoldersAreFollowed) {
  Write("a/1/model.onnx", "good");
  Repository repository({.folders = {root.string()},
                         .control = ModelControl::kPoll,
                         .poll_time = std::chrono::milliseconds(5)},
                        Load, events);
  ASSERT_TRUE(repository.Start().ok());
  const auto wait_for = [&](const std::vector<std::string>& names) {
    for (int i = 0; i < 20000 && Names(repository) != names; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(Names(repository), names);
  };
  wait_for({"a/1"});
  Write("b/1/model.onnx", "good");
  wait_for({"a/1", "b/1"});
  Write("a/3/model.onnx", "broken");
  wait_for({"a/1", "a/3!", "b/1"});
  Write("a/3/model.onnx", "good");
  wait_for({"a/3", "b/1"});
  fs::remove_all(root / "a");
  wait_for({"b/1"});
}

}  // namespace
}  // namespace reprise
