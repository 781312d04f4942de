// Pipeline: from a decoded image to its element of a batch.
//
// The fast path takes lists of this form, each part of which may be left out:
//
//   RandomIoUCrop, Resize or RandomResizedCrop (bilinear), CenterCrop, RandomHorizontalFlip,
//   ColorJitter, ToTensor, Normalize
//
// It makes only the pixels that the crop keeps, and writes each row into the tensor as it is made.
// Any other list, and images that need more, run on the plain path, one transform after another:
// the bits are the same, and Apply says which parameter was the cause.
//
// Threads: const methods from any thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/images/crops.h"
#include "client/images/decode.h"
#include "client/images/tensor_writer.h"

namespace reprise::images {

class Pipeline {
 public:
  // INVALID_ARGUMENT where the images would not be of one size.
  static absl::StatusOr<Pipeline> Make(TransformList transforms, ChannelOrder order);

  // Writes the element, writer().bytes() bytes, and moves `boxes` along. Returns why the image took
  // the plain path; empty: it did not. RESOURCE_EXHAUSTED where a transform makes too many pixels.
  absl::StatusOr<std::string> Apply(Decoded decoded, RandomStream& random, std::vector<Box>& boxes,
                                    std::byte* element) const;

  const TensorWriter& writer() const { return writer_; }
  // Returns why every image takes the plain path; empty: that depends on the image.
  const std::string& plain_cause() const { return plain_cause_; }

 private:
  Pipeline(TransformList transforms, std::string plain_cause, TensorWriter writer)
      : transforms_(std::move(transforms)), plain_cause_(std::move(plain_cause)), writer_(writer) {}

  absl::Status ApplyPlain(Image image, RandomStream& random, std::vector<Box>& boxes,
                          std::byte* element) const;
  // Returns why it cannot, in which case nothing is done and no number is drawn.
  absl::StatusOr<std::string> ApplyFast(const Image& image, RandomStream& random,
                                        std::vector<Box>& boxes, std::byte* element) const;

  TransformList transforms_;
  std::string plain_cause_;
  TensorWriter writer_;
};

}  // namespace reprise::images
