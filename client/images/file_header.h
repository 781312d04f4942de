// The header of a JPEG or PNG file: its size, and how its camera was held (EXIF). No pixel is
// decoded. Nothing of it is believed: the decoder checks the size again.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/images/crops.h"
#include "client/images/image.h"

namespace reprise::images {

// Returns the size in the file's header, before EXIF's rotation. INVALID_ARGUMENT for a file that
// is neither JPEG nor PNG, or has no size.
absl::StatusOr<Size> ToldSize(absl::string_view bytes);

// Returns EXIF's orientation, 1 to 8, of the bytes of a file; 1 (upright) where there is none,
// or it cannot be read.
int OrientationOf(absl::string_view bytes);

// Returns the image as it is to be seen.
Image Upright(Image image, int orientation);

}  // namespace reprise::images
