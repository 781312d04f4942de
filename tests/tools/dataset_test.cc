// Sizes from data sets: NumPy's files, lines of JSON, headers of sounds and pictures; and the
// batches that a loader makes of them.
#include "tools/files/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/testing/temp_folder.h"
#include "tools/files/array_file.h"
#include "tools/files/media_size.h"

namespace reprise::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string Little(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

std::string Npy(const std::string& descr, const std::string& shape, const std::string& data) {
  std::string header =
      absl::StrCat("{'descr': '", descr, "', 'fortran_order': False, 'shape': ", shape, ", }\n");
  return absl::StrCat(std::string("\x93NUMPY\x01\x00", 8), Little(header.size(), 2), header, data);
}

std::string Wav(int samples, int frame_bytes) {
  const int bytes = samples * frame_bytes;
  return absl::StrCat("RIFF", Little(36 + bytes, 4), "WAVEfmt ", Little(16, 4), Little(1, 2),
                      Little(frame_bytes / 2, 2), Little(16000, 4), Little(16000 * frame_bytes, 4),
                      Little(frame_bytes, 2), Little(16, 2), "data", Little(bytes, 4),
                      std::string(bytes, '\0'));
}

std::vector<int64_t> SizeOf(const std::string& bytes) {
  const auto size = ParseMediaSize(bytes, static_cast<int64_t>(bytes.size()), "file");
  EXPECT_TRUE(size.ok()) << size.status();
  return size->value_or(std::vector<int64_t>());
}

TEST(MediaSizeTest, SoundsAndPictures) {
  EXPECT_THAT(SizeOf(Wav(37, 4)), ElementsAre(37));
  EXPECT_THAT(SizeOf(absl::StrCat(
                  std::string("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\x2c\0\0\2\x58", 24), "rest")),
              ElementsAre(600, 300));
  const std::string jpeg("\xFF\xD8\xFF\xE0\x00\x04\x01\x02\xFF\xC0\x00\x0B\x08\x00\x20\x00\x40\x03",
                         18);
  EXPECT_THAT(SizeOf(jpeg), ElementsAre(32, 64));
  EXPECT_THAT(SizeOf("a text"), IsEmpty());
}

TEST(MediaSizeTest, AHeaderThatIsCutShortIsAnError) {
  for (const std::string& bytes : {Wav(9, 2).substr(0, 20), std::string("\x89PNG\r\n\x1a\n", 8),
                                   std::string("\xFF\xD8\xFF\xE0\x00\x40", 6)}) {
    EXPECT_TRUE(absl::IsInvalidArgument(
        ParseMediaSize(bytes, static_cast<int64_t>(bytes.size()), "file").status()));
  }
}

TEST(ArrayFileTest, AListOfWholeNumbersHasElementsAndOthersHaveShapes) {
  const auto lengths =
      ParseArray(Npy("<i4", "(3,)", Little(7, 4) + Little(9, 4) + Little(7, 4)), "a");
  ASSERT_TRUE(lengths.ok()) << lengths.status();
  EXPECT_THAT(lengths->integers, ElementsAre(7, 9, 7));
  const auto floats = ParseArray(Npy("<f4", "(2, 5)", std::string(40, '\0')), "a");
  ASSERT_TRUE(floats.ok()) << floats.status();
  EXPECT_THAT(floats->shape, ElementsAre(2, 5));
  EXPECT_THAT(floats->integers, IsEmpty());
  EXPECT_FALSE(ParseArray("no array at all", "a").ok());
  EXPECT_FALSE(ParseArray(Npy("<i4", "(x,)", ""), "a").ok());
}

TEST(DatasetTest, LinesOfJsonAndFoldersAreSamples) {
  const TempFolder folder;
  const std::string lines =
      folder.Write("a.jsonl",
                   "{\"text\": \"one two three\", \"ids\": [[1, 2], [3, 4]]}\n"
                   "{\"text\": \"one\", \"ids\": [[1, 2]]}\n");
  const auto dataset = ReadDataset(lines);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_THAT(dataset->inputs, ElementsAre("ids", "text"));
  EXPECT_THAT(dataset->samples[0], ElementsAre(ElementsAre(2, 2), ElementsAre(3)));
  EXPECT_THAT(std::string(ReadDataset(folder.Write("b.jsonl", "[1, 2\n")).status().message()),
              HasSubstr("b.jsonl:1"));
}

Dataset DatasetOf(const std::vector<int64_t>& lengths) {
  Dataset dataset = {.inputs = {"x"}};
  for (const int64_t length : lengths) dataset.samples.push_back({{length}});
  return dataset;
}

TEST(BatchesTest, ArePaddedToTheirLongestOrToBucketsOrNotAtAll) {
  const Dataset dataset = DatasetOf({3, 5, 4, 4, 9});
  ShapeColumns batches = BatchesOf(dataset, {.batch = 2});
  ASSERT_EQ(batches.rows.size(), 3);
  EXPECT_THAT(batches.rows[0], ElementsAre(ElementsAre(2, 5)));
  EXPECT_THAT(batches.rows[1], ElementsAre(ElementsAre(2, 4)));
  EXPECT_THAT(batches.rows[2], ElementsAre(ElementsAre(1, 9)));
  batches = BatchesOf(dataset, {.batch = 2, .pad = BatchOptions::Pad::kBuckets, .buckets = 1});
  for (const auto& row : batches.rows) EXPECT_EQ(row[0][1], 9);
  batches = BatchesOf(dataset, {.batch = 2, .pad = BatchOptions::Pad::kNone});
  EXPECT_EQ(batches.rows.size(), 4);  // only the two of length 4 share one
  batches = BatchesOf(dataset, {.batch = 5, .crop = {7}});
  ASSERT_EQ(batches.rows.size(), 1);
  EXPECT_THAT(batches.rows[0], ElementsAre(ElementsAre(5, 7)));
}

TEST(PadTest, IsLongestNoneOrBuckets) {
  int buckets = 0;
  EXPECT_EQ(*ParsePad("buckets:5", buckets), BatchOptions::Pad::kBuckets);
  EXPECT_EQ(buckets, 5);
  EXPECT_EQ(*ParsePad("none", buckets), BatchOptions::Pad::kNone);
  EXPECT_FALSE(ParsePad("buckets:0", buckets).ok());
}

}  // namespace
}  // namespace reprise::cli
