#include "server/core/repository.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <future>

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
                                                              const ModelSettings& settings) {
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

}  // namespace
}  // namespace reprise
