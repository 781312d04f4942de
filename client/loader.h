// The loader of images: a data set, declared transforms, batches of one size. Start at
// client/images/image_loader.h; the library is reprise::images, and needs no server.
#pragma once

#include "client/images/image_loader.h"  // IWYU pragma: export
#include "client/images/image_set.h"     // IWYU pragma: export
#include "client/images/transform.h"     // IWYU pragma: export
