#include "runtime/base/file_faults.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <optional>
#include <string>

namespace reprise {
namespace {

class FileFaultsTest : public testing::Test {
 protected:
  void SetUp() override {
    CatchFileFaults();
    std::string path = testing::TempDir() + "file_faultsXXXXXX";
    file_ = mkstemp(path.data());
    unlink(path.c_str());
    page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    ASSERT_EQ(write(file_, std::string(3 * page_, 'x').data(), 3 * page_),
              static_cast<ssize_t>(3 * page_));
    data_ = static_cast<const volatile char*>(
        mmap(nullptr, 3 * page_, PROT_READ, MAP_PRIVATE, file_, 0));
  }
  void TearDown() override {
    munmap(const_cast<char*>(data_), 3 * page_);
    close(file_);
  }

  int file_ = -1;
  size_t page_ = 0;
  const volatile char* data_ = nullptr;
};

TEST_F(FileFaultsTest, PagesThatAreGoneReadAsZerosAndAreToldOf) {
  const WatchedPages watched(const_cast<const char*>(data_), 3 * page_);
  EXPECT_EQ(data_[2 * page_ + 5], 'x');
  ASSERT_EQ(ftruncate(file_, static_cast<off_t>(page_)), 0);
  EXPECT_EQ(data_[5], 'x');
  EXPECT_FALSE(watched.lost());
  EXPECT_EQ(data_[page_ + 5], 0);
  EXPECT_TRUE(watched.lost());
  EXPECT_EQ(data_[2 * page_], 0);
}

TEST_F(FileFaultsTest, PagesThatNobodyWatchesEndTheProcess) {
  ASSERT_EQ(ftruncate(file_, 0), 0);
  { const WatchedPages gone(const_cast<const char*>(data_), 3 * page_); }
  EXPECT_DEATH(data_[0], "");  // killed by the signal; a sanitizer makes an error of it
}

}  // namespace
}  // namespace reprise
