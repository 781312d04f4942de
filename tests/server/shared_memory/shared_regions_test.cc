// Regions of shared memory: their backing objects, and reads after their client truncates them.
#include "server/shared_memory/shared_regions.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;

// An object of shared memory, as a client makes one.
class Object {
 public:
  explicit Object(int64_t bytes)
      : key_(absl::StrCat("/reprise-unit-", getpid(), "-", counter_++)),
        descriptor_(shm_open(key_.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600)) {
    Resize(bytes);
  }
  ~Object() {
    close(descriptor_);
    Unlink();
  }
  const std::string& key() const { return key_; }
  void Unlink() { shm_unlink(key_.c_str()); }
  void Resize(int64_t bytes) { ASSERT_EQ(ftruncate(descriptor_, bytes), 0); }
  int64_t bytes() const {
    struct stat status = {};
    fstat(descriptor_, &status);
    return status.st_size;
  }
  void Put(int64_t offset, const std::string& bytes) {
    ASSERT_EQ(pwrite(descriptor_, bytes.data(), bytes.size(), offset), std::ssize(bytes));
  }
  std::string Get(int64_t offset, size_t size) const {
    std::string bytes(size, ' ');
    EXPECT_EQ(pread(descriptor_, bytes.data(), size, offset), static_cast<ssize_t>(size));
    return bytes;
  }

 private:
  static inline int counter_ = 0;
  const std::string key_;
  const int descriptor_;
};

std::shared_ptr<SharedRegion> Open(const Object& object, int64_t offset, int64_t bytes) {
  auto region =
      SharedRegion::Open({.name = "frames", .key = object.key(), .offset = offset, .bytes = bytes});
  EXPECT_TRUE(region.ok()) << region.status();
  return *region;
}

void ExpectError(const absl::Status& status, absl::StatusCode code, const std::string& text) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(text));
}

TEST(SharedRegionTest, ReadsAndWritesItsPartOfTheObjectAlone) {
  Object object(64);
  object.Put(0, std::string(64, '.'));
  object.Put(8, "12345678");
  const auto region = Open(object, 8, 16);
  std::string bytes(4, ' ');
  ASSERT_TRUE(region->Read(2, absl::MakeSpan(bytes.data(), bytes.size())).ok());
  EXPECT_EQ(bytes, "3456");
  ASSERT_TRUE(region->Write(12, "abcd").ok());
  EXPECT_EQ(object.Get(0, 64), "........12345678....abcd" + std::string(40, '.'));
  ExpectError(region->Write(13, "abcd"), absl::StatusCode::kInvalidArgument,
              "has 16 bytes, the request needs 4 from offset 13 on");
  ExpectError(region->CheckRange(INT64_MAX, 1), absl::StatusCode::kInvalidArgument, "has 16 bytes");
  ExpectError(region->CheckRange(-1, 1), absl::StatusCode::kInvalidArgument, "has 16 bytes");
}

TEST(SharedRegionTest, OutlivesTheNameOfItsObject) {
  Object object(64);
  object.Put(0, "1234");
  const auto region = Open(object, 0, 64);
  object.Unlink();
  std::string bytes(4, ' ');
  EXPECT_TRUE(region->Read(0, absl::MakeSpan(bytes.data(), bytes.size())).ok());
  EXPECT_EQ(bytes, "1234");
}

TEST(SharedRegionTest, WhatIsCutAwayIsAnErrorAndDoesNotGrowBack) {
  Object object(64);
  const auto region = Open(object, 16, 48);
  object.Resize(40);
  std::string bytes(48, ' ');
  EXPECT_TRUE(region->Read(0, absl::MakeSpan(bytes.data(), 24)).ok());
  ExpectError(region->Read(0, absl::MakeSpan(bytes.data(), 25)),
              absl::StatusCode::kFailedPrecondition, "it has 40 bytes now, the request needs 41");
  ExpectError(region->Write(0, bytes), absl::StatusCode::kFailedPrecondition,
              "it has 40 bytes now, the request needs 64");
  EXPECT_EQ(object.bytes(), 40);
}

TEST(SharedRegionTest, KeysThatAreNoNamesAreRefused) {
  for (const char* key : {"", "/", "a/b", "/a/../b", "..", "/."}) {
    ExpectError(SharedRegion::Open({.name = "r", .key = key, .bytes = 1}).status(),
                absl::StatusCode::kInvalidArgument, "is not a name of shared memory");
  }
  ExpectError(SharedRegion::Open({.name = "r", .key = "/reprise-nothing", .bytes = 1}).status(),
              absl::StatusCode::kNotFound, "reprise-nothing");
}

TEST(SharedRegionTest, ObjectsThatAreTooSmallAreRefusedWithBothSizes) {
  Object object(64);
  ExpectError(
      SharedRegion::Open({.name = "r", .key = object.key(), .offset = 60, .bytes = 5}).status(),
      absl::StatusCode::kInvalidArgument, "it has 64 bytes, offset 60 and byte_size 5 need 65");
  for (const int64_t bytes : {int64_t{0}, int64_t{-1}, INT64_MAX}) {
    ExpectError(SharedRegion::Open({.name = "r", .key = object.key(), .offset = 1, .bytes = bytes})
                    .status(),
                absl::StatusCode::kInvalidArgument, absl::StrCat("byte_size is ", bytes));
  }
}

TEST(SharedRegionsTest, NamesAreTakenOnceAndFreeAgainAfterwards) {
  Object object(64);
  SharedRegions regions(nullptr);
  const RegionInfo info = {.name = "frames", .key = object.key(), .bytes = 64};
  ASSERT_TRUE(regions.Register(info).ok());
  ExpectError(regions.Register(info), absl::StatusCode::kAlreadyExists, object.key());
  const auto held = regions.Find("frames");
  ASSERT_TRUE(held.ok());
  regions.Unregister("frames");
  ExpectError(regions.Find("frames").status(), absl::StatusCode::kNotFound, "registered: none");
  EXPECT_TRUE((*held)->Write(0, "still there").ok());
  EXPECT_TRUE(regions.Register(info).ok());
  EXPECT_EQ(regions.List("")->size(), 1u);
  ExpectError(regions.List("other").status(), absl::StatusCode::kNotFound, "frames");
  regions.UnregisterAll();
  EXPECT_TRUE(regions.List("")->empty());
}

TEST(SharedRegionsTest, ThereIsABoundOnHowManyThereAre) {
  Object object(1);
  SharedRegions regions(nullptr);
  for (size_t i = 0; i < SharedRegions::kMostRegions; ++i) {
    const absl::Status made =
        regions.Register({.name = absl::StrCat(i), .key = object.key(), .bytes = 1});
    if (!made.ok()) {  // the system allows fewer descriptors
      ExpectError(made, absl::StatusCode::kResourceExhausted, "cannot be opened");
      return;
    }
  }
  ExpectError(regions.Register({.name = "more", .key = object.key(), .bytes = 1}),
              absl::StatusCode::kResourceExhausted, "1024");
}

}  // namespace
}  // namespace reprise
