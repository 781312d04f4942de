#include "runtime/recipe/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "proto/recipe.pb.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

RecordName NameOf(uint64_t key) {
  return {.kind = RecordKind::kRecipe,
          .key = key,
          .graph = 1,
          .subject = key,
          .device = 3,
          .origin = 4,
          .compiler = 5};
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class RecipeStoreTest : public testing::Test {
 protected:
  std::unique_ptr<RecipeStore> Open(int64_t max_bytes = 1 << 20) {
    auto store = RecipeStore::Open(
        {.folder = folder_, .max_bytes = max_bytes, .log = [this](const std::string& line) {
           log_.push_back(line);
         }});
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }

  const TempFolder temp_;
  const std::string folder_ = temp_.File("store");
  std::vector<std::string> log_;
};

TEST_F(RecipeStoreTest, WhatIsWrittenIsFoundByTheNextDaemon) {
  ASSERT_TRUE(Open()->Write(NameOf(1), 100, "payload").ok());
  EXPECT_EQ(Open()->Read(NameOf(1)).payload, "payload");
}

TEST_F(RecipeStoreTest, QueuedWritesAreDoneBeforeTheStoreIsGone) {
  Open()->WriteLater(NameOf(1), 100, "payload");
  EXPECT_EQ(Open()->Read(NameOf(1)).payload, "payload");
}

TEST_F(RecipeStoreTest, WriterThreadFinishesWhatIsQueuedWhenItIsStopped) {
  const auto store = Open();
  store->StopWriter();
  for (uint64_t key = 0; key < 20; ++key) store->WriteLater(NameOf(key), 100, "payload");
  std::thread([&] { store->RunWriter(); }).join();
  EXPECT_EQ(store->GetStats().entries, 20);
  EXPECT_EQ(store->GetStats().pending, 0);
}

TEST_F(RecipeStoreTest, EmptyStoreMissesAsAbsent) {
  const auto found = Open()->Read(NameOf(1));
  EXPECT_FALSE(found.payload.has_value());
  EXPECT_EQ(found.miss, StoreMiss::kAbsent);
}

TEST_F(RecipeStoreTest, AbsenceSaysWhatElseIsThere) {
  const auto store = Open();
  ASSERT_TRUE(store->Write(NameOf(1), 100, "payload").ok());
  RecordName other = NameOf(1);
  other.key = 99;
  other.device = 77;
  EXPECT_EQ(store->Read(other).miss, StoreMiss::kOtherDevice);
  other = NameOf(1);
  other.key = 99;
  other.compiler = 77;
  EXPECT_EQ(store->Read(other).miss, StoreMiss::kOtherCompiler);
  other = NameOf(1);
  other.key = 99;
  other.graph = 77;
  EXPECT_EQ(store->Read(other).miss, StoreMiss::kOtherGraph);
  other.origin = 77;  // another model's graph
  EXPECT_EQ(store->Read(other).miss, StoreMiss::kAbsent);
  other = NameOf(2);
  EXPECT_EQ(store->Read(other).miss, StoreMiss::kAbsent);
}

TEST_F(RecipeStoreTest, RecordIsFoundWhicheverModelHadItStoredAndIsKeptOnce) {
  const auto store = Open();
  ASSERT_TRUE(store->Write(NameOf(1), 100, "payload").ok());
  RecordName other = NameOf(1);
  other.origin = 77;
  EXPECT_TRUE(store->Has(other));
  EXPECT_EQ(store->Read(other).payload, "payload");
  ASSERT_TRUE(store->Write(other, 100, "better").ok());
  EXPECT_EQ(store->Read(NameOf(1)).payload, "better");
  ASSERT_TRUE(
      store->Update(other, 100, [](const std::string& before) { return before + "!"; }).ok());
  EXPECT_EQ(store->Read(NameOf(1)).payload, "better!");
  EXPECT_EQ(store->GetStats().entries, 1);
  store->WriteLater(NameOf(1), 100, "one");
  store->WriteLater(other, 100, "two");
  EXPECT_EQ(store->GetStats().pending, 1);
  store->WritePending();
  EXPECT_EQ(store->Read(NameOf(1)).payload, "two");
}

TEST_F(RecipeStoreTest, EveryFlippedByteOfAFileIsAMiss) {
  const auto store = Open();
  ASSERT_TRUE(store->Write(NameOf(1), 100, "what was found out").ok());
  const std::string path = folder_ + "/" + NameOf(1).file();
  const std::string good = ReadFile(path);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(~bad[i]);
    std::ofstream(path, std::ios::binary) << bad;
    const auto found = store->Read(NameOf(1));
    EXPECT_FALSE(found.payload.has_value()) << i;
    EXPECT_THAT(found.miss, testing::AnyOf(StoreMiss::kCorrupt, StoreMiss::kOtherFormat)) << i;
    EXPECT_FALSE(found.detail.empty()) << i;
  }
  EXPECT_GE(store->GetStats().corrupt, static_cast<int64_t>(good.size()) - 4);
}

