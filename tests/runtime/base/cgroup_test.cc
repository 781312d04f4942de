#include "runtime/base/cgroup.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

class CgroupTest : public testing::Test {
 protected:
  // Writes a file as the kernel shows it, one line.
  void Write(const std::string& file, const std::string& line) {
    const std::filesystem::path path = root() / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << line << "\n";
  }
  CgroupFiles files() const {
    return {.membership = (root() / "membership").string(), .root = root().string()};
  }

 private:
  std::filesystem::path root() const { return folder_.path(); }
  TempFolder folder_;
};

TEST_F(CgroupTest, WithoutFilesThereIsNoLimit) {
  EXPECT_EQ(CgroupCpus(files()), INFINITY);
  EXPECT_EQ(CgroupMemoryBytes(files()), kNoLimit);
}

TEST_F(CgroupTest, ContainerSeesItsOwnGroupAsTheRoot) {
  Write("membership", "0::/");
  Write("cpu.max", "150000 100000");
  Write("memory.max", "2147483648");
  EXPECT_EQ(CgroupCpus(files()), 1.5);
  EXPECT_EQ(CgroupMemoryBytes(files()), int64_t{2} << 30);
}

TEST_F(CgroupTest, LimitOfAParentHoldsAsWell) {
  Write("membership", "0::/pods/one/server");
  Write("pods/one/server/cpu.max", "max 100000");
  Write("pods/one/server/memory.max", "max");
  Write("pods/one/cpu.max", "400000 100000");
  Write("pods/one/memory.max", "1000000");
  Write("pods/cpu.max", "800000 100000");
  Write("pods/memory.max", "3000000");
  EXPECT_EQ(CgroupCpus(files()), 4);
  EXPECT_EQ(CgroupMemoryBytes(files()), 1000000);
}

TEST_F(CgroupTest, FilesOfVersion1AreRead) {
  Write("membership", "7:cpu,cpuacct:/group\n5:memory:/group");
  Write("cpu/group/cpu.cfs_quota_us", "-1");
  Write("cpu/group/cpu.cfs_period_us", "100000");
  Write("cpu/cpu.cfs_quota_us", "50000");
  Write("cpu/cpu.cfs_period_us", "100000");
  Write("memory/group/memory.limit_in_bytes", "5000");
  Write("memory/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(CgroupCpus(files()), 0.5);
  EXPECT_EQ(CgroupMemoryBytes(files()), 5000);
}

TEST_F(CgroupTest, WhatIsNoNumberIsNoLimit) {
  Write("membership", "0::/");
  Write("cpu.max", "many few");
  Write("memory.max", "-5");
  EXPECT_EQ(CgroupCpus(files()), INFINITY);
  EXPECT_EQ(CgroupMemoryBytes(files()), kNoLimit);
}

TEST(AvailableMemoryTest, IsSomeAndNoMoreThanTheGroupAllows) {
  EXPECT_GT(AvailableMemoryBytes(), 0);
  EXPECT_LE(AvailableMemoryBytes(), CgroupMemoryBytes());
}

}  // namespace
}  // namespace reprise
