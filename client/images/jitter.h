// ColorJitter: the four changes of colour, in an order that is drawn.
#pragma once

#include "client/images/image.h"
#include "client/images/random_stream.h"
#include "client/images/transform.h"

namespace reprise::images {

void JitterColors(const Transform& jitter, RandomStream& random, Image& image);

}  // namespace reprise::images