TEST_F(RecipeStoreTest, EveryTruncationOfAFileIsAMiss) {
  const auto store = Open();
  ASSERT_TRUE(store->Write(NameOf(1), 100, "what was found out").ok());
  const std::string path = folder_ + "/" + NameOf(1).file();
  const std::string good = ReadFile(path);
  for (size_t length = 0; length < good.size(); ++length) {
    std::ofstream(path, std::ios::binary) << good.substr(0, length);
    EXPECT_EQ(store->Read(NameOf(1)).miss, StoreMiss::kCorrupt) << length;
  }
  // It is written again over the damaged one.
  ASSERT_TRUE(store->Write(NameOf(1), 100, "again").ok());
  EXPECT_EQ(store->Read(NameOf(1)).payload, "again");
}

TEST_F(RecipeStoreTest, RecordsWithoutAMacByTheKeyAreNotUsedAndAreCounted) {
  const auto open = [&](char key) {
    const RecordMac mac = [key](absl::string_view bytes) {
      return std::string(kMacBytes, static_cast<char>(key + bytes.size()));
    };
    return *RecipeStore::Open({.folder = folder_,
                               .mac = mac,
                               .log = [this](const std::string& line) { log_.push_back(line); }});
  };
  ASSERT_TRUE(Open()->Write(NameOf(1), 100, "payload").ok());
  const auto store = open('a');
  EXPECT_EQ(store->Read(NameOf(1)).miss, StoreMiss::kUnauthentic);
  EXPECT_EQ(store->GetStats().unauthentic, 1);
  EXPECT_EQ(store->GetStats().corrupt, 0);
  ASSERT_EQ(log_.size(), 1);
  EXPECT_THAT(log_[0], AllOf(HasSubstr(NameOf(1).file()), HasSubstr("no MAC")));
  ASSERT_TRUE(store->Write(NameOf(1), 100, "signed").ok());
  EXPECT_EQ(store->Read(NameOf(1)).payload, "signed");
  EXPECT_EQ(open('b')->Read(NameOf(1)).miss, StoreMiss::kUnauthentic);
  EXPECT_EQ(Open()->Read(NameOf(1)).payload, "signed");
  // Usage of others is not built upon.
  RecordName usage = NameOf(2);
  usage.kind = RecordKind::kUsage;
  ASSERT_TRUE(Open()->Write(usage, 100, "theirs").ok());
  ASSERT_TRUE(
      store->Update(usage, 100, [](const std::string& before) { return before + "ours"; }).ok());
  EXPECT_EQ(store->Read(usage).payload, "ours");
}

TEST_F(RecipeStoreTest, RecordUnderAnotherKindsNameIsForeign) {
  const auto store = Open();
  RecordName model = NameOf(1);
  model.kind = RecordKind::kModel;
  ASSERT_TRUE(store->Write(model, 100, "payload").ok());
  std::filesystem::rename(folder_ + "/" + model.file(), folder_ + "/" + NameOf(1).file());
  EXPECT_EQ(store->Read(NameOf(1)).miss, StoreMiss::kForeign);
}

