// Loads the images of a folder as batches, and prints the contents of each batch.
//
//   loader DIR|LIST [TRANSFORMS [BATCH]]
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "client/loader.h"

namespace {

using reprise::images::ImageBatch;
using reprise::images::ImageLoader;
using reprise::images::ImageSample;

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "loader: %s\n", std::string(status.message()).c_str());
  return 1;
}

void Print(const ImageBatch& batch) {
  double sum = 0;
  if (batch.is_float) {
    for (const float value : batch.values<float>()) sum += value;
  } else {
    for (const uint8_t value : batch.values<uint8_t>()) sum += value;
  }
  std::printf("%lld of %lld rows, sum %.3f:", static_cast<long long>(batch.rows()),
              static_cast<long long>(batch.shape[0]), sum);
  for (const ImageSample& sample : batch.samples) std::printf(" %s", sample.entry->path.c_str());
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "loader DIR|LIST [TRANSFORMS [BATCH]]\n");
    return 2;
  }
  auto set = reprise::images::ReadImageSet(argv[1]);
  if (!set.ok()) return Fail(set.status());
  auto loader = ImageLoader::Open(
      *std::move(set), {.transforms = argc > 2 ? argv[2] : "Resize([224, 224]), ToTensor",
                        .batch = argc > 3 ? std::atoll(argv[3]) : 8});
  if (!loader.ok()) return Fail(loader.status());
  while (true) {
    const auto batch = (*loader)->Next();
    if (!batch.ok()) return Fail(batch.status());
    if (*batch == nullptr) break;
    Print(**batch);
  }
  for (const std::string& cause : (*loader)->plain_causes()) std::printf("%s\n", cause.c_str());
  return 0;
}
