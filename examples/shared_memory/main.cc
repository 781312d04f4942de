// Asks a running server for an answer twice: by messages, and by memory that it shares with it.
//
//   shared_memory HOST:PORT MODEL [LENGTH]
//
// Inputs are rows of ones, LENGTH along every axis that is not fixed; they must be INT64. The
// outputs of both ways are compared byte by byte. The server runs with --system-shared-memory.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "client/client.h"
#include "client/shared_memory.h"

namespace {

using reprise::client::Client;
using reprise::client::InferRequest;
using reprise::client::InferResult;
using reprise::client::InputTensor;
using reprise::client::RegionSlice;
using reprise::client::SharedMemory;

constexpr char kRegion[] = "example";

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "shared_memory: %s\n", std::string(status.message()).c_str());
  return 1;
}

// Inputs of ones, by message, and how many elements each has.
struct Inputs {
  std::vector<std::vector<int64_t>> elements;
  std::vector<InputTensor> tensors;
};

absl::StatusOr<Inputs> MakeInputs(Client& client, const std::string& model, int64_t length) {
  const auto metadata = client.RequiredMetadata(model);
  if (!metadata.ok()) return metadata.status();
  Inputs inputs;
  inputs.elements.reserve(metadata->inputs_size());  // tensors view them
  for (const auto& input : metadata->inputs()) {
    if (input.datatype() != "INT64") {
      return absl::InvalidArgumentError("input '" + input.name() + "' is " + input.datatype() +
                                        ", which this example does not fill");
    }
    std::vector<int64_t> shape(input.shape().begin(), input.shape().end());
    int64_t elements = 1;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] < 0) shape[i] = i == 0 ? 1 : length;
      elements *= shape[i];
    }
    inputs.elements.emplace_back(elements, 1);
    inputs.tensors.push_back(InputTensor::Of<int64_t>(input.name(), shape, inputs.elements.back()));
  }
  return inputs;
}

// Places for all inputs and outputs, one after another.
class Layout {
 public:
  RegionSlice Place(size_t bytes) {
    const RegionSlice slice = {
        .region = kRegion, .offset = end_, .bytes = static_cast<int64_t>(bytes)};
    end_ += (slice.bytes + 63) / 64 * 64;
    return slice;
  }
  size_t bytes() const { return static_cast<size_t>(end_); }

 private:
  int64_t end_ = 0;
};

int Compare(Client& client, const std::string& model, int64_t length) {
  const auto inputs = MakeInputs(client, model, length);
  if (!inputs.ok()) return Fail(inputs.status());
  const auto by_message = client.Infer({.model = model, .inputs = inputs->tensors});
  if (!by_message.ok()) return Fail(by_message.status());

  Layout layout;
  InferRequest request = {.model = model};
  for (const InputTensor& input : inputs->tensors) {
    request.inputs.push_back(
        InputTensor::In<int64_t>(layout.Place(input.data.size()), input.name, input.shape));
  }
  for (const auto& output : by_message->outputs()) {
    request.output_regions[std::string(output.name)] = layout.Place(output.data.size());
  }
  const auto memory =
      SharedMemory::Create("/reprise_example_" + std::to_string(getpid()), layout.bytes());
  if (!memory.ok()) return Fail(memory.status());
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const std::vector<int64_t>& from = inputs->elements[i];
    const auto to = memory->As<int64_t>(request.inputs[i].region->offset, from.size());
    if (!to.ok()) return Fail(to.status());
    std::copy(from.begin(), from.end(), to->begin());
  }
  absl::Status status = client.RegisterSharedMemory(kRegion, memory->key(), layout.bytes());
  if (!status.ok()) return Fail(status);
  const absl::StatusOr<InferResult> shared = client.Infer(request);
  status = client.UnregisterSharedMemory(kRegion);
  if (!shared.ok()) return Fail(shared.status());
  if (!status.ok()) return Fail(status);

  for (const auto& output : shared->outputs()) {
    const auto message = by_message->Output(output.name);
    if (!message.ok()) return Fail(message.status());
    if (!output.region.has_value() || !output.data.empty()) {
      std::fprintf(stderr, "shared_memory: an output came by message\n");
      return 1;
    }
    const auto bytes = memory->bytes().subspan(output.region->offset, output.region->bytes);
    const bool same = bytes.size() == message->data.size() &&
                      std::memcmp(bytes.data(), message->data.data(), bytes.size()) == 0;
    std::printf("%s %s: %zu bytes in shared memory, %s\n", std::string(output.name).c_str(),
                reprise::client::ShapeText(output.shape).c_str(), bytes.size(),
                same ? "the same as by message" : "not those that came by message");
    if (!same) return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: shared_memory HOST:PORT MODEL [LENGTH]\n");
    return 2;
  }
  Client client({.target = argv[1]});
  return Compare(client, argv[2], argc > 3 ? std::atoll(argv[3]) : 40);
}
