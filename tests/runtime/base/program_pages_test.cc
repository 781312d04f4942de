#include "runtime/base/program_pages.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "tests/testing/resident_pages.h"

namespace reprise {
namespace {

// KiB of programs and libraries that are mapped and never written.
int64_t ReadOnlyKib() {
  return ResidentKib([](absl::string_view mapping) {
    return absl::StrContains(mapping, '/') &&
           (absl::StrContains(mapping, " r-xp ") || absl::StrContains(mapping, " r--p "));
  });
}

int written = 1;

TEST(ProgramPagesTest, PagesThatStartUpReadLeaveMemoryAndTheProgramGoesOn) {
  written = 2;
  const int64_t before = ReadOnlyKib();
  DropProgramPages();
  const int64_t after = ReadOnlyKib();
  // Reading the figure brings the pages back that it needs itself.
  EXPECT_LT(after, before * 3 / 4) << "of " << before << " KiB";
  EXPECT_EQ(written, 2);
}

}  // namespace
}  // namespace reprise
