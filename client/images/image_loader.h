// ImageLoader: images of a set as batches of one size, decoded and transformed by threads.
//
//   ASSIGN_OR_RETURN(ImageSet set, ReadImageSet("photos"));
//   ASSIGN_OR_RETURN(auto loader, ImageLoader::Open(std::move(set), {.transforms =
//       "Resize(256), CenterCrop(224), ToTensor, "
//       "Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])"}));
//   while (true) {
//     ASSIGN_OR_RETURN(std::shared_ptr<const ImageBatch> batch, loader->Next());
//     if (batch == nullptr) break;           // the epoch is over; the next call begins another
//     Use(batch->values<float>(), batch->shape);   // [32, 3, 224, 224]
//   }
//
// Every batch has the same shape, so that one recipe serves all. The last one of an epoch is
// dropped, or padded with rows of zeros. Batches come in order, and hold the same bits for any
// number of threads.
//
// Ownership: a batch is the caller's. Threads: Next and plain_causes from one at a time.
// Errors:    of an image: its path and then its fault; the loader is over then, unless it skips
//            damaged images.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/images/image_set.h"
#include "client/images/tensor_writer.h"

namespace reprise::images {

enum class LastBatch { kDrop, kPad };

struct LoaderOptions {
  std::string transforms;  // see transform.h
  int64_t batch = 32;      // images of a batch
  LastBatch last = LastBatch::kPad;
  ChannelOrder order = ChannelOrder::kAuto;
  bool shuffle = false;  // again in each epoch
  // Returns the images of an epoch (they are counted from 1) in their order, as positions in the
  // set; null: all of them. Called by the first Next of an epoch.
  std::function<std::vector<int64_t>(uint64_t epoch)> sampler;
  // Loaders of one set in several processes: each has its own part of every epoch, all have equally
  // many images. Where their number does not divide, the first ones are in two parts, or with
  // `drop_uneven` the last ones in none.
  int64_t replicas = 1;
  int64_t replica = 0;  // its number, which begins at 0
  bool drop_uneven = false;
  uint64_t seed = 1;      // decides the order and random transforms
  int threads = 0;        // 0: one for each CPU that the process may use
  int batches_ahead = 2;  // batches that are made while the caller uses one
  // An image that cannot be read or decoded is left out: its batch has a row fewer, as the last one
  // of an epoch may, and skipped() counts it. An epoch without any image is an error all the same.
  bool skip_damaged = false;
  int64_t max_pixels = int64_t{128} << 20;  // one image's, before its transforms
};

struct ImageSample {
  const ImageEntry* entry = nullptr;  // the loader's
  std::vector<Box> boxes;             // where they are in the element
};

struct ImageBatch {
  std::vector<int64_t> shape;        // [batch, channels, height, width], or channels last
  bool is_float = true;              // float32; else uint8
  std::vector<std::byte> data;       // row-major
  std::vector<ImageSample> samples;  // the rows that are no padding
  int64_t rows() const { return static_cast<int64_t>(samples.size()); }
  // Returns the elements; `T` is float or uint8_t, as `is_float` says.
  template <typename T>
  absl::Span<const T> values() const {
    return {reinterpret_cast<const T*>(data.data()), data.size() / sizeof(T)};
  }
};

class ImageLoader {
 public:
  // INVALID_ARGUMENT for transforms or sizes that cannot be.
  static absl::StatusOr<std::unique_ptr<ImageLoader>> Open(ImageSet set, LoaderOptions options);
  virtual ~ImageLoader() = default;

  // Returns the next batch; null at the end of an epoch.
  virtual absl::StatusOr<std::shared_ptr<const ImageBatch>> Next() = 0;
  // Returns the shape of every batch.
  virtual std::vector<int64_t> shape() const = 0;
  virtual bool is_float() const = 0;
  virtual const ImageSet& set() const = 0;
  // Returns how many images of the batches so far were skipped, and then the faults of the first
  // 16, "photos/1.jpg: ..."; empty where none was.
  virtual std::vector<std::string> skipped() const = 0;
  // Returns why images of the batches so far took the plain path, each cause once, with how many
  // images: "7 of 100 images took the plain path: ...". At most 16.
  virtual std::vector<std::string> plain_causes() const = 0;
};

}  // namespace reprise::images
