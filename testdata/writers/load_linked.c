// SPDX-License-Identifier: Apache-2.0
#include "load.h"

const struct publisher *load_publisher(void)
{
	return labels_publisher();
}
