// Colours of an image, changed in place as Pillow's enhancers and torchvision's ColorJitter do.
#pragma once

#include "client/images/image.h"

namespace reprise::images {

// Blend the image with a plain one: black, the mean of its grey, its grey. Factor 1 changes
// nothing, 0 leaves the plain one.
void AdjustBrightness(Image& image, float factor);
void AdjustContrast(Image& image, float factor);
void AdjustSaturation(Image& image, float factor);

// Turns hues by `turn` of the whole circle, -0.5 to 0.5.
void AdjustHue(Image& image, float turn);

}  // namespace reprise::images
