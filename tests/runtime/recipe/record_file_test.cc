#include "runtime/recipe/record_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "runtime/recipe/record_name.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using testing::HasSubstr;

Record SomeRecord() {
  return {.kind = RecordKind::kModel, .rebuild_ns = 1234567, .payload = "what was found out"};
}

class RecordFileTest : public testing::Test {
 protected:
  size_t FilesInFolder() const {
    return std::distance(std::filesystem::directory_iterator(folder_), {});
  }

  const TempFolder temp_;
  const std::string folder_ = temp_.path().string();
};

TEST_F(RecordFileTest, WhatIsEncodedIsDecoded) {
  const auto record = DecodeRecord(EncodeRecord(SomeRecord()));
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->kind, RecordKind::kModel);
  EXPECT_EQ(record->rebuild_ns, 1234567);
  EXPECT_EQ(record->payload, "what was found out");
}

TEST_F(RecordFileTest, EveryFlippedBitIsNoticed) {
  const std::string good = EncodeRecord(SomeRecord());
  for (size_t i = 0; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] ^= static_cast<char>(1 << bit);
      EXPECT_FALSE(DecodeRecord(bad).ok()) << "byte " << i << ", bit " << bit;
    }
  }
}

TEST_F(RecordFileTest, EveryTruncationIsNoticed) {
  const std::string good = EncodeRecord(SomeRecord());
  for (size_t length = 0; length < good.size(); ++length) {
    const auto record = DecodeRecord(good.substr(0, length));
    EXPECT_EQ(RecordMissOf(record.status()), StoreMiss::kCorrupt) << length;
  }
  EXPECT_EQ(RecordMissOf(DecodeRecord(good + '\0').status()), StoreMiss::kCorrupt);
}

TEST_F(RecordFileTest, OtherFormatVersionIsNamed) {
  std::string other = EncodeRecord(SomeRecord());
  other[8] = 7;
  const absl::Status status = DecodeRecord(other).status();
  EXPECT_EQ(RecordMissOf(status), StoreMiss::kOtherFormat);
  EXPECT_THAT(std::string(status.message()), HasSubstr("7"));
}

TEST_F(RecordFileTest, WrittenFileIsReadBack) {
  ASSERT_TRUE(WriteFileAtomically(folder_, "a", "first").ok());
  ASSERT_TRUE(WriteFileAtomically(folder_, "a", "second").ok());
  EXPECT_EQ(*ReadWholeFile(folder_ + "/a", 100), "second");
  EXPECT_EQ(FilesInFolder(), 1u);
}

TEST_F(RecordFileTest, WhatCannotBeReadHasAStatus) {
  EXPECT_TRUE(absl::IsNotFound(ReadWholeFile(folder_ + "/none", 100).status()));
  EXPECT_TRUE(absl::IsDataLoss(ReadWholeFile(folder_, 100).status()));
  ASSERT_TRUE(WriteFileAtomically(folder_, "long", std::string(101, 'x')).ok());
  EXPECT_TRUE(absl::IsDataLoss(ReadWholeFile(folder_ + "/long", 100).status()));
  ASSERT_EQ(mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsDataLoss(ReadWholeFile(folder_ + "/pipe", 100).status()));
}

TEST_F(RecordFileTest, FullDiskLeavesTheOldFileAndNoOther) {
  ASSERT_TRUE(WriteFileAtomically(folder_, "a", "old").ok());
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 1000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = WriteFileAtomically(folder_, "a", std::string(5000, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(*ReadWholeFile(folder_ + "/a", 100), "old");
  EXPECT_EQ(FilesInFolder(), 1u);
}

TEST_F(RecordFileTest, OldTemporaryFilesAreSwept) {
  for (const char* name : {"/.tmp-1-old", "/.tmp-1-young", "/.tmp-1-ahead", "/kept"}) {
    std::ofstream(folder_ + name) << "x";
  }
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  std::filesystem::last_write_time(folder_ + "/.tmp-1-old", long_ago);
  std::filesystem::last_write_time(folder_ + "/kept", long_ago);
  // The clock was set back since.
  std::filesystem::last_write_time(folder_ + "/.tmp-1-ahead", long_ago + std::chrono::hours(2));
  SweepTemporaries(folder_);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/.tmp-1-ahead"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/.tmp-1-old"));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/.tmp-1-young"));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/kept"));
}

TEST(RecordNameTest, NameIsParsedFromItsFile) {
  const RecordName name = {.kind = RecordKind::kRecipe,
                           .key = 0x1234,
                           .graph = ~uint64_t{0},
                           .subject = 3,
                           .device = 4,
                           .origin = 5,
                           .compiler = 12};
  const auto parsed = RecordName::Parse(name.file());
  ASSERT_TRUE(parsed.has_value()) << name.file();
  EXPECT_EQ(*parsed, name);
}

TEST(RecordNameTest, OtherFileNamesAreNoRecords) {
  const std::string good = RecordName{}.file();
  EXPECT_FALSE(RecordName::Parse("").has_value());
  EXPECT_FALSE(RecordName::Parse("notes.rps").has_value());
  EXPECT_FALSE(RecordName::Parse(good + "~").has_value());
  EXPECT_FALSE(RecordName::Parse(good.substr(1)).has_value());
}

std::string MacBy(char key, absl::string_view bytes) {
  // Not a MAC, but as long as one, and of all bytes.
  std::string mac(kMacBytes, key);
  for (size_t i = 0; i < bytes.size(); ++i) mac[i % kMacBytes] ^= bytes[i];
  return mac;
}

TEST_F(RecordFileTest, MacIsLookedAtByReadersWithAKeyAlone) {
  const RecordMac mine = [](absl::string_view bytes) { return MacBy('a', bytes); };
  const RecordMac other = [](absl::string_view bytes) { return MacBy('b', bytes); };
  const Record record = {.kind = RecordKind::kUsage, .rebuild_ns = 7, .payload = "payload"};
  const std::string without = EncodeRecord(record), with = EncodeRecord(record, mine);
  for (const auto& decoded :
       {DecodeRecord(with), DecodeRecord(with, mine), DecodeRecord(without)}) {
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->payload, "payload");
  }
  for (const absl::Status& status :
       {DecodeRecord(without, mine).status(), DecodeRecord(with, other).status()}) {
    EXPECT_EQ(RecordMissOf(status), StoreMiss::kUnauthentic) << status;
  }
  for (size_t i = 0; i < with.size(); ++i) {
    std::string bad = with;
    bad[i] = static_cast<char>(~bad[i]);
    EXPECT_FALSE(DecodeRecord(bad, mine).ok()) << i;
    EXPECT_FALSE(DecodeRecord(with.substr(0, i), mine).ok()) << i;
  }
  EXPECT_EQ(RecordMissOf(DecodeRecord(with + '\0').status()), StoreMiss::kCorrupt);
}

}  // namespace
}  // namespace reprise
