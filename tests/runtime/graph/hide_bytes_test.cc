#include "runtime/graph/hide_bytes.h"

#include <gtest/gtest.h>

namespace reprise {
namespace {

TEST(HideBytesTest, LargeConstantsAreTheirSizeAndAllElseStays) {
  EXPECT_EQ(HideBytes("graph {\n"
                      "  const %a: f32[2] = {0.5, 1.5}\n"
                      "  const %b: f32[3] = hex\"0000803f0000003f0000003f\"\n"
                      "  %y: f32[2] = Some(%a) {mode = \"hex\", words = [\"hex\", \"ab\"], table = "
                      "u8[2]hex\"00ff\"} @n\n"
                      "}\n"),
            "graph {\n"
            "  const %a: f32[2] = {0.5, 1.5}\n"
            "  const %b: f32[3] = {12 bytes}\n"
            "  %y: f32[2] = Some(%a) {mode = \"hex\", words = [\"hex\", \"ab\"], table = "
            "u8[2]{2 bytes}} @n\n"
            "}\n");
}

TEST(HideBytesTest, HiddenConstantsBecomeZeros) {
  const std::string text =
      "const %b: f32[1] = hex\"0000803f\"\n%y = Some(%b) {mode = \"no bytes}\"}";
  EXPECT_EQ(ZeroHiddenBytes(HideBytes(text)),
            "const %b: f32[1] = hex\"00000000\"\n%y = Some(%b) {mode = \"no bytes}\"}");
}

}  // namespace
}  // namespace reprise
