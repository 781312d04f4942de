#include "server/http/form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

using testing::HasSubstr;

constexpr char kType[] = "multipart/form-data; boundary=b0";

std::string Part(const std::string& head, const std::string& data) {
  return absl::StrCat("--b0\r\n", head, "\r\n\r\n", data, "\r\n");
}

TEST(FormTest, PartsHaveTheirNamesAndBytes) {
  const std::string bytes("\0\r\n--b\r\n\xff", 9);
  const std::string body = absl::StrCat(
      "a preamble\r\n",
      Part("Content-Disposition: form-data; name=\"file\"; filename=\"a \\\"b\\\".wav\"\r\n"
           "Content-Type: audio/wav",
           bytes),
      Part("content-disposition:form-data;name=model", "w"),
      Part("Content-Disposition: form-data; name=\"empty\"", ""), "--b0--\r\nan epilogue");
  const auto parts = ReadForm(kType, body);
  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_EQ(parts->size(), 3u);
  EXPECT_EQ((*parts)[0].name, "file");
  EXPECT_EQ((*parts)[0].file_name, "a \"b\".wav");
  EXPECT_EQ((*parts)[0].data, bytes);
  EXPECT_EQ((*parts)[1].name, "model");
  EXPECT_EQ((*parts)[1].data, "w");
  EXPECT_EQ((*parts)[2].data, "");
}

TEST(FormTest, BoundariesMayBeQuoted) {
  const auto parts =
      ReadForm("Multipart/Form-Data; charset=x; boundary=\"a b\"",
               "--a b\r\nContent-Disposition: form-data; name=x\r\n\r\n1\r\n--a b--");
  ASSERT_TRUE(parts.ok()) << parts.status();
  EXPECT_EQ((*parts)[0].data, "1");
}

TEST(FormTest, AFormWithoutPartsIsOne) {
  const auto parts = ReadForm(kType, "--b0--\r\n");
  ASSERT_TRUE(parts.ok()) << parts.status();
  EXPECT_TRUE(parts->empty());
}

TEST(FormTest, WhatIsNoFormSaysWhy) {
  const auto why = [](const std::string& type, const std::string& body) {
    const auto parts = ReadForm(type, body);
    EXPECT_TRUE(absl::IsInvalidArgument(parts.status())) << parts.status();
    return std::string(parts.status().message());
  };
  EXPECT_THAT(why("application/json", "{}"), HasSubstr("application/json"));
  EXPECT_THAT(why("multipart/form-data", "--b0--"), HasSubstr("boundary"));
  EXPECT_THAT(why(absl::StrCat("multipart/form-data; boundary=", std::string(71, 'a')), ""),
              HasSubstr("71"));
  EXPECT_THAT(why(kType, ""), HasSubstr("no part"));
  EXPECT_THAT(why(kType, "--b0\r\nContent-Disposition: form-data; name=x\r\n\r\n1"),
              HasSubstr("within part 0"));
  EXPECT_THAT(why(kType, "--b0\r\nContent-Disposition: form-data; name=x"),
              HasSubstr("within part 0"));
  EXPECT_THAT(why(kType, Part("Content-Type: text/plain", "1") + "--b0--"), HasSubstr("name"));
  std::string many;
  for (int i = 0; i < 300; ++i) many += Part("Content-Disposition: form-data; name=x", "");
  EXPECT_THAT(why(kType, many + "--b0--"), HasSubstr("256 parts"));
}

TEST(FormTest, NoPrefixOfAFormIsMoreThanAnError) {
  const std::string body =
      absl::StrCat(Part("Content-Disposition: form-data; name=\"a\"; filename=\"b", "1"),
                   Part("Content-Disposition: form-data; name=b", "2"), "--b0--");
  for (size_t size = 0; size < body.size(); ++size) {
    EXPECT_FALSE(ReadForm(kType, body.substr(0, size)).ok()) << size;
  }
}

}  // namespace
}  // namespace reprise
