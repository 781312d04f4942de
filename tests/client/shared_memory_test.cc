#include "client/shared_memory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "client/infer_codec.h"

namespace reprise::client {
namespace {

using ::testing::HasSubstr;

// Not of another test that runs at the same time.
std::string KeyOf(const std::string& name) {
  return "/reprise_test_" + std::to_string(getpid()) + "_" + name;
}

bool IsThere(const std::string& key) {
  const int file = shm_open(key.c_str(), O_RDONLY, 0);
  if (file >= 0) close(file);
  return file >= 0;
}

TEST(SharedMemoryTest, IsZeroAndSeenByWhoeverOpensItsKeyUntilItGoes) {
  const std::string key = KeyOf("seen");
  {
    const auto memory = SharedMemory::Create(key, 4096);
    ASSERT_TRUE(memory.ok()) << memory.status();
    const auto floats = memory->As<float>(8, 2);
    ASSERT_TRUE(floats.ok()) << floats.status();
    EXPECT_EQ((*floats)[1], 0);
    (*floats)[1] = 1.5f;
    const int file = shm_open(key.c_str(), O_RDONLY, 0);
    ASSERT_GE(file, 0);
    float seen = 0;
    EXPECT_EQ(pread(file, &seen, sizeof(seen), 12), static_cast<ssize_t>(sizeof(seen)));
    EXPECT_EQ(seen, 1.5f);
    close(file);
  }
  EXPECT_FALSE(IsThere(key));
}

TEST(SharedMemoryTest, OneThatIsMovedGoesOnce) {
  const std::string first_key = KeyOf("first"), second_key = KeyOf("second");
  auto first = SharedMemory::Create(first_key, 64), second = SharedMemory::Create(second_key, 64);
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  std::optional<SharedMemory> held = *std::move(first);
  EXPECT_TRUE(IsThere(first_key));
  *held = *std::move(second);
  EXPECT_FALSE(IsThere(first_key));
  EXPECT_EQ(held->key(), second_key);
  held.reset();
  EXPECT_FALSE(IsThere(second_key));
}

TEST(SharedMemoryTest, RangesOutsideAndKeysThatAreTakenAreErrorsThatNameThem) {
  const std::string key = KeyOf("taken");
  const auto memory = SharedMemory::Create(key, 100);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_TRUE(memory->As<int32_t>(96, 1).ok());
  for (const auto& [offset, count] : {std::pair<size_t, size_t>{96, 2}, {104, 0}, {2, 1}}) {
    const absl::Status status = memory->As<int32_t>(offset, count).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << offset << ' ' << count;
    EXPECT_THAT(std::string(status.message()), HasSubstr(key));
  }
  const absl::Status again = SharedMemory::Create(key, 100).status();
  EXPECT_TRUE(absl::IsAlreadyExists(again)) << again;
  EXPECT_THAT(std::string(again.message()), HasSubstr(key));
  EXPECT_TRUE(absl::IsInvalidArgument(SharedMemory::Create(KeyOf("none"), 0).status()));
  EXPECT_FALSE(SharedMemory::Create(KeyOf("giant"), size_t{1} << 50).ok());
  EXPECT_FALSE(IsThere(KeyOf("giant")));
}

TEST(InferCodecTest, TensorsInRegionsHaveNoBytesInMessages) {
  const std::vector<float> plain = {1, 2};
  InferRequest request = {.model = "m"};
  request.inputs = {InputTensor::In<float>({"r", 64, 8}, "a", {2}),
                    InputTensor::Of<float>("b", {2}, plain)};
  request.outputs = {"y"};
  request.output_regions["z"] = {"r", 0, 16};
  const inference::ModelInferRequest message = ToMessage(request);
  ASSERT_EQ(message.inputs_size(), 2);
  EXPECT_EQ(message.raw_input_contents_size(), 1);
  const auto& parameters = message.inputs(0).parameters();
  EXPECT_EQ(parameters.at("shared_memory_region").string_param(), "r");
  EXPECT_EQ(parameters.at("shared_memory_offset").int64_param(), 64);
  EXPECT_EQ(parameters.at("shared_memory_byte_size").int64_param(), 8);
  ASSERT_EQ(message.outputs_size(), 2);
  EXPECT_TRUE(message.outputs(0).parameters().empty());
  EXPECT_EQ(message.outputs(1).parameters().at("shared_memory_byte_size").int64_param(), 16);

  auto answer = std::make_unique<inference::ModelInferResponse>();
  auto& z = *answer->add_outputs();
  z.set_name("z");
  z.set_datatype("FP32");
  z.add_shape(4);
  *z.mutable_parameters() = message.outputs(1).parameters();
  answer->add_raw_output_contents("");
  const auto result = InferResult::FromMessage(std::move(answer));
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_TRUE(result->outputs()[0].region.has_value());
  EXPECT_EQ(result->outputs()[0].region->region, "r");
  EXPECT_EQ(result->outputs()[0].region->bytes, 16);
  EXPECT_TRUE(result->outputs()[0].data.empty());
}

}  // namespace
}  // namespace reprise::client