TEST_F(RecipeStoreTest, FolderWithoutWriteBitsIsServedFromAndNeverWritten) {
  ASSERT_TRUE(Open()->Write(NameOf(1), 100, "payload").ok());
  std::filesystem::permissions(
      folder_, std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  const auto before = std::filesystem::last_write_time(folder_);
  {
    const auto store = Open();
    EXPECT_FALSE(store->writable());
    EXPECT_EQ(store->Read(NameOf(1)).payload, "payload");
    store->WriteLater(NameOf(2), 100, "payload");
    store->WritePending();
    EXPECT_TRUE(absl::IsPermissionDenied(store->Write(NameOf(2), 100, "payload")));
    EXPECT_TRUE(absl::IsPermissionDenied(store->Prune(0, true).status()));
    EXPECT_TRUE(store->Update(NameOf(2), 1, [](const std::string&) { return ""; }).ok());
    EXPECT_EQ(store->GetStats().entries, 1);
    EXPECT_TRUE(store->GetStats().usable);
  }
  EXPECT_EQ(std::filesystem::last_write_time(folder_), before);
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(RecipeStoreTest, FolderThatCannotBeMadeIsAnError) {
  EXPECT_TRUE(absl::IsNotFound(RecipeStore::Open({.folder = "/nowhere/at/all"}).status()));
  std::ofstream(folder_) << "a file";
  EXPECT_TRUE(absl::IsNotFound(RecipeStore::Open({.folder = folder_}).status()));
}

TEST_F(RecipeStoreTest, FolderThatVanishesIsAMissAndAWarningOnce) {
  const auto store = Open();
  std::filesystem::remove_all(folder_);
  EXPECT_FALSE(store->Read(NameOf(1)).payload.has_value());
  for (int i = 0; i < 3; ++i) {
    store->WriteLater(NameOf(1), 100, "payload");
    store->WritePending();
  }
  EXPECT_EQ(log_.size(), 1u);
  EXPECT_EQ(store->GetStats().write_failures, 3);
  EXPECT_FALSE(store->GetStats().usable);
}

TEST_F(RecipeStoreTest, LeastValuableRecordsGoWhenTheStoreIsFull) {
  const std::string payload(1000, 'x');
  const auto store = Open(3 * (1000 + static_cast<int64_t>(kRecordHeaderBytes)) + 500);
  recipe::v1::StoredUsage usage;
  auto* use = usage.add_recipes();
  use->set_key(1);
  use->set_uses(1000);
  RecordName usage_name = NameOf(50);
  usage_name.kind = RecordKind::kUsage;
  ASSERT_TRUE(store->Write(usage_name, 1'000'000'000, usage.SerializeAsString()).ok());
  ASSERT_TRUE(store->Write(NameOf(1), 10, payload).ok());   // cheap, but used
  ASSERT_TRUE(store->Write(NameOf(2), 20, payload).ok());   // cheap and unused
  ASSERT_TRUE(store->Write(NameOf(3), 500, payload).ok());  // costly
  ASSERT_TRUE(store->Write(NameOf(4), 400, payload).ok());
  EXPECT_TRUE(store->Read(NameOf(1)).payload.has_value());
  EXPECT_FALSE(store->Read(NameOf(2)).payload.has_value());
  EXPECT_TRUE(store->Read(NameOf(3)).payload.has_value());
  EXPECT_TRUE(store->Read(NameOf(4)).payload.has_value());
  EXPECT_EQ(store->GetStats().evictions, 1);
  EXPECT_LE(store->GetStats().bytes, store->GetStats().max_bytes);
}

TEST_F(RecipeStoreTest, RecordLargerThanTheStoreIsRefused) {
  const auto store = Open(1000);
  const absl::Status status = store->Write(NameOf(1), 1, std::string(2000, 'x'));
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("1000"));
}

TEST_F(RecipeStoreTest, PruneRemovesDamagedFilesAndKeepsOthers) {
  const auto store = Open();
  ASSERT_TRUE(store->Write(NameOf(1), 100, "payload").ok());
  std::ofstream(folder_ + "/" + NameOf(2).file()) << "damaged";
  std::ofstream(folder_ + "/foreign.rps") << "not ours";
  std::ofstream(folder_ + "/notes.txt") << "somebody's notes";
  const auto pruned = store->Prune(1 << 20, /*damaged_too=*/true);
  ASSERT_TRUE(pruned.ok()) << pruned.status();
  EXPECT_EQ(pruned->files, 2);
  EXPECT_TRUE(store->Read(NameOf(1)).payload.has_value());
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/notes.txt"));
}

TEST_F(RecipeStoreTest, UpdatesOfSeveralDaemonsAddUp) {
  constexpr int kDaemons = 4, kUpdates = 25;
  std::vector<pid_t> children;
  for (int d = 0; d < kDaemons; ++d) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto store = RecipeStore::Open({.folder = folder_});
      bool ok = store.ok();
      for (int i = 0; ok && i < kUpdates; ++i) {
        ok = (*store)
                 ->Update(NameOf(1), 1, [](const std::string& so_far) { return so_far + "x"; })
                 .ok() &&
             (*store)->Write(NameOf(100 + i), 1, std::string(1000, 'y')).ok();
      }
      _exit(ok ? 0 : 1);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  const auto store = Open();
  EXPECT_EQ(store->Read(NameOf(1)).payload, std::string(kDaemons * kUpdates, 'x'));
  for (int i = 0; i < kUpdates; ++i) {
    EXPECT_EQ(store->Read(NameOf(100 + i)).payload, std::string(1000, 'y'));
  }
}

}  // namespace
}  // namespace reprise
