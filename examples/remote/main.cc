// Asks a running server for an answer.
//
//   remote [HOST:PORT [MODEL [LENGTH]]]
//
// Without a model: lists the models and their states. With one: sends one row of ones, LENGTH along
// every axis that is not fixed, and prints the answer and how it was made.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "client/client.h"

namespace {

using reprise::client::Client;
using reprise::client::InputTensor;

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "remote: %s\n", std::string(status.message()).c_str());
  return 1;
}

int List(Client& client) {
  const auto index = client.RepositoryIndex();
  if (!index.ok()) return Fail(index.status());
  for (const auto& model : index->models()) {
    std::printf("%s %s %s\n", model.name().c_str(), model.version().c_str(), model.state().c_str());
  }
  return 0;
}

int Ask(Client& client, const std::string& model, int64_t length) {
  const auto metadata = client.ModelMetadata(model);
  if (!metadata.ok()) return Fail(metadata.status());
  std::vector<std::vector<int64_t>> ids;  // own the elements, which the request only views
  std::vector<std::vector<float>> numbers;
  reprise::client::InferRequest request{.model = model};
  for (const auto& input : metadata->inputs()) {
    std::vector<int64_t> shape(input.shape().begin(), input.shape().end());
    int64_t elements = 1;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] < 0) shape[i] = i == 0 ? 1 : length;
      elements *= shape[i];
    }
    if (input.datatype() == "INT64") {
      ids.emplace_back(elements, 1);
      request.inputs.push_back(InputTensor::Of<int64_t>(input.name(), shape, ids.back()));
    } else if (input.datatype() == "FP32") {
      numbers.emplace_back(elements, 1.0f);
      request.inputs.push_back(InputTensor::Of<float>(input.name(), shape, numbers.back()));
    } else {
      std::fprintf(stderr, "remote: input '%s' is %s, which this example does not fill\n",
                   input.name().c_str(), input.datatype().c_str());
      return 1;
    }
  }
  const auto result = client.Infer(request);
  if (!result.ok()) return Fail(result.status());
  for (const auto& output : result->outputs()) {
    std::printf("%s %s %s\n", std::string(output.name).c_str(),
                std::string(output.datatype).c_str(),
                reprise::client::ShapeText(output.shape).c_str());
  }
  std::printf("bucket %s, recipe %s, %s\n", result->Parameter("reprise.bucket").c_str(),
              result->Parameter("reprise.recipe").c_str(),
              result->Parameter("reprise.capture").c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Client client({.target = argc > 1 ? argv[1] : "localhost:8001"});
  if (argc < 3) return List(client);
  return Ask(client, argv[2], argc > 3 ? std::atoll(argv[3]) : 40);
}
